// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From the numbers of an engine to its live page.
#include "objects/live_stats.h"

#include <sys/auxv.h>

#include <algorithm>
#include <atomic>
#include <ctime>

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
  static_assert(live::kNackCodes == pds::PeerCounters::kNackCodes);
  record.nacks_received = counts.nacks_received;
  return record;
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

void LiveStats::open(Engine& engine, const std::string& interface) noexcept {
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
    page_->update(values, records_, known, now);
  } catch (const std::bad_alloc&) {
    changed_ = true;  // shown at the next attempt
  }
  pace_ = pace_after(now, own_cpu_time() - begun);
}

}  // namespace uet::prov
