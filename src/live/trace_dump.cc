// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Traces as text, and back.
#include "live/trace_dump.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <map>
#include <span>

#include "live/page_reader.h"

namespace uet::live {

namespace {

constexpr const char* kKinds[] = {"none",          "pdc_opened",   "pdc_state",        "sent",
                                  "received",      "ack_sent",     "ack_received",     "nack_sent",
                                  "nack_received", "control_sent", "control_received", "lost",
                                  "window",        "path_banned",  "waited",           "not_polled",
                                  "posted",        "ended",        "peer_lost"};
constexpr const char* kLosses[] = {"time_out", "inferred", "refused", "given_up", "rail"};
constexpr const char* kWaits[] = {"nothing", "window", "credit", "peer_window", "packets", "nic"};
constexpr const char* kStates[] = {"closed",  "creating", "established",
                                   "quiesce", "ack_wait", "close_ack_wait"};
constexpr const char* kErrors[] = {
    "none",           "rto_exhausted", "nack_exhausted", "closed_in_error",
    "protocol_error", "local_close",   "not_consumed",   "peer_lost"};
constexpr const char* kOperations[] = {
    "send",         "tagged_send",    "write",   "read",           "atomic",
    "fetch_atomic", "compare_atomic", "receive", "tagged_receive", "remote_write"};
constexpr const char* kStatuses[] = {"ok",          "truncated",       "cancelled",
                                     "return_code", "transport_error", "no_message",
                                     "abandoned",   "peer_lost"};
constexpr const char* kOperationWaits[] = {"packets", "fence", "read", "deferred", "data", "retry"};

const char* pick(std::span<const char* const> names, std::uint64_t index) {
  return index < names.size() ? names[index] : "unknown";
}

// field(name, number) for each number of a record but its address.
template <class Record, class Field>
void visit_pdc(Record& record, Field field) {
  field("id", record.pdc);
  field("target", record.target);
  field("ordered", record.ordered);
  field("state", record.state);
  field("outstanding", record.packets_outstanding);
  field("queued", record.messages_queued);
  field("oldest_psn", record.oldest_psn);
  field("oldest_transmissions", record.oldest_transmissions);
  field("oldest_message", record.oldest_message);
  field("oldest_sacked", record.oldest_sacked);
  field("oldest_first_sent_ns", record.oldest_first_sent_ns);
  field("oldest_last_sent_ns", record.oldest_last_sent_ns);
  field("wait", record.wait);
  field("wait_since_ns", record.wait_since_ns);
  field("peer_heard_ns", record.peer_heard_ns);
  field("window_bytes", record.window_bytes);
  field("inflight_bytes", record.inflight_bytes);
}

template <class Record, class Field>
void visit_operation(Record& record, Field field) {
  field("message", record.message_id);
  field("kind", record.kind);
  field("pdc", record.pdc);
  field("waits", record.waits);
  field("posted_ns", record.posted_ns);
  field("bytes", record.bytes);
  field("packets_made", record.packets_made);
  field("packets_answered", record.packets_answered);
}

template <class Record, class Field>
void visit_event(Record& record, Field field) {
  field("t", record.time_ns);
  field("pdc", record.pdc);
  field("psn", record.psn);
  field("detail", record.detail);
  field("a", record.a);
  field("b", record.b);
}

template <class Dump, class Field>
void visit_clock(Dump& dump, Field field) {
  field("realtime_ns", dump.realtime_ns);
  field("monotonic_ns", dump.monotonic_ns);
  field("updated_ns", dump.updated_ns);
  field("last_pass_ns", dump.last_pass_ns);
  field("sleeping_since_ns", dump.sleeping_since_ns);
  field("operations_known", dump.operations_known);
  field("written", dump.written);
}

// Appends " name=value".
struct Writer {
  std::string& out;
  template <class Number>
  void operator()(const char* name, const Number& value) const {
    out += ' ';
    out += name;
    out += '=';
    out += std::to_string(value);
  }
};

// "name=value" by name.
using Fields = std::map<std::string_view, std::string_view>;

struct Reader {
  const Fields& fields;
  template <class Number>
  void operator()(const char* name, Number& value) const {
    const auto found = fields.find(name);
    if (found == fields.end()) return;
    const std::string_view text = found->second;
    std::from_chars(text.data(), text.data() + text.size(), value);
  }
};

std::string_view take(std::string_view& rest, char end) {
  const std::size_t length = std::min(rest.find(end), rest.size());
  const std::string_view taken = rest.substr(0, length);
  rest.remove_prefix(std::min(length + 1, rest.size()));
  return taken;
}

Fields fields_of(std::string_view line) {
  Fields fields;
  while (!line.empty()) {
    std::string_view value = take(line, ' ');
    const std::string_view name = take(value, '=');
    fields[name] = value;
  }
  return fields;
}

template <class Record>
bool read_address(const Fields& fields, Record& record) {
  const auto found = fields.find("peer");
  if (found == fields.end()) return false;
  std::string_view text = found->second;
  record.is_ipv6 = !text.empty() && text[0] == '[';
  if (record.is_ipv6 != 0) text.remove_prefix(1);
  const std::string ip(take(text, record.is_ipv6 != 0 ? ']' : ':'));
  if (record.is_ipv6 != 0) take(text, ':');
  std::from_chars(text.data(), text.data() + text.size(), record.port);
  return inet_pton(record.is_ipv6 != 0 ? AF_INET6 : AF_INET, ip.c_str(), record.ip.data()) == 1;
}

// One line inside a dump.
void read_line(std::string_view line, TraceDump& dump) {
  const std::string_view what = take(line, ' ');
  if (what == "pdc") {
    const Fields fields = fields_of(line);
    PdcRecord record;
    if (!read_address(fields, record)) return;
    visit_pdc(record, Reader{fields});
    dump.pdcs.push_back(record);
  } else if (what == "operation") {
    const Fields fields = fields_of(line);
    OperationRecord record;
    if (!read_address(fields, record)) return;
    visit_operation(record, Reader{fields});
    dump.operations.push_back(record);
  } else if (what == "event") {
    const auto kind = std::find(std::begin(kKinds), std::end(kKinds), take(line, ' '));
    if (kind == std::end(kKinds)) return;
    trace::Record record;
    record.kind = static_cast<trace::Kind>(kind - std::begin(kKinds));
    const Fields fields = fields_of(line);
    visit_event(record, Reader{fields});
    dump.records.push_back(record);
  } else if (what == "clock") {
    const Fields fields = fields_of(line);
    visit_clock(dump, Reader{fields});
  }
}

// "process 4711 (solver), domain 10.0.0.1:4793, SIGUSR2"
TraceDump read_title(std::string_view line) {
  TraceDump dump;
  take(line, ' ');
  const std::string_view pid = take(line, ' ');
  std::from_chars(pid.data(), pid.data() + pid.size(), dump.pid);
  take(line, '(');
  dump.program = take(line, ')');
  take(line, ' ');
  take(line, ' ');
  dump.address = take(line, ',');
  take(line, ' ');
  dump.why = line;
  return dump;
}

std::int64_t clock_ns(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

const char* name_of(trace::Kind kind) { return pick(kKinds, static_cast<std::uint64_t>(kind)); }
const char* name_of(trace::Loss loss) { return pick(kLosses, static_cast<std::uint64_t>(loss)); }
const char* name_of(trace::Wait wait) { return pick(kWaits, static_cast<std::uint64_t>(wait)); }
const char* pdc_state_name(std::uint64_t state) { return pick(kStates, state); }
const char* pdc_error_name(std::uint64_t error) { return pick(kErrors, error); }
const char* operation_name(std::uint64_t kind) { return pick(kOperations, kind); }
const char* status_name(std::uint64_t status) { return pick(kStatuses, status); }
const char* operation_wait_name(std::uint64_t w) { return pick(kOperationWaits, w); }

std::string address_text(const std::array<std::uint8_t, 16>& ip, bool is_ipv6, std::uint16_t port) {
  char text[INET6_ADDRSTRLEN] = "?";
  inet_ntop(is_ipv6 ? AF_INET6 : AF_INET, ip.data(), text, sizeof text);
  const std::string host = is_ipv6 ? "[" + std::string(text) + "]" : text;
  return host + ":" + std::to_string(port);
}

std::optional<TraceDump> dump_of_page(const std::string& file, std::string& why) {
  const auto page = read_page(file, why);
  if (!page) return {};
  auto copy = read_trace(file, why);
  if (!copy) return {};
  TraceDump dump;
  dump.pid = page->head.pid;
  dump.program = page->program();
  dump.address = page->address();
  dump.owner = page->owner;
  // Of a process that has ended nothing is known after its last update: the clock may be that of
  // another run of the host, or of another host.
  const auto updated = static_cast<std::int64_t>(page->moment.monotonic_ns);
  dump.updated_ns = updated;
  dump.realtime_ns = static_cast<std::int64_t>(page->moment.updated_ns);
  dump.monotonic_ns = updated;
  if (page->owner == Owner::Running) {
    dump.realtime_ns = clock_ns(CLOCK_REALTIME);
    dump.monotonic_ns = clock_ns(CLOCK_MONOTONIC);
  }
  dump.last_pass_ns = copy->last_pass_ns;
  dump.sleeping_since_ns = copy->sleeping_since_ns;
  dump.pdcs = page->pdcs;
  dump.operations = page->operations;
  dump.operations_known = page->moment.operations_known;
  dump.records = std::move(copy->records);
  dump.written = copy->written;
  return dump;
}

std::vector<trace::Record> records_of(const trace::Ring& ring) {
  std::vector<trace::Record> records;
  const std::uint64_t first = ring.written > trace::kRecords ? ring.written - trace::kRecords : 0;
  records.reserve(ring.written - first);
  for (std::uint64_t i = first; i < ring.written; ++i) {
    records.push_back(ring.records[i % trace::kRecords]);
  }
  return records;
}

std::string to_text(const TraceDump& dump) {
  std::string out(kDumpBegins);
  out += "process " + std::to_string(dump.pid) + " (" + dump.program + "), domain " + dump.address +
         ", " + dump.why + "\nclock";
  visit_clock(dump, Writer{out});
  out += '\n';
  for (const PdcRecord& record : dump.pdcs) {
    out += "pdc peer=" + address_text(record.ip, record.is_ipv6 != 0, record.port);
    visit_pdc(record, Writer{out});
    out += '\n';
  }
  for (const OperationRecord& record : dump.operations) {
    out += "operation peer=" + address_text(record.ip, record.is_ipv6 != 0, record.port);
    visit_operation(record, Writer{out});
    out += '\n';
  }
  for (const trace::Record& record : dump.records) {
    out += "event ";
    out += name_of(record.kind);
    visit_event(record, Writer{out});
    out += '\n';
  }
  out += kDumpEnds;
  out += '\n';
  return out;
}

std::vector<TraceDump> dumps_of_text(std::string_view text) {
  std::vector<TraceDump> dumps;
  std::optional<TraceDump> dump;
  while (!text.empty()) {
    std::string_view line = take(text, '\n');
    if (line == kDumpEnds) {
      if (dump) dumps.push_back(std::move(*dump));
      dump.reset();
    } else if (line.starts_with(kDumpBegins)) {
      dump = read_title(line.substr(kDumpBegins.size()));
    } else if (dump) {
      read_line(line, *dump);
    }
  }
  return dumps;
}

}  // namespace uet::live
