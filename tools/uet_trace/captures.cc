// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet_trace/captures.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "capture/capture.h"
#include "wire/dissect.h"
#include "wire/parse.h"

namespace uet::tracing {

namespace {

using trace::Kind;
using trace::Record;

constexpr std::int64_t kClocksAgree = 1'000'000;  // ns: the clocks of one host, or well kept
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// A packet of a sender: its IP address, the destination, the sender's PDC, the PSN.
using Key = std::tuple<std::string, std::string, std::uint16_t, std::uint32_t>;
using Times = std::map<Key, std::vector<std::int64_t>>;  // each list ascends

Key key_of(const CapturedPacket& packet) {
  return {packet.source, packet.destination, packet.pdc, packet.psn};
}

// "10.0.0.1" of "10.0.0.1:4793".
std::string ip_of(const std::string& address) { return address.substr(0, address.rfind(':')); }

std::uint32_t packets_in(const Record& record) {
  return std::max<std::uint32_t>(1, static_cast<std::uint32_t>(record.a >> 32));
}

CapturedPacket captured(const CapturePacket& packet) {
  const wire::FrameFields& fields = packet.frame.fields;
  CapturedPacket out;
  out.realtime_ns = packet.realtime_ns;
  out.source = ip_text(fields.source);
  out.destination = ip_text(fields.destination) + ":" + std::to_string(fields.port);
  out.words = wire::dissect(packet.frame.packet, packet.frame.missing);
  if (!packet.comment.empty()) out.words += "  [" + packet.comment + "]";
  const auto parsed = wire::parse(packet.frame.packet);
  if (!parsed) return out;
  out.bytes = parsed->rest.size() + packet.frame.missing;
  const auto take = [&](const auto& header) {
    out.has_psn = true;
    out.pdc = header.spdcid.value;
    out.psn = header.psn.value;
  };
  if (const auto* request = std::get_if<wire::RequestHeader>(&parsed->header)) {
    take(*request);
    out.request = true;
    out.again = request->retx;
  }
  if (const auto* ack = std::get_if<wire::AckHeader>(&parsed->header)) {
    out.ack = true;
    out.acked_pdc = ack->dpdcid.value;
    out.acked_psn = ack->ack_psn().value;
    out.cack = ack->cack_psn.value;
    out.marked = ack->ce;
  }
  if (const auto* control = std::get_if<wire::ControlHeader>(&parsed->header)) take(*control);
  return out;
}

// Shortest time by which `later` follows `earlier` for the same packet; first occurrences count.
std::optional<std::int64_t> least_delay(const Times& earlier, const Times& later) {
  std::optional<std::int64_t> least;
  for (const auto& [key, times] : earlier) {
    const auto found = later.find(key);
    if (found == later.end()) continue;
    const std::int64_t delay = found->second.front() - times.front();
    if (!least || delay < *least) least = delay;
  }
  return least;
}

// When each packet of the trace was sent; `offset` leads from its clock to the common time line.
Times sent_times(const live::TraceDump& dump, std::int64_t offset) {
  const Peers peers = peers_of(dump);
  Times times;
  for (const Record& record : dump.records) {
    const auto peer = peers.find(record.pdc);
    if (record.kind != Kind::Sent || peer == peers.end()) continue;
    for (std::uint32_t i = 0; i < packets_in(record); ++i) {
      times[{ip_of(dump.address), peer->second, record.pdc, record.psn + i}].push_back(
          record.time_ns + offset);
    }
  }
  return times;
}

// The same for received ones. A trace does not have the sender's PDC: 0 stands for it.
Times received_times(const live::TraceDump& dump, std::int64_t offset) {
  const Peers peers = peers_of(dump);
  Times times;
  for (const Record& record : dump.records) {
    const auto peer = peers.find(record.pdc);
    if (record.kind != Kind::Received || peer == peers.end()) continue;
    for (std::uint32_t i = 0; i < packets_in(record); ++i) {
      times[{ip_of(peer->second), dump.address, 0, record.psn + i}].push_back(record.time_ns +
                                                                              offset);
    }
  }
  return times;
}

Times captured_times(const Capture& capture, std::int64_t offset, bool with_pdc) {
  Times times;
  for (const CapturedPacket& packet : capture.packets) {
    if (!packet.has_psn) continue;
    Key key = key_of(packet);
    if (!with_pdc) std::get<2>(key) = 0;
    times[key].push_back(packet.realtime_ns + offset);
  }
  for (auto& [key, list] : times) std::sort(list.begin(), list.end());
  return times;
}

// Nanoseconds to add to the times of the capture, by the first trace that has packets of both
// directions in it; 0 if there is none, or the clocks agree.
std::int64_t clock_difference_of(const Capture& capture, std::span<const live::TraceDump> dumps,
                                 std::span<const std::int64_t> offsets) {
  const Times sent_here = captured_times(capture, 0, true);
  const Times come_here = captured_times(capture, 0, false);
  for (std::size_t i = 0; i < dumps.size(); ++i) {
    const auto there = least_delay(sent_times(dumps[i], offsets[i]), sent_here);
    const auto back = least_delay(come_here, received_times(dumps[i], offsets[i]));
    if (!there || !back) continue;
    const std::int64_t ahead = (*there - *back) / 2;
    return ahead > -kClocksAgree && ahead < kClocksAgree ? 0 : -ahead;
  }
  return 0;
}

std::string microseconds_text(std::int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f us", static_cast<double>(ns) / 1000.0);
  return text;
}

// The packets of one capture beside the events of one trace.
class Relation {
 public:
  Relation(const live::TraceDump& dump, std::int64_t dump_offset, const Capture& capture,
           std::int64_t capture_offset)
      : dump_(dump),
        capture_(capture),
        peers_(peers_of(dump)),
        sent_(sent_times(dump, dump_offset)),
        captured_(captured_times(capture, capture_offset, true)) {
    for (const CapturedPacket& packet : capture.packets) {
      first_ = std::min(first_, packet.realtime_ns + capture_offset);
      last_ = std::max(last_, packet.realtime_ns + capture_offset);
      if (packet.source == ip_of(dump.address)) destinations_.insert(packet.destination);
    }
  }

