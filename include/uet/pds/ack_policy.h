// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// When an ACK leaves (PDS section 8.2). Decides only whether one is due; Pdc builds it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "uet/pds/packet_meta.h"
#include "uet/pds/parameters.h"

namespace uet::pds {

// Further facts about a request packet at its delivery.
struct Arrival {
  bool syn = false;
  bool control = false;              // a control packet that consumes a PSN
  bool out_of_order = false;         // it opened or widened a gap: the source can infer loss early
  bool filled_gap_below_ar = false;  // PDS-98
  bool half_window = false;          // so much of it has come since the last ACK
  std::uint32_t payload_bytes = 0;
};

class AckPolicy {
 public:
  // Counts the arrival; true if an ACK is due now.
  bool due(const Parameters& parameters, const PacketMeta& packet, const Arrival& arrival) {
    gen_count_ += std::max(arrival.payload_bytes, parameters.ack_gen_min_packet_add_bytes);
    return packet.ar || arrival.syn || packet.retx || arrival.control ||  // PDS-93, 94, 96
           arrival.out_of_order || arrival.filled_gap_below_ar ||         // PDS-98
           arrival.half_window ||                                         // PDS-219
           (packet.ce && parameters.ack_on_ecn) ||                        // PDS-99
           gen_count_ >= parameters.ack_gen_trigger_bytes;                // PDS-97
  }
  // Any ACK restarts the count (PDS-97).
  void on_ack_sent() { gen_count_ = 0; }

 private:
  std::uint32_t gen_count_ = 0;  // ACK_GEN_COUNT
};

}  // namespace uet::pds
