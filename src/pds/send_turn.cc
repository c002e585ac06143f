// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a turn of a PDC sends: lost packets and new ones, within the windows.
// Must not know SES headers, sockets or clocks.
#include "pds/send_turn.h"

#include <algorithm>
#include <utility>

#include "pds/credits.h"
#include "pds/loss_recovery.h"
#include "pds/retransmit.h"
#include "pds/transmission.h"

namespace uet::pds {

namespace {

constexpr std::size_t kRequestBytes = sizeof(wire::PdsRequest);
constexpr std::uint32_t kLargestHeaders = 128;
// One of so many messages without prompt ACK requests an ACK: as many short ones as make their peer
// send an ACK by itself (ACK_Gen_Trigger, PDS-97).
constexpr std::uint32_t kMostSharing = 16;

}  // namespace

// PDS-128. Credit comes with ACKs.
bool SendTurn::shares_ack(const Message& message, Psn psn) const {
  return !message.prompt_ack && psn.value % kMostSharing != 0 &&
         core_.state() == PdcState::Established && ccc().credit == nullptr &&
         env().parameters.tail_loss_time > Duration{};
}

// PDS-101 tails, PDS-47 half of the window, PDS-100 per packet, CMS-124 small congestion window.
bool SendTurn::wants_ack(bool tail, std::uint32_t nominal_bytes) const {
  const std::size_t span = side_.window().span();
  const std::size_t range =
      std::min(side_.window().capacity(), static_cast<std::size_t>(side_.peer_window().range()));
  return tail || env().parameters.ack_per_packet || span == range / 2 || span == range ||
         ccc().ccc->wants_ack(nominal_bytes, side_.outstanding().unasked());
}

// A packet of the backlog may be made now. If not, what it waits for is noted.
bool SendTurn::may_make_packet() {
  if (side_.window().full() || side_.outstanding().holds_data()) return false;
  if (!side_.within_peer_window(side_.window().next_psn())) {
    side_.wait().begin_for_peer(now_);
    // Nothing outstanding, so no ACK will come by itself to tell that CACK has moved on.
    if (side_.outstanding().empty()) side_.await_window(now_);
    return false;
  }
  if (!ccc().ccc->may_send(env().cms.mtu_bytes)) {
    wait_for_ccc();
    return false;
  }
  if (core_.proved()) return true;
  const std::uint64_t largest = side_.backlog().front().backlog_bytes + kLargestHeaders;
  return core_.may_send(
      static_cast<std::uint32_t>(std::min<std::uint64_t>(env().cms.mtu_bytes, largest)));
}

void SendTurn::wait_for_ccc() {
  side_.wait().begin_for_ccc(core_, now_);
  if (!side_.backlog().empty() && !side_.backlog().front().prompt_ack) ask_for_tail(side_);
}

// nullptr: the next packet cannot be made now.
Packet* SendTurn::take_packet() {
  if (!may_make_packet()) return nullptr;
  Packet* packet = core_.take_packet(false);
  if (packet == nullptr) {
    env().packets_short = true;
    core_.make_ready();  // packets come back as peers acknowledge
    return nullptr;
  }
  packet->reset();
  return packet;
}

bool SendTurn::send_new() {
  if (!new_may_leave_) return true;
  Backlog& backlog = side_.backlog();
  for (; !backlog.empty(); --budget_) {
    if (budget_ == 0) return false;
    Packet* packet = take_packet();
    if (packet == nullptr) break;
    Message& message = backlog.front();
    PreparedPacket prepared;
    const PacketPlan plan = message.owner->next_packet(message, *packet, prepared);
    if (plan == PacketPlan::NotNow) {
      env().packets.give_back(packet);
      break;
    }
    const bool last = plan == PacketPlan::Last;
    if (last) backlog.remove(message);  // PDS-8: only then the next one starts
    const Psn psn = side_.window().next_psn();
    TxRecord& record = side_.window().put();
    record.packet = packet;
    record.message = &message;
    record.tag = prepared.tag;
    record.next_hdr = prepared.next_hdr;
    const auto header_bytes = static_cast<std::uint32_t>(kRequestBytes);
    record.ar = wants_ack(last && !shares_ack(message, psn),
                          cms::nominal_packet_bytes(packet->length() + header_bytes));
    ++env().counters.requests_sent;
    transmit(side_, psn, record, false, now_);
    // After the target of its header was made: the packet counts as waiting there.
    backlog.sent(core_, message, record.nominal_bytes, last);
  }
  return true;
}

// ---- packets that leave again -------------------------------------------------------------------

bool SendTurn::send_lost() {
  Outstanding& outstanding = side_.outstanding();
  if (outstanding.queued() == 0) return true;
  const bool ordered = core_.ordered();
  const Resent lost = resend(ordered ? Resends::All : Resends::NotRefused);
  if (lost == Resent::NoBudget) return false;
  if (lost == Resent::All && (outstanding.queued() == 0 || outstanding.refused_went())) {
    new_before_refused_ = side_.window().next_psn();
    return true;
  }
  new_may_leave_ = false;
  if (outstanding.queued() == 0 || ordered) return true;
  if (!resend_refused()) return false;
  new_may_leave_ = outstanding.queued() == 0;
  return true;
}

bool SendTurn::send_refused() {
  if (!new_before_refused_) return true;
  Outstanding& outstanding = side_.outstanding();
  if (side_.window().next_psn() != *new_before_refused_) outstanding.set_refused_went(false);
  if (outstanding.queued() == 0 || core_.ordered()) return true;
  return resend_refused();
}

bool SendTurn::resend_refused() {
  Outstanding& outstanding = side_.outstanding();
  const std::size_t waiting = outstanding.queued();
  const Resent refused = resend(Resends::Refused);
  if (outstanding.queued() < waiting) outstanding.set_refused_went(true);
  return refused != Resent::NoBudget;
}

// Sends those that were found lost.
SendTurn::Resent SendTurn::resend(Resends which) {
  bool data_waits = false;
  bool oldest = true;  // of those that the peer has not reported
  for (Psn psn = side_.window().base();
       side_.outstanding().queued() > 0 && psn != side_.window().next_psn(); ++psn) {
    TxRecord* record = side_.window().find(psn);
    if (record == nullptr || record->sacked) continue;
    const bool is_oldest = std::exchange(oldest, false);
    if (!record->resend) continue;
    const bool refused = record->nack_count > 0 && record->rto_epoch == side_.loss().rto_epoch();
    if (which != Resends::All && refused != (which == Resends::Refused)) continue;
    if (budget_ == 0) return Resent::NoBudget;
    if (!core_.may_send(record->nominal_bytes)) return Resent::Some;
    if (!side_.within_peer_window(psn))
      return Resent::Some;  // PDS-42, PDS-127: until mpr allows it
    const bool data = record->message != nullptr;
    if (data && data_waits) continue;
    if (data && !may_resend_data(is_oldest)) {
      // Only there does a control packet stand behind it, which needs no leave (CMS-14).
      if (core_.state() != PdcState::Creating || !side_.opened_without_data()) return Resent::Some;
      data_waits = true;
      continue;
    }
    const std::uint32_t waited = record->nominal_bytes;
    side_.outstanding().take_from_queue(*record);
    --budget_;
    transmit(side_, psn, *record, true, now_);
    if (data) side_.outstanding().reconcile_credit(core_, waited);
  }
  return data_waits ? Resent::Some : Resent::All;
}

// CMS-12. Packets that the peer holds but has not reported may fill the window, and they are
// reported only when the oldest one arrives: once per RTO it goes anyway (PDS-119). Credit has
// nothing to do with what is under way, and many that go without it would leave none of it to use.
bool SendTurn::may_resend_data(bool oldest) {
  if (ccc().ccc->may_send(env().cms.mtu_bytes)) return true;
  const bool for_credit = ccc().credit != nullptr && ccc().credit->lacks_credit();
  const Time overdue =
      for_credit ? kNever : side_.loss().last_data_sent() + rto(env().parameters, 0);
  if (oldest && now_ >= overdue) return true;
  wait_for_ccc();
  // Another packet than the oldest waits for that one, which has a timer of its own.
  if (now_ < overdue) core_.bring_forward(PdcCore::kResend, overdue);
  return false;
}

}  // namespace uet::pds
