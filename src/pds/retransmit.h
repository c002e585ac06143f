// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// When is a packet lost, and how long is waited: the retransmission rules (PDS section 12).
//
// Pure functions: the state is in TxWindow and LossDetector (which names the causes for which a
// packet leaves again), the acting in LossRecovery.
#pragma once

#include <algorithm>
#include <cstdint>

#include "pds/parameters.h"
#include "uet/base/time.h"

namespace uet::pds {

// Time-out of a packet that was retransmitted `retransmissions` times by time-out since the PDC
// last made progress: RTO_Init_Time * 2^k, limited (PDS-120, PDS-125). `least`: what answers
// take at present, if that is longer than RTO_Init_Time. A peer that polls seldom may raise the
// limit to four times rto_cap, so that packets are not repeated in each of its pauses.
constexpr Duration rto(const Parameters& parameters, std::uint32_t retransmissions,
                       Duration least = {}) {
  const Duration cap = std::clamp(least, parameters.rto_cap, 4 * parameters.rto_cap);
  Duration timeout = std::min(std::max(parameters.rto_init, least), cap);
  for (std::uint32_t k = 0; k < retransmissions && timeout < cap; ++k) {
    timeout = std::min(timeout * 2, cap);
  }
  return timeout;
}

// Retransmissions of a packet that need not wait although nothing has answered the ones before.
inline constexpr std::uint32_t kQuickRetransmissions = 4;

// Trims of a packet that count for nothing. A trim is an answer, and the congestion window says
// when the packet may leave again. Further ones count as unanswered: a thousand windows of one
// packet each fill a queue for ever, and only pauses calm it.
inline constexpr std::uint32_t kQuickTrims = 8;

// The least time between two transmissions of a packet, whatever asks for the second one, after
// `unanswered` transmissions without answer. It limits repetitions of a packet that is always lost.
constexpr Duration retransmission_pause(const Parameters& parameters, std::uint32_t unanswered) {
  if (unanswered < kQuickRetransmissions) return {};
  return rto(parameters, unanswered - kQuickRetransmissions);
}

// Tail_Loss_Time as it is used; 0: never (PDS-128).
constexpr Duration tail_loss_time(const Parameters& parameters) {
  return std::min(parameters.tail_loss_time, parameters.rto_init / 32);
}

// Would one more retransmission by time-out exceed Max_RTO_Retx_Cnt (PDS-121)?
constexpr bool rto_exhausted(const Parameters& parameters, std::uint32_t retransmissions) {
  return parameters.max_rto_retransmissions != kUnlimited &&
         retransmissions >= parameters.max_rto_retransmissions;
}

// Has a packet left too often though its peer lives (PDS-121)? Quick retransmissions do not count:
// the pauses between the others last as long as a silent peer is waited for.
constexpr bool answers_exhausted(const Parameters& parameters, std::uint32_t unanswered) {
  return unanswered > kQuickRetransmissions &&
         rto_exhausted(parameters, unanswered - kQuickRetransmissions);
}

// From first transmission to failure when nothing ever answers (PDS-137).
constexpr Duration time_to_failure(const Parameters& parameters) {
  Duration total{};
  for (std::uint32_t k = 0; k <= parameters.max_rto_retransmissions; ++k) {
    total += rto(parameters, k);
  }
  return total;
}

// How long a peer may send nothing, while packets await its answer, before it counts as dead
// (PDS-121). `answers`: what its answers take; a peer that polls seldom has up to a third more.
constexpr Duration silence_limit(const Parameters& parameters, Duration answers) {
  if (parameters.max_rto_retransmissions == kUnlimited) return Duration::max();
  const Duration usual = time_to_failure(parameters);
  return std::clamp(answers, usual, usual + usual / 3);
}

// How many packets must have overtaken a lost packet (PDS-130): OOO_Threshold, or the largest
// window if that has more packets. A packet overtaken by less than a window may be on a slower
// path; before a whole window could be sent, its ACK would have come even on such a path.
// At most half of the peer's window, else so many packets could never overtake.
constexpr std::uint32_t out_of_order_threshold(const Parameters& parameters,
                                               std::uint64_t window_packets,
                                               std::uint32_t range_packets) {
  const std::uint64_t most = std::min<std::uint64_t>(window_packets, range_packets / 2);
  return std::max(parameters.out_of_order_threshold, static_cast<std::uint32_t>(most));
}

// The facts about an unacknowledged packet from which loss is inferred.
struct LossEvidence {
  std::uint32_t sacked_above = 0;   // PSNs above it that the peer has reported (PDS-130)
  std::uint32_t enough_above = 0;   // so many of them show it: out_of_order_threshold()
  bool recovering = false;          // so much was lost that few of those suffice (CMS-150)
  bool later_on_same_path = false;  // one sent after it with its entropy arrived (PDS-131)
  bool sacked = false;              // it was reported itself
  Duration since_inferred{};        // since it was last resent by inference; max if never
};

// In a recovery a packet is lost that so many later ones have overtaken.
inline constexpr std::uint32_t kRecoveryReports = 5;

// Rules A and B with their guard: at most one inferred retransmission per RTO (PDS-132).
constexpr bool presumed_lost(const Parameters& parameters, const LossEvidence& evidence) {
  if (evidence.sacked || evidence.since_inferred < parameters.rto_init) return false;
  const std::uint32_t enough = evidence.recovering
                                   ? std::min(kRecoveryReports, evidence.enough_above)
                                   : evidence.enough_above;
  return evidence.later_on_same_path || evidence.sacked_above >= enough;
}

}  // namespace uet::pds
