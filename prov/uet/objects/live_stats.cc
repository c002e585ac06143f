// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From the numbers of an engine to its live page.
#include "objects/live_stats.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <new>

#include "nic/interface.h"
#include "objects/engine.h"
#include "objects/stats.h"
#include "provider.h"

namespace uet::prov {

namespace {

std::uint64_t traffic(const pds::PeerView& view) {
  return view.peer->counts.bytes_sent + view.peer->counts.bytes_received;
}

std::uint64_t not_negative(std::int64_t value) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0));
}

// 0 if `since` is no time.
std::uint64_t age_ns(Time since, Time now) {
  return since == Time{} ? 0 : not_negative((now - since).count());
}

// Of this thread: on a busy host the time until an update is over says little of its cost.
Duration own_cpu_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + Duration(time.tv_nsec);
}

}  // namespace

live::PeerRecord peer_record(const pds::PeerView& view, Time now) {
  const pds::PeerCounters& counts = view.peer->counts;
  live::PeerRecord record{
      .ip = view.peer->address.ip.bytes,
      .port = view.peer->address.port,
      .is_ipv6 = view.peer->address.ip.is_ipv6,
      .sdi = view.peer->address.sdi,
      .pdcs = view.pdcs,
      .base_rtt_ns = not_negative(view.base_rtt.count()),
      .rtt_ns = not_negative(counts.rtt.count()),
      .window_bytes = view.window_bytes,
      .inflight_bytes = not_negative(view.inflight_bytes),
      .credit_bytes = not_negative(view.credit_bytes),
      .paths = view.paths,
      .paths_banned = view.paths_banned,
      .packets_outstanding = view.packets_outstanding,
      .oldest_outstanding_ns = age_ns(view.oldest_sent, now),
      .silent_ns = age_ns(counts.last_heard, now),
      .packets_sent = counts.packets_sent,
      .bytes_sent = counts.bytes_sent,
      .packets_received = counts.packets_received,
      .bytes_received = counts.bytes_received,
      .acks_received = counts.acks_received,
      .rto_retransmissions = counts.rto_retransmissions,
      .nack_retransmissions = counts.nack_retransmissions,
      .inferred_loss_retransmissions = counts.inferred_loss_retransmissions,
      .marks_received = counts.marks_received,
      .trimmed_received = counts.trimmed_received,
  };
  static_assert(live::kNackCodes == pds::PeerNacks::kCodes);
  record.nacks_received = counts.nacks_received.counts();
  return record;
}

live::PdcRecord pdc_record(const pds::WaitingPdc& pdc) {
  live::PdcRecord record;
  record.ip = pdc.peer.ip.bytes;
  record.port = pdc.peer.port;
  record.is_ipv6 = pdc.peer.ip.is_ipv6;
  record.target = pdc.target;
  record.pdc = pdc.id.value;
  record.state = static_cast<std::uint8_t>(pdc.state);
  record.ordered = pdc.ordered;
  record.oldest_psn = pdc.oldest_psn.value;
  record.oldest_transmissions = pdc.oldest_transmissions;
  record.oldest_message = pdc.oldest_message;
  record.oldest_sacked = pdc.oldest_sacked;
  record.wait = static_cast<std::uint8_t>(pdc.wait);
  record.oldest_first_sent_ns = to_ns(pdc.oldest_first_sent);
  record.oldest_last_sent_ns = to_ns(pdc.oldest_last_sent);
  record.wait_since_ns = to_ns(pdc.wait_since);
  record.peer_heard_ns = to_ns(pdc.peer_heard);
  record.packets_outstanding = pdc.packets_outstanding;
  record.messages_queued = pdc.messages_queued;
  record.window_bytes = pdc.window_bytes;
  record.inflight_bytes = not_negative(pdc.inflight_bytes);
  return record;
}

live::OperationRecord operation_record(const ses::WaitingOperation& operation) {
  live::OperationRecord record;
  record.ip = operation.to.ip.bytes;
  record.port = operation.to.port;
  record.is_ipv6 = operation.to.ip.is_ipv6;
  record.kind = static_cast<std::uint8_t>(operation.kind);
  record.message_id = operation.message_id.value;
  record.pdc = operation.pdc.value;
  record.waits = static_cast<std::uint8_t>(operation.waits);
  record.posted_ns = to_ns(operation.posted);
  record.bytes = operation.bytes;
  record.packets_made = operation.packets_made;
  record.packets_answered = operation.packets_answered;
  return record;
}

void keep_oldest(std::vector<pds::WaitingPdc>& pdcs, std::size_t most) {
  const auto since = [](const pds::WaitingPdc& pdc) {
    return pdc.packets_outstanding > 0 ? pdc.oldest_first_sent : kNever;
  };
  const std::size_t kept = std::min(pdcs.size(), most);
  std::partial_sort(pdcs.begin(), pdcs.begin() + static_cast<std::ptrdiff_t>(kept), pdcs.end(),
                    [&](const auto& a, const auto& b) { return since(a) < since(b); });
  pdcs.resize(kept);
}

void keep_busiest(std::vector<pds::PeerView>& views, std::size_t most) {
  const std::size_t kept = std::min(views.size(), most);
  std::partial_sort(
      views.begin(), views.begin() + static_cast<std::ptrdiff_t>(kept), views.end(),
      [](const pds::PeerView& a, const pds::PeerView& b) { return traffic(a) > traffic(b); });
  views.resize(kept);
}

Pace pace_after(Time start, Duration cost) {
  const Duration pause = cost * Pace::kShare;
  return {start + std::max(pause, Pace::kLeastPeriod), start + std::max(pause, Pace::kPeriod)};
}