  // ", sent by process 4711, transmission 2, 12.3 us earlier"; empty: the trace has not sent it.
  std::string sender_of(const CapturedPacket& packet, std::int64_t time_ns) const {
    const auto sent = packet.has_psn ? sent_.find(key_of(packet)) : sent_.end();
    if (sent == sent_.end()) return "";
    const auto after =
        std::upper_bound(sent->second.begin(), sent->second.end(), time_ns + kClocksAgree);
    if (after == sent->second.begin()) return "";
    return ", sent by process " + std::to_string(dump_.pid) + ", pdc " + hex(packet.pdc) + ", " +
           microseconds_text(time_ns - *(after - 1)) + " earlier";
  }

  // ", FILE has 1 of 3 packets" where it lacks some of a record of packets that were sent while it
  // was written.
  std::string missing(const Event& event) const {
    const Record& record = event.record;
    const auto peer = peers_.find(record.pdc);
    if (record.kind != Kind::Sent || peer == peers_.end()) return "";
    if (!destinations_.contains(peer->second)) return "";
    if (event.realtime_ns < first_ || event.realtime_ns > last_) return "";
    std::uint32_t found = 0;
    for (std::uint32_t i = 0; i < packets_in(record); ++i) {
      const Key key{ip_of(dump_.address), peer->second, record.pdc, record.psn + i};
      if (has(key, event.realtime_ns)) ++found;
    }
    if (found == packets_in(record)) return "";
    return ", " + capture_.file + " has " + std::to_string(found) + " of " +
           std::to_string(packets_in(record)) + (packets_in(record) == 1 ? " packet" : " packets");
  }

 private:
  // Was a packet that was sent at `time_ns` captured before it was sent again?
  bool has(const Key& key, std::int64_t time_ns) const {
    const auto times = captured_.find(key);
    if (times == captured_.end()) return false;
    const auto& sent = sent_.at(key);
    const auto again = std::upper_bound(sent.begin(), sent.end(), time_ns);
    const std::int64_t end = again == sent.end() ? kNever : *again;
    return std::any_of(times->second.begin(), times->second.end(),
                       [&](std::int64_t at) { return at >= time_ns - kClocksAgree && at < end; });
  }

  const live::TraceDump& dump_;
  const Capture& capture_;
  Peers peers_;
  Times sent_;
  Times captured_;
  std::int64_t first_ = kNever;
  std::int64_t last_ = 0;
  std::set<std::string> destinations_;  // to which the capture has packets of this trace
};

}  // namespace

bool read_capture(const std::string& file, Capture& capture, std::string& why) {
  auto reader = CaptureReader::open(file, why);
  if (!reader) return false;
  capture.file = file;
  while (const auto packet = reader->next()) capture.packets.push_back(captured(*packet));
  capture.problem = reader->problem();
  if (!capture.packets.empty()) return true;
  why = capture.problem.empty() ? "holds no UET packet" : capture.problem;
  return false;
}

std::string line_of(const Event& event, const Capture& capture) {
  return time_text(event.realtime_ns) + " " + capture.file + " " + event.packet->source + " > " +
         event.packet->destination + " " + event.packet->words + event.note;
}

std::vector<Event> merge(std::span<const live::TraceDump> dumps,
                         std::span<const Capture> captures) {
  std::vector<Event> events = merge(dumps);
  std::vector<std::int64_t> offsets;
  for (const live::TraceDump& dump : dumps) {
    offsets.push_back(dump.realtime_ns - dump.monotonic_ns +
                      (offsets.empty() ? 0 : clock_difference(dumps[0], dump)));
  }
  const std::size_t of_traces = events.size();
  for (std::size_t c = 0; c < captures.size(); ++c) {
    const Capture& capture = captures[c];
    const std::int64_t offset = clock_difference_of(capture, dumps, offsets);
    const std::size_t begin = events.size();
    for (const CapturedPacket& packet : capture.packets) {
      events.push_back({.realtime_ns = packet.realtime_ns + offset,
                        .dump = c,
                        .record = {},
                        .packet = &packet,
                        .note = {}});
    }
    for (std::size_t d = 0; d < dumps.size(); ++d) {
      const Relation relation(dumps[d], offsets[d], capture, offset);
      for (std::size_t i = 0; i < of_traces; ++i) {
        if (events[i].dump == d) events[i].note += relation.missing(events[i]);
      }
      for (std::size_t i = begin; i < events.size(); ++i) {
        events[i].note += relation.sender_of(*events[i].packet, events[i].realtime_ns);
      }
    }
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.realtime_ns < b.realtime_ns; });
  return events;
}

}  // namespace uet::tracing
