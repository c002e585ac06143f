// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sim/sim_link.h"

#include <algorithm>

namespace uet::sim {

SimLink::Fate SimLink::send(std::uint32_t bytes, Ecn ecn, Time now) {
  Fate fate;
  fate.ecn = ecn;
  if (!up_) {
    ++counters_.partition_drops;
    return fate;
  }
  if (bytes > config_.largest_packet && (faults_ || config_.largest_packet_stays)) {
    ++counters_.too_large;
    return fate;
  }
  const Duration backlog = std::max(free_at_, now) - now;
  const auto queued =
      static_cast<std::uint64_t>(backlog.count()) * (config_.rate_bps / 1'000'000) / 8'000;
  const bool trimmable = config_.trimming > 0 && ecn != Ecn::NotEct;
  const bool full = queued + bytes > config_.queue_bytes;
  if (full && !trimmable) {
    ++counters_.queue_drops;
    return fate;
  }
  if (trimmable && (full || (faults_ && rng_.chance(config_.trimming)))) {
    fate.trimmed = true;  // the queue hardly grows by the rest of it
    ++counters_.trimmed;
    bytes = 0;
  }
  if (queued > config_.ecn_threshold_bytes && ecn != Ecn::NotEct) {
    fate.ecn = Ecn::Ce;
    ++counters_.marked;
  }
  free_at_ = std::max(free_at_, now) + serialization_time(bytes, config_.rate_bps);
  fate.copies = 1;
  fate.arrival[0] = free_at_ + config_.latency;
  if (config_.jitter.count() > 0) {
    fate.arrival[0] += Duration(static_cast<std::int64_t>(
        rng_.below(static_cast<std::uint64_t>(config_.jitter.count()) + 1)));
  }
  if (!faults_) return fate;
  if (rng_.chance(config_.reordering)) {
    fate.arrival[0] += config_.reorder_delay;
    ++counters_.reordered;
  }
  if (rng_.chance(config_.duplication)) {
    fate.copies = 2;
    fate.arrival[1] = fate.arrival[0] + Duration(static_cast<std::int64_t>(rng_.below(100'000)));
    ++counters_.duplicated;
  }
  if (rng_.chance(config_.loss)) {
    fate.copies = 0;
    ++counters_.lost;
  } else if (rng_.chance(config_.corruption)) {
    fate.damaged = true;
    ++counters_.corrupted;
  }
  return fate;
}

}  // namespace uet::sim
