// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a PDC has to send, its windows, and the control packets of the sending side.
// Must not know SES headers, sockets or clocks.
#include "pds/send_side.h"

#include <algorithm>

#include "pds/credits.h"
#include "pds/loss_recovery.h"
#include "pds/retransmit.h"
#include "pds/transmission.h"

namespace uet::pds {

namespace {

// MP_RANGE of a peer that has not said one.
std::uint16_t assumed_range(const Environment& env, const FepAddress& peer) {
  const std::uint16_t assumed = range_psns(env.parameters, env.parameters.default_mpr);
  const std::uint16_t known = env.peer_limits.range(peer);
  return known > 0 ? std::min(assumed, known) : assumed;
}

}  // namespace

SendSide::SendSide(PdcCore& core, Time now)
    : core_(core),
      outstanding_(core.env().tx_records, core.start_psn()),
      peer_window_(core.start_psn(), assumed_range(core.env(), core.destination().address)),
      loss_(core.start_psn(), now) {
  const bool knows_credit =
      !env().peer_limits.refuses(core.destination().address, wire::CpType::CreditRequest);
  if (ccc().credit != nullptr && !knows_credit) ccc().credit->fall_back();
}

LossContext SendSide::loss_context() const {
  return {.parameters = env().parameters,
          .cms = env().cms,
          .ccc = *ccc().ccc,
          .history = ccc().inferences,
          .range_psns = peer_window_.range(),
          .recovers_midway = ccc().recovers_midway,
          .ordered = core_.ordered(),
          .creating = core_.state() == PdcState::Creating};
}

bool SendSide::went_only_to(std::uint16_t connection) {
  bool any = false;
  for (Psn psn = window().base(); psn != window().next_psn(); ++psn) {
    const TxRecord* record = window().find(psn);
    if (record == nullptr || record->packet->way.connection == 0) continue;
    if (record->packet->way.connection != connection) return false;
    any = true;
  }
  return any;
}

// ---- what SES gives -----------------------------------------------------------------------------

void SendSide::enqueue(Message& message, Time now) {
  backlog_.push(core_, message, now);
  core_.make_ready();
}

void SendSide::request_acks_now() {
  backlog_.expect_prompt_acks();
  ask_for_tail(*this);
}

void SendSide::discard() {
  outstanding_.release_all(core_);
  while (!backlog_.empty()) backlog_.forget(core_, backlog_.pop_front());
}

void SendSide::fail_all(const Ending& ending, Time now) {
  for (Psn psn = window().base(); psn != window().next_psn(); ++psn) {
    TxRecord* record = window().find(psn);
    if (record == nullptr) continue;
    Message* message = record->message;
    const std::uint32_t tag = record->tag;
    const bool unread = ending.lost != nullptr && ending.lost->left_unread(record->packet->way);
    const bool behind = ending.nothing_behind && ending.not_consumed &&
                        psn > *ending.not_consumed && ending.is_fresh(record->sent_count) &&
                        !record->sacked;
    const bool unconsumed = unread || behind || psn == ending.not_consumed;
    outstanding_.release(core_, *record);
    if (message == nullptr) continue;
    message->owner->pds_error(*message, tag, unconsumed ? PdsError::NotConsumed : ending.error,
                              now);
  }
  window().slide();
  outstanding_.reconcile(core_);
  while (!backlog_.empty()) {
    Message& message = backlog_.pop_front();
    backlog_.forget(core_, message);
    message.owner->message_failed(
        message, ending.backlog_not_consumed ? PdsError::NotConsumed : ending.error, now);
  }
  wake_waiters(ccc());
}

// ---- windows ------------------------------------------------------------------------------------

bool SendSide::within_peer_window(Psn psn) const {
  if (core_.state() == PdcState::Creating &&
      psn - core_.start_psn() > static_cast<std::int32_t>(wire::kMaxPsnOffset)) {
    return false;
  }
  return peer_window_.allows(psn);
}

void SendSide::await_window(Time now) {
  core_.bring_forward(PdcCore::kResend, now + rto(env().parameters, 0));
}

void SendSide::on_credit(std::uint32_t credit, Time now) {
  if (ccc().credit == nullptr) return;
  ccc().credit->on_credit(credit, now);
  wake_waiters(ccc());
}

void SendSide::note_request_known() {
  context_known_ |= ccc().credit != nullptr && ccc().credit->asks_for_credit();
}

// ---- control packets ----------------------------------------------------------------------------

bool SendSide::send_control(wire::CpType type, Time now) {
  const Psn psn = window().next_psn();
  if (window().full() || !within_peer_window(psn)) return false;
  if (env().peer_limits.refuses(core_.destination().address, type)) return false;  // PDS-221
  if (!core_.may_send(cms::nominal_packet_bytes(sizeof(wire::PdsControl)))) return false;
  Packet* packet = core_.take_packet(true);
  if (packet == nullptr) return false;
  packet->reset();
  TxRecord& record = window().put();
  record.packet = packet;
  record.ctl_type = type;
  transmit(*this, psn, record, false, now);
  return true;
}

// PDS-116: a lost one is repaired by what follows (PDS-118).
void SendSide::send_clear_command() {
  const wire::ControlHeader clear{.ctl_type = wire::CpType::Clear,
                                  .payload = window().clear_psn().value};
  if (core_.send_untracked(clear)) clear_.paid();
}

void SendSide::clear_at_once() {
  clear_.pay_at_once();
  core_.make_ready();
}

// PDS-62: a peer opens nothing for a packet that was trimmed. ROD opens with its first one only.
bool SendSide::open_without_data(Time now) {
  const bool can = core_.state() == PdcState::Creating && !core_.ordered();
  if (!can || outstanding_.empty() || opened_without_data_) return false;
  opened_without_data_ = send_control(wire::CpType::Noop, now);
  return opened_without_data_;
}

Time SendSide::queue_resend(Psn psn, TxRecord& record, Time now) {
  UET_ASSERT(window().holds(psn));
  (void)psn;
  const Time allowed = loss_.may_leave(env().parameters, record);
  record.not_before = Time{};
  if (!record.resend) {
    // A packet that is to be given up waits for check_all, whatever asks for its resending: an
    // inference (PDS-132) may ask for it before each time-out.
    if (now < allowed || loss_.gives_up(env().parameters, record)) {
      const Time judged = std::max(now, allowed);
      record.not_before = judged;
      core_.bring_forward(PdcCore::kResend, judged);
      return judged;
    }
    outstanding_.queue(core_, record);
  }
  core_.make_ready();
  return kNever;
}

// ---- the peer -----------------------------------------------------------------------------------

void SendSide::heard(Time now) {
  core_.note_activity(now);
  peer_window_.heard();
  if (!loss_.heard(now)) return;
  core_.bring_forward(PdcCore::kResend, now + rto(env().parameters, 0));
}

void SendSide::learn_peer(PdcId peer_id, Time now) {
  if (core_.establish(peer_id)) release_held(now);
}

// The target has a PDC now. No packet leaves sooner after its last transmission than after a NACK:
// by then the target has reported the packets that it has.
void SendSide::release_held(Time now) {
  if (!outstanding_.holds_data()) return;
  outstanding_.end_hold();
  for (Psn psn = window().base(); psn != window().next_psn(); ++psn) {
    TxRecord* record = window().find(psn);
    if (record == nullptr || !Outstanding::is_held(*record)) continue;
    const Time allowed = record->last_sent + env().parameters.nack_retransmission_time;
    outstanding_.send_later(core_, *record, allowed);
    if (now >= allowed) queue_resend(psn, *record, now);
  }
  core_.make_ready();
}

// PDS-76: the target has accepted nothing yet, so that all outstanding packets move by the same
// distance, in order, and are sent again.
bool SendSide::rebase(Psn start_psn, Time now) {
  if (rto_exhausted(env().parameters, rebases_++)) return false;
  outstanding_.end_hold();
  window().rebase(start_psn);
  core_.move_start(start_psn);
  peer_window_.rebase(start_psn);
  loss_.rebase(start_psn);
  for (Psn psn = window().base(); psn != window().next_psn(); ++psn) {
    TxRecord* record = window().find(psn);
    if (record == nullptr) continue;
    record->rto_count = record->nack_count = record->unanswered = 0;
    outstanding_.flight().refused(*ccc().ccc, *record);
    ++env().counters.nack_retransmissions;
    ++core_.peer_counts().nack_retransmissions;
    queue_resend(psn, *record, now);
  }
  outstanding_.reconcile(core_);
  wake_waiters(ccc());
  return true;
}

}  // namespace uet::pds
