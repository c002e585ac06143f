// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// When a destination sends an ACK (PDS section 8.2).
#include "pds/ack_scheduler.h"

#include <algorithm>

namespace uet::pds {

namespace {

// The default of the specification, of which 16 small packets are enough. An ACK for more of them
// would take its source longer than one message takes.
constexpr std::uint32_t kTriggerOfSmall = 16384;

// PDS-219: of a window of fewer packets than may come for ACK_Gen_Trigger the source has used half
// since the last ACK. It need not ask for the next one (PDS-47).
bool uses_half_window(Psn psn, Psn reported_cack, std::int32_t range) {
  return range < std::int32_t{wire::kMprUnitPsns} && psn - reported_cack >= range / 2;
}

}  // namespace

// Counts the packet. An ACK is due because of the packet itself, or of the count.
AckScheduler::Urgency AckScheduler::due(const Parameters& parameters, const PacketMeta& packet,
                                        const Arrival& arrival, const Window& window) {
  const std::uint32_t counted =
      counted_bytes_ + std::max(arrival.payload_bytes, parameters.ack_gen_min_packet_add_bytes);
  counted_bytes_ = counted & 0x3FFF'FFFFU;
  const bool itself = packet.ar || packet.retx || arrival.syn || arrival.control ||  // PDS-93, 94
                      arrival.predecessor_missing ||                                 // PDS-230
                      (packet.ce && parameters.ack_on_ecn) ||                        // PDS-99
                      uses_half_window(packet.psn, reported_cack_, window.range);    // PDS-219
  if (itself) return Urgency::NextTurn;
  const bool small = arrival.payload_bytes <= parameters.ack_gen_min_packet_add_bytes;
  const std::uint32_t trigger = parameters.ack_gen_trigger_bytes;  // PDS-97
  if (counted < (small ? std::min(trigger, kTriggerOfSmall) : trigger)) return Urgency::AfterBytes;
  return small ? Urgency::BehindReply : Urgency::NextTurn;
}

// PDS-98. Remembers a packet that requests an ACK above a gap.
bool AckScheduler::closes_gap_below_ar(const PacketMeta& packet, Psn cack) {
  const bool closed = has_ar_behind_gap_ && cack >= ar_behind_gap_;
  if (closed) has_ar_behind_gap_ = false;
  if (packet.ar && packet.psn > cack) {
    ar_behind_gap_ = has_ar_behind_gap_ ? std::max(ar_behind_gap_, packet.psn) : packet.psn;
    has_ar_behind_gap_ = true;
  }
  return closed;
}

// A guaranteed response holds CACK until its CLEAR has come and been answered. The source asks for
// an ACK of all up to a packet with AR, and may have to do without that answer: an application that
// has all it wants may make no more progress. So each packet behind the response has an ACK of its
// own, also one that arrives after the packet with AR (PDS-232).
AckScheduler::Plan AckScheduler::consumed(const Parameters& parameters, const PacketMeta& packet,
                                          const Arrival& arrival, const Window& window) {
  const bool closed = closes_gap_below_ar(packet, window.cack);
  const Urgency counted = due(parameters, packet, arrival, window);
  const Urgency urgency = closed ? Urgency::NextTurn : counted;
  const bool asked_before = arrival.behind_held && packet.psn < own_acks_;
  Plan plan;
  plan.uncovered_from = packet.psn;
  if (!arrival.guaranteed && !arrival.behind_held) {
    plan.urgency = urgency;
    return plan;
  }
  if (urgency == Urgency::AfterBytes && !arrival.guaranteed && !asked_before) return plan;
  plan.urgency = Urgency::Now;
  plan.waiting_first = arrival.ordered;
  if (arrival.behind_held && packet.ar) {
    plan.uncovered_from = std::max(own_acks_, window.cack) + 1;
    own_acks_ = std::max(own_acks_, packet.psn);
  }
  return plan;
}

// Packets in the reorder buffer cause ACKs as often as packets in order. Otherwise they stay in
// flight for the source, whose window may have no space left for the missing packet.
AckScheduler::Gap AckScheduler::early(const Parameters& parameters, const PacketMeta& packet,
                                      const Arrival& arrival, Psn gap, const Window& window) {
  PacketMeta unmarked = packet;
  unmarked.ce = false;
  const bool is_due = due(parameters, unmarked, arrival, window) != Urgency::AfterBytes;
  const bool first = reports_gap(gap);
  return {.ack = is_due || first, .nack = first};
}

bool AckScheduler::cleared(Psn clear_psn, const Window& window) {
  // If CACK jumped over PSNs above CLEAR_PSN, the source must learn it if it has asked: the ACK for
  // the AR left with the older CACK, and no other would follow.
  const bool asked = has_ar_behind_gap_ && ar_behind_gap_ > clear_psn && window.cack > clear_psn;
  if (window.cack >= ar_behind_gap_) has_ar_behind_gap_ = false;
  // A source whose window was held by guaranteed responses must learn that it moved on.
  const bool far = window.cack - reported_cack_ >= window.range / 4;
  return (asked || far) && waiting_ == nullptr;
}

bool AckScheduler::owe(Memory& memory, const PacketMeta& packet, const Response& response) {
  if (waiting_ == nullptr) waiting_ = memory.take();
  if (waiting_ == nullptr) return false;
  const bool marked = waiting_->meta.ce;
  waiting_->meta = packet;
  waiting_->meta.ce |= marked;
  waiting_->response.assign(response);
  return true;
}

}  // namespace uet::pds
