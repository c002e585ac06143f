// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How a PDC acts on the verdicts of its LossDetector.
#include <algorithm>
#include <optional>

#include "uet/cms/rtt.h"
#include "uet/pds/pdc.h"
#include "uet/pds/retransmit.h"

namespace uet::pds {

using LossVerdict = LossDetector::Verdict;

LossContext Pdc::loss_context() {
  return {.parameters = env_.parameters,
          .cms = env_.cms,
          .ccc = *ccc_.ccc,
          .history = ccc_.inferences,
          .range_psns = window_.range(),
          .recovers_midway = ccc_.recovers_midway,
          .ordered = destination_.mode == DeliveryMode::Rod,
          .creating = state_ == PdcState::Creating};
}

// Returns when to look again.
Time Pdc::infer_losses(bool by_ack, Time now) {
  const LossContext at = loss_context();
  LossDetector::Look look = loss_.overtaken(at, tx_, by_ack, env_.losses, now);
  send_lost_again(now);
  if (by_ack && loss_.begin_recovery(at, tx_, look.reported)) {
    look = loss_.overtaken(at, tx_, by_ack, env_.losses, now);
    send_lost_again(now);
  }
  return look.again;
}

void Pdc::send_lost_again(Time now) {
  for (const Psn psn : env_.losses.lost) {
    TxRecord& record = tx_.at(psn);
    ++env_.counters.inferred_loss_retransmissions;
    mark_lost(record, cms::LossCause::Path, now);
    queue_resend(psn, record, now);
  }
}

void Pdc::on_silence(Time now) {
  const Time probe = look_for_silence(now);  // first: what is asked for now has not been silent
  set_deadline(kSilence, std::min(probe, look_for_tail(now)));
}

// A peer that has not answered yet could not be asked.
TxRecord* Pdc::tail_to_ask_for() {
  return state_ == PdcState::Creating ? nullptr : unasked_tail(tx_);
}

// The ACK of the tail covers all packets before it, too.
void Pdc::ask_for_tail() {
  TxRecord* tail = tail_to_ask_for();
  if (tail != nullptr && send_ack_request(tx_.next_psn() - 1)) tail->ar = tail->asked = true;
}

// PDS-128. Returns when to look again.
Time Pdc::look_for_tail(Time now) {
  const Duration wait = tail_loss_time(env_.parameters);
  if (!backlog_.empty() || tail_to_ask_for() == nullptr) return kNever;
  const Time due = loss_.last_data_sent() + wait;
  if (now < due) return due;
  ask_for_tail();
  return now + wait;
}

// CMS-151. Returns when to look again.
Time Pdc::look_for_silence(Time now) {
  const LossDetector::Outstanding outstanding{
      .nothing = tx_.empty(),
      .more_to_send = !backlog_.empty(),
      .unasked_tail = backlog_.empty() && tail_to_ask_for() != nullptr,
      .may_ask = state_ == PdcState::Established && flight_.bytes() > 0};
  const LossDetector::Silence silence = loss_.silence(loss_context(), outstanding, now);
  if (silence.ask) {
    const wire::ControlHeader probe{.ctl_type = wire::CpType::Probe,
                                    .ar = true,
                                    .probe_opaque = LossDetector::probe_opaque(now),
                                    .payload = (window_.cack() + 1).value};
    if (send_untracked(probe, true)) {
      ++env_.counters.probes_sent;
      loss_.probe_left(now);
    }
  }
  return silence.again;
}

void Pdc::on_recovery_answer(const wire::AckHeader& ack, Time arrived, Time now) {
  const std::optional<Time> sent = loss_.probe_answered(ack.probe_opaque);
  if (!sent) return;
  on_silence(now);
  const auto rtt = cms::rtt_sample(1, false, *sent, arrived, ack.service_time);
  loss_.missed_by_probe(loss_context(), tx_, *sent, rtt, env_.losses, now);
  send_lost_again(now);
}

// When this record must be looked at again; empty if the PDC has to fail.
std::optional<Time> Pdc::check_record(Psn psn, TxRecord& record, bool first, bool asks, Time now) {
  const LossDetector::Standing standing{
      .first = first, .asks = asks, .in_window = within_peer_window(psn)};
  const auto [verdict, again] = loss_.check(loss_context(), tx_, psn, record, standing, now);
  switch (verdict) {
    case LossVerdict::Wait:
      break;
    case LossVerdict::Resend:
      return queue_resend(psn, record, now);
    case LossVerdict::OutsideWindow:
      if (!record.sacked) mark_lost(record, cms::LossCause::OutOfOrder, now);
      break;
    case LossVerdict::NotSent:
      if (record.sent_count == 1) extend_close(now);  // the peer has not been asked yet
      break;
    case LossVerdict::Ask:
      send_ack_request(psn);
      break;
    case LossVerdict::TimedOut: {
      ++env_.counters.rto_retransmissions;
      if (psn == tx_.base()) leave_silent_path(now);
      const bool repeated = record.rto_count > 1;
      mark_lost(record, repeated ? cms::LossCause::RepeatedRto : cms::LossCause::Rto, now);
      return queue_resend(psn, record, now);
    }
    case LossVerdict::Dead:
      return std::nullopt;
  }
  return again;
}

}  // namespace uet::pds