void LiveStats::open(Engine& engine, const std::string& interface) noexcept UET_NO_THREAD_ANALYSIS {
  open_page(engine, interface);
  if (!page_) own_ring_.reset(new (std::nothrow) trace::Ring);
  engine.fep().keep_trace_in(ring());
  dumps_failures_ = engine.params().stats.when == StatsDump::When::Error;
  log_.open(engine.params().nic, engine.nic().caps().ip_mtu, engine.params().local_rings);
}

void LiveStats::open_page(Engine& engine, const std::string& interface) noexcept {
  if (!engine.params().live_statistics || ::getauxval(AT_SECURE) != 0) return;
  std::string why = "no memory";
  try {
    std::vector<live::CounterText> texts;
    for (const fep::CounterName& counter : counter_names()) {
      texts.push_back({counter.name, counter.meaning, counter.gauge});
    }
    const std::string address = nic::to_text(engine.local_address());
    page_ = live::PageWriter::create({interface, engine.params().nic, address}, texts, why);
    views_.reserve(live::kMaxPeers);
    records_.reserve(live::kMaxPeers);
  } catch (const std::bad_alloc&) {
    page_.reset();
  }
  if (page_) {
    pace_ = {Time::min(), Time::min()};  // the first pass
    return;
  }
  static std::atomic<bool> logged{false};
  if (!logged.exchange(true)) {
    FI_INFO(&provider, FI_LOG_DOMAIN,
            "fi_domain: live statistics: %s; the domain works without them\n", why.c_str());
  }
}

void LiveStats::close() noexcept {
  remove_file();
  pace_ = {kNever, kNever};
  changed_ = false;
}

live::Waiting LiveStats::list_waiting(Engine& engine) UET_NO_THREAD_ANALYSIS {
  engine.fep().list_waiting(waiting_pdcs_);
  keep_oldest(waiting_pdcs_, live::kMaxPdcs);
  pdc_records_.clear();
  for (const pds::WaitingPdc& pdc : waiting_pdcs_) pdc_records_.push_back(pdc_record(pdc));
  const std::size_t known = engine.fep().ses().list_waiting(operations_, live::kMaxOperations);
  operation_records_.clear();
  for (const ses::WaitingOperation& operation : operations_) {
    operation_records_.push_back(operation_record(operation));
  }
  return {pdc_records_, operation_records_, known};
}

live::TraceDump LiveStats::dump(Engine& engine, const char* why, Time now) {
  const live::Waiting waiting = list_waiting(engine);
  live::TraceDump dump;
  dump.pid = ::getpid();
  dump.program = ::program_invocation_short_name;
  dump.address = nic::to_text(engine.local_address());
  dump.why = why;
  dump.realtime_ns = static_cast<std::int64_t>(live::realtime_ns());
  dump.monotonic_ns = dump.updated_ns = to_ns(now);
  dump.pdcs.assign(waiting.pdcs.begin(), waiting.pdcs.end());
  dump.operations.assign(waiting.operations.begin(), waiting.operations.end());
  dump.operations_known = waiting.operations_known;
  if (const trace::Ring* const from = ring()) {
    dump.last_pass_ns = from->last_pass_ns;
    dump.sleeping_since_ns = from->sleeping_since_ns;
    dump.records = live::records_of(*from);
    dump.written = from->written;
  }
  return dump;
}

void LiveStats::write_counters(Engine& engine, const char* why) noexcept {
  guarded([&] {
    write_stats(engine.params().stats, engine.local_address(), why, counter_values(engine));
    return 0;
  });
}

void LiveStats::save_page(Engine& engine, Time now) noexcept {
  if (!page_) {
    FI_WARN(&provider, FI_LOG_DOMAIN, "FI_UET_STATS: no copy: this domain has no live page\n");
    return;
  }
  update(engine, now);
  guarded([&] {
    const std::string& file = page_->file();
    return write_page(engine.params().stats.file, file.substr(file.rfind('.') + 1), page_->bytes());
  });
}

void LiveStats::write_all(Engine& engine, const char* why, Time now) noexcept {
  write_counters(engine, why);
  guarded([&] { return write_trace(engine, engine.params().stats.file, why, now); });
}

int LiveStats::write_trace(Engine& engine, const std::string& file, const char* why, Time now) {
  return write_dump(file, live::to_text(dump(engine, why, now)));
}

// A burst of failures has one cause: that is written once.
void LiveStats::note_failures(Engine& engine, Time now) noexcept {
  constexpr Duration kPause = std::chrono::seconds(1);
  const trace::Ring* const from = ring();
  if (from == nullptr || from->failed_operations == failures_seen_) return;
  failures_seen_ = from->failed_operations;
  if (now < next_failure_dump_) return;
  next_failure_dump_ = now + kPause;
  write_all(engine, "an operation has failed", now);
}

void LiveStats::update(Engine& engine, Time now) noexcept UET_NO_THREAD_ANALYSIS {
  const Duration begun = own_cpu_time();
  changed_ = false;
  try {
    const std::vector<std::uint64_t> values = counter_values(engine);
    engine.fep().list_peers(views_);
    const std::size_t known = views_.size();
    keep_busiest(views_, live::kMaxPeers);
    records_.clear();
    for (const pds::PeerView& view : views_) records_.push_back(peer_record(view, now));
    page_->update(values, records_, known, now, list_waiting(engine));
  } catch (const std::bad_alloc&) {
    changed_ = true;  // shown at the next attempt
  }
  pace_ = pace_after(now, own_cpu_time() - begun);
}

}  // namespace uet::prov
