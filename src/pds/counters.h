// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What PDS counts, per FEP. Every packet that is not delivered is counted somewhere. Names and
// meanings for people: src/fep/stats.cc, which needs a row for each member.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "uet/wire/pds.h"

namespace uet::pds {

// How many NACKs, by their code. Codes without a definition have one count together.
class NackCounts {
 public:
  using value_type = std::uint64_t;
  using const_iterator = const std::uint64_t*;

  std::uint64_t& operator[](std::size_t code) { return counts_[place(code)]; }
  std::uint64_t operator[](std::size_t code) const { return counts_[place(code)]; }
  const_iterator begin() const { return counts_.data(); }
  const_iterator end() const { return counts_.data() + counts_.size(); }

 private:
  static constexpr auto kLow = static_cast<std::size_t>(wire::NackCode::RcvrInferLoss) + 1;
  static constexpr auto kHigh = static_cast<std::size_t>(wire::NackCode::ExpNormal);

  static constexpr std::size_t place(std::size_t code) {
    if (code < kLow) return code;
    return code >= kHigh ? kLow + code - kHigh : kLow + 256 - kHigh;
  }

  std::array<std::uint64_t, kLow + 256 - kHigh + 1> counts_{};
};

struct Counters {
  std::uint64_t packets_received = 0;
  std::uint64_t malformed = 0;          // did not parse
  std::uint64_t unsupported_type = 0;   // reserved: no receiver for it
  std::uint64_t protected_dropped = 0;  // sealed by a peer, and this FEP is in clear
  std::uint64_t requests_delivered = 0;
  std::uint64_t duplicates_dropped = 0;  // PDS-206
  std::uint64_t duplicates_acked = 0;    // PDS-203, PDS-204
  std::uint64_t rod_buffered = 0;        // PDS-164
  std::uint64_t acks_sent = 0;
  std::uint64_t acks_received = 0;
  std::uint64_t acks_invalid = 0;   // PDS-108 steps 1 to 3
  std::uint64_t stray_packets = 0;  // for a tombstone or an unknown PDC
  // Authentic, but of another secure domain than the PDC, tombstone or RUDI request (TSS-11).
  std::uint64_t binding_failures = 0;
  std::uint64_t pending_expired = 0;     // peers that took no Start_PSN in New_PDC_Time (PDS-75)
  std::uint64_t replayable_refused = 0;  // RUDI and UUD packets where they are off (TSS-50)
  NackCounts nacks_sent, nacks_received;
  std::uint64_t nacks_ignored = 0;  // PDS-141, PDS-144
  std::uint64_t requests_sent = 0;  // first transmissions
  std::uint64_t rto_retransmissions = 0;
  std::uint64_t reroutes = 0;  // CMS-401
  std::uint64_t nack_retransmissions = 0;
  std::uint64_t inferred_loss_retransmissions = 0;
  std::uint64_t lost_rail_retransmissions =
      0;  // inferred losses whose cause is a lost rail (PDS-227)
  std::uint64_t inferred_losses_spurious = 0;  // arrived after all (CMS-421)
  std::uint64_t ack_requests_sent = 0;
  std::uint64_t probes_sent = 0;
  std::uint64_t pdcs_opened = 0;
  std::uint64_t pdcs_accepted = 0;
  std::uint64_t pdcs_closed = 0;
  std::uint64_t pdcs_failed = 0;
  std::uint64_t additional_pdcs_refused = 0;  // PDS-237
  std::uint64_t pdcs_unproved_dropped = 0;    // for lack of PDCs, before their peer answered
  std::uint64_t pdcs_uncleared_closed = 0;    // for lack of stored responses
  std::uint64_t close_in_error = 0;
  std::uint64_t datagrams_sent = 0;          // UUD packets made
  std::uint64_t datagrams_received = 0;      // given to SES, which counts what it drops
  std::uint64_t rudi_requests_sent = 0;      // first transmissions
  std::uint64_t rudi_requests_received = 0;  // given to SES, copies included (PDS-184)
  std::uint64_t rudi_responses_sent = 0;
  std::uint64_t rudi_unproved_refused = 0;  // reads of sources that may be invented (PDS-222)
  std::uint64_t datagrams_trimmed = 0;      // arrived without payload: dropped
  std::uint64_t trimmed_received = 0;       // packets of any type that a switch had trimmed
  std::uint64_t marked_received = 0;        // ECN CE
  std::uint64_t credits_sent = 0;           // Credit control packets
  std::uint64_t credits_received = 0;
  std::uint64_t credit_requests_sent = 0;
  std::uint64_t credit_requests_received = 0;
  std::uint64_t credit_ignored = 0;    // of both kinds: RCCC is off, or no request named a context
  std::uint64_t credit_fallbacks = 0;  // contexts whose peer grants nothing (CMS-241)
  std::uint64_t credit_granted_bytes = 0;  // to peers
  std::uint64_t pend_sent = 0;             // ACKs with rcv_cwnd_pend (CMS-300)
  std::uint64_t restores_sent = 0;         // ACKs with the restore bit
  // Time, in ns, that data waited for a reason: added up when the wait ends. Several may wait at
  // once, one for each congestion context or, for the peer's window, PDC.
  std::uint64_t blocked_by_window_ns = 0;       // congestion window
  std::uint64_t blocked_by_credit_ns = 0;       // credit of the receiver
  std::uint64_t blocked_by_peer_window_ns = 0;  // mpr (PDS-40)
  std::uint64_t blocked_by_nic_ns = 0;          // the NIC took no more
  std::uint64_t no_packet = 0;      // ACKs and NACKs without packet buffer or space in the outbox
  std::uint64_t rto_exhausted = 0;  // PDCs and RUDI packets given up (PDS-134)
};

}  // namespace uet::pds
