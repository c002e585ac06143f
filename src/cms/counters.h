// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What congestion control counts (CMS 9.5), per context; a FEP adds them up. Names and meanings for
// people: src/fep/stats.cc, which needs a row for each member.
#pragma once

#include <algorithm>
#include <cstdint>

namespace uet::cms {

// ACKs by what they did to the window (NsccReaction).
struct WindowCounters {
  std::uint64_t acks_without_sample = 0;
  std::uint64_t acks_fair = 0;
  std::uint64_t acks_rise = 0;
  std::uint64_t acks_fast_increase = 0;
  std::uint64_t acks_limited = 0;
  std::uint64_t acks_cut = 0;
  std::uint64_t acks_hold = 0;
  std::uint64_t acks_quick_adapt = 0;
  std::uint64_t acks_ignored = 0;  // of what was sent before a quick adapt
  std::uint64_t quick_adapts = 0;
  std::uint64_t cuts = 0;  // windows that a CUT or HOLD made smaller
  std::uint64_t fast_increase_bytes = 0;
  std::uint64_t bytes_ignored = 0;
};

// Signals of the network and of the peers.
struct SignalCounters {
  std::uint64_t marks_received = 0;
  std::uint64_t trims_in_fabric = 0;
  std::uint64_t trims_at_last_hop = 0;
  std::uint64_t losses_by_rto = 0;
  std::uint64_t losses_by_path = 0;
  std::uint64_t losses_out_of_order = 0;
  std::uint64_t losses_spurious = 0;
  std::uint64_t rtt_samples = 0;
  std::uint64_t rtt_invalid = 0;
  std::uint64_t pend_received = 0;
  std::uint64_t restores_received = 0;
};

// Credit, at the source.
struct CreditCounters {
  std::uint64_t credit_received_bytes = 0;
  std::uint64_t credit_spent_bytes = 0;
  std::uint64_t credit_dropped_bytes = 0;  // left over from speculation (CMS-212)
};

// Paths, of contexts that learn from what becomes of packets.
struct PathCounters {
  std::uint64_t paths = 0;            // entropy values in use at the moment
  std::uint64_t paths_penalised = 0;  // of these, avoided at the moment
  std::uint64_t paths_banned = 0;     // of these, not used at all at the moment (CMS-419)
  std::uint64_t paths_recycled = 0;   // packets that took a path from the ring of REPS
  std::uint64_t paths_random = 0;     // packets of REPS that took one at random
  std::uint64_t paths_frozen = 0;     // times that REPS kept to the paths it knew
};

// Of one context, or of all that are and were.
struct Counters : WindowCounters, SignalCounters, CreditCounters, PathCounters {
  // The present holdings of the contexts.
  std::uint64_t contexts = 0;
  std::uint64_t window_bytes = 0;
  std::uint64_t inflight_bytes = 0;
  std::uint64_t base_rtt_ns = 0;   // the longest of all contexts
  std::uint64_t avg_delay_ns = 0;  // likewise

  // A context has ended: what it holds is gone, what it counted stays.
  void forget_holdings() {
    contexts = window_bytes = inflight_bytes = base_rtt_ns = avg_delay_ns = 0;
    paths = paths_penalised = paths_banned = 0;
  }
  // Adds all members except the two times, of which the longer counts.
  void add(const Counters& other);
};

inline void Counters::add(const Counters& other) {
  contexts += other.contexts;
  window_bytes += other.window_bytes;
  inflight_bytes += other.inflight_bytes;
  base_rtt_ns = std::max(base_rtt_ns, other.base_rtt_ns);
  avg_delay_ns = std::max(avg_delay_ns, other.avg_delay_ns);
  acks_without_sample += other.acks_without_sample;
  acks_fair += other.acks_fair;
  acks_rise += other.acks_rise;
  acks_fast_increase += other.acks_fast_increase;
  acks_limited += other.acks_limited;
  acks_cut += other.acks_cut;
  acks_hold += other.acks_hold;
  acks_quick_adapt += other.acks_quick_adapt;
  acks_ignored += other.acks_ignored;
  quick_adapts += other.quick_adapts;
  cuts += other.cuts;
  fast_increase_bytes += other.fast_increase_bytes;
  bytes_ignored += other.bytes_ignored;
  marks_received += other.marks_received;
  trims_in_fabric += other.trims_in_fabric;
  trims_at_last_hop += other.trims_at_last_hop;
  losses_by_rto += other.losses_by_rto;
  losses_by_path += other.losses_by_path;
  losses_out_of_order += other.losses_out_of_order;
  losses_spurious += other.losses_spurious;
  rtt_samples += other.rtt_samples;
  rtt_invalid += other.rtt_invalid;
  pend_received += other.pend_received;
  restores_received += other.restores_received;
  credit_received_bytes += other.credit_received_bytes;
  credit_spent_bytes += other.credit_spent_bytes;
  credit_dropped_bytes += other.credit_dropped_bytes;
  paths += other.paths;
  paths_penalised += other.paths_penalised;
  paths_banned += other.paths_banned;
  paths_recycled += other.paths_recycled;
  paths_random += other.paths_random;
  paths_frozen += other.paths_frozen;
}

}  // namespace uet::cms
