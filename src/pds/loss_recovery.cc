// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How a PDC acts on the verdicts of its LossDetector.
#include "pds/loss_recovery.h"

#include <algorithm>

#include "cms/rtt.h"
#include "pds/lost_rail.h"
#include "pds/retransmit.h"

namespace uet::pds {

using LossVerdict = LossDetector::Verdict;

namespace {

// A peer that has not answered yet could not be asked.
bool may_be_asked(SendSide& side) { return side.core().state() != PdcState::Creating; }

std::optional<Psn> tail_to_ask_for(SendSide& side) {
  return may_be_asked(side) ? unasked_tail(side.window()) : std::nullopt;
}

void ask_for(SendSide& side, std::optional<Psn> psn) {
  if (!psn || !side.core().send_ack_request(*psn)) return;
  TxRecord& record = side.window().at(*psn);
  record.ar = record.asked = true;
}

}  // namespace

void ask_for_tail(SendSide& side) { ask_for(side, tail_to_ask_for(side)); }

Time LossRecovery::infer_losses(bool by_ack) {
  const LossContext at = side_.loss_context();
  LossScratch& scratch = core_.env().losses;
  LossDetector::Look look = side_.loss().overtaken(at, side_.window(), by_ack, scratch, now_);
  send_lost_again();
  if (by_ack && side_.loss().begin_recovery(at, side_.window(), look.reported, now_)) {
    look = side_.loss().overtaken(at, side_.window(), by_ack, scratch, now_);
    send_lost_again();
  }
  return look.again;
}

void LossRecovery::send_lost_again() {
  for (const Psn psn : core_.env().losses.lost) {
    TxRecord& record = side_.window().at(psn);
    ++core_.env().counters.inferred_loss_retransmissions;
    ++core_.peer_counts().inferred_loss_retransmissions;
    note_in_trace(trace::Loss::Inferred, psn, record);
    side_.outstanding().lost(core_, record, cms::LossCause::Path, now_);
    side_.queue_resend(psn, record, now_);
  }
}

void LossRecovery::note_in_trace(trace::Loss why, Psn psn, const TxRecord& record) {
  core_.env().trace.write(trace::Kind::Lost, static_cast<unsigned>(why), core_.id(), psn,
                          static_cast<std::uint64_t>((now_ - record.last_sent).count()),
                          std::uint64_t{record.entropy} << 32 | record.sent_count);
}

// ---- silence ------------------------------------------------------------------------------------

void LossRecovery::on_silence() {
  const Time probe = look_for_silence();  // first: what is asked for now has not been silent
  const Time tail = std::min(look_for_tail(), look_at_closed_window());
  core_.set_deadline(PdcCore::kSilence, std::min(probe, tail));
}

// PDS-128. Returns when to look again.
Time LossRecovery::look_for_tail() {
  const Duration wait = tail_loss_time(core_.env().parameters);
  if (!side_.backlog().empty() || !tail_to_ask_for(side_)) return kNever;
  const Time due = side_.loss().last_data_sent() + wait;
  if (now_ < due) return due;
  ask_for_tail(side_);
  return now_ + wait;
}

void LossRecovery::on_closed_window() {
  core_.bring_forward(PdcCore::kSilence, look_at_closed_window());
}

// PDS-128. If more is in flight, the peer sends an ACK by itself (PDS-97). Returns when to look
// again.
Time LossRecovery::look_at_closed_window() {
  const Outstanding& outstanding = side_.outstanding();
  const std::int64_t in_flight = outstanding.flight().bytes();
  if (side_.backlog().empty() && outstanding.queued() == 0) return kNever;
  if (in_flight <= 0 || in_flight >= core_.env().parameters.ack_gen_trigger_bytes) return kNever;
  const SharedCcc& shared = core_.ccc();
  if (shared.ccc->may_send(core_.env().cms.mtu_bytes)) return kNever;
  const std::optional<cms::RecoveryRules> rules = shared.ccc->recovery();
  if (!rules || !may_be_asked(side_)) return kNever;
  const LossDetector& loss = side_.loss();
  const Time due = std::max(loss.peer_lived(), loss.last_data_sent()) + rules->silence_at_end;
  if (now_ < due) return due;
  ask_for(side_, unasked_in_flight(side_.window()));
  return kNever;
}

// CMS-151. Returns when to look again.
Time LossRecovery::look_for_silence() {
  const bool more = !side_.backlog().empty();
  const LossDetector::Outstanding outstanding{
      .nothing = side_.outstanding().empty(),
      .more_to_send = more,
      .unasked_tail = !more && tail_to_ask_for(side_).has_value(),
      .may_ask =
          core_.state() == PdcState::Established && side_.outstanding().flight().bytes() > 0};
  const LossDetector::Silence silence =
      side_.loss().silence(side_.loss_context(), outstanding, now_);
  if (silence.ask) {
    const wire::ControlHeader probe{.ctl_type = wire::CpType::Probe,
                                    .ar = true,
                                    .probe_opaque = LossDetector::probe_opaque(now_),
                                    .payload = (side_.peer_window().cack() + 1).value};
    if (core_.send_untracked(probe, true)) {
      ++core_.env().counters.probes_sent;
      side_.loss().probe_left(now_);
    }
  }
  return silence.again;
}

void LossRecovery::on_probe_answer(const wire::AckHeader& ack, Time arrived) {
  const std::optional<Time> sent = side_.loss().probe_answered(ack.probe_opaque);
  if (!sent) return;
  on_silence();
  const auto rtt = cms::rtt_sample({.sent = 1, .latest = *sent}, false, arrived, ack.service_time);
  side_.loss().presume_lost_before_probe(side_.loss_context(), side_.window(), *sent, rtt,
                                         core_.env().losses, now_);
  send_lost_again();
}

// ---- a rail is lost -----------------------------------------------------------------------------

// The retransmissions ask for ACKs, which say what has arrived of all that is outstanding.
void LossRecovery::on_lost_rail(std::uint8_t rail) {
  TxWindow& window = side_.window();
  bool leaves_again = false;
  std::optional<Psn> newest;  // of those that went by other rails
  for (Psn psn = window.base(); psn != window.next_psn(); ++psn) {
    TxRecord* record = window.find(psn);
    if (record == nullptr || record->waits_for_nic()) continue;
    if (record->sacked || !took_rail(*record->packet, rail)) {
      newest = psn;
      continue;
    }
    if (record->resend || record->not_before != Time{}) continue;
    ++core_.env().counters.lost_rail_retransmissions;
    ++core_.env().counters.inferred_loss_retransmissions;
    ++core_.peer_counts().inferred_loss_retransmissions;
    note_in_trace(trace::Loss::Rail, psn, *record);
    record->excused = true;
    side_.outstanding().flight().refused(*core_.ccc().ccc, *record);
    side_.queue_resend(psn, *record, now_);
    leaves_again = true;
  }
  if (newest && !leaves_again && core_.state() != PdcState::Creating) {
    core_.send_ack_request(*newest);
  }
}

// ---- time-outs ----------------------------------------------------------------------------------

std::optional<Time> LossRecovery::check_all() {
  TxWindow& window = side_.window();
  Time next = core_.ordered() ? kNever : infer_losses(false);  // CMS-424
  bool first = true;   // of the packets that do not wait to be sent again
  bool oldest = true;  // of those among them that the peer has not reported
  for (Psn psn = window.base(); psn != window.next_psn(); ++psn) {
    TxRecord* record = window.find(psn);
    if (record == nullptr || record->resend) continue;
    const bool asks = first || (oldest && !record->sacked);
    const std::optional<Time> again = check_record(psn, *record, first, asks);
    if (!again) return std::nullopt;
    first = false;
    oldest = oldest && record->sacked;
    next = std::min(next, *again);
  }
  return next;
}

// When this record must be looked at again; empty if the PDC has to fail.
std::optional<Time> LossRecovery::check_record(Psn psn, TxRecord& record, bool first, bool asks) {
  const LossDetector::Standing standing{
      .first = first, .asks = asks, .in_window = side_.within_peer_window(psn)};
  const auto [verdict, again] =
      side_.loss().check(side_.loss_context(), side_.window(), psn, record, standing, now_);
  switch (verdict) {
    case LossVerdict::Wait:
      break;
    case LossVerdict::Resend:
      return side_.queue_resend(psn, record, now_);
    case LossVerdict::OutsideWindow:
      if (!record.sacked) {
        side_.outstanding().lost(core_, record, cms::LossCause::OutOfOrder, now_);
      }
      break;
    case LossVerdict::NotSent:
      if (record.sent_count == 1) core_.extend_close(now_);  // the peer has not been asked yet
      break;
    case LossVerdict::Ask:
      core_.send_ack_request(psn);
      break;
    case LossVerdict::TimedOut: {
      ++core_.env().counters.rto_retransmissions;
      ++core_.peer_counts().rto_retransmissions;
      note_in_trace(trace::Loss::TimeOut, psn, record);
      if (psn == side_.window().base()) leave_silent_path();
      const bool repeated = record.rto_count > 1;
      side_.outstanding().lost(core_, record,
                               repeated ? cms::LossCause::RepeatedRto : cms::LossCause::Rto, now_);
      return side_.queue_resend(psn, record, now_);
    }
    case LossVerdict::Dead:
      note_in_trace(trace::Loss::GivenUp, psn, record);
      return std::nullopt;
  }
  return again;
}

// CMS-401: what takes one path only would wait for its repair. That order may suffer is accepted.
void LossRecovery::leave_silent_path() {
  const double rtts = core_.env().cms.tuning.reroute_rtts;
  if (rtts == 0) return;
  const Duration rtt = side_.loss_context().base_rtt();
  const Duration spacing(static_cast<std::int64_t>(rtts * static_cast<double>(rtt.count())));
  if (core_.path().reroute(core_.env().rng, now_, spacing)) ++core_.env().counters.reroutes;
}

}  // namespace uet::pds
