// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Losses that a PDC infers from what has arrived (PDS-130 to 132, CMS-420, CMS-421), and what it
// does about the ones that were none.
#include <algorithm>
#include <optional>
#include <utility>

#include "uet/cms/rtt.h"

#include "uet/pds/pdc.h"
#include "uet/pds/retransmit.h"

namespace uet::pds {
namespace {

constexpr int kMostDoublings = 4;      // 0.25 R to 4 R
constexpr int kLossesPerHalving = 16;  // inferred in a row, and true as far as known

}  // namespace

// CMS-421: a NACK may tell more, and the order of a path may be a little less than perfect.
Duration Pdc::inference_wait() const {
  const cms::Parameters& cms = env_.cms;
  const Duration rtt = ccc_.ccc->base_rtt().value_or(cms.base_rtt.value_or(cms.default_base_rtt));
  const double wait_ns = cms.tuning.path_inference_wait_rtts * static_cast<double>(rtt.count());
  return Duration(static_cast<std::int64_t>(wait_ns) << ccc_.wait_doublings);
}

void Pdc::note_inference(bool was_right) {
  if (!was_right) {
    ++env_.counters.inferred_losses_spurious;
    ccc_.right_inferences = 0;
    if (ccc_.wait_doublings < kMostDoublings) ++ccc_.wait_doublings;
    route_epoch_ = order_;
  } else if (++ccc_.right_inferences >= kLossesPerHalving) {
    ccc_.right_inferences = 0;
    if (ccc_.wait_doublings > 0) --ccc_.wait_doublings;
  }
}

// It was taken for lost, and is reported before its retransmission can have been answered: the
// route of a path has changed, or the network does not keep the order of paths.
bool Pdc::was_inferred_wrongly(const TxRecord& record, Time now) const {
  if (record.out_of_flight) return true;  // not even sent again
  const std::optional<Duration> measured = ccc_.ccc->base_rtt();
  const std::optional<Duration> rtt = measured ? measured : env_.cms.base_rtt;
  return rtt && now - record.last_sent < *rtt;
}

// From the highest PSN reported downwards. What was sent once and arrived has a higher PSN than all
// that left before it, so that one walk finds all evidence. Returns when to look again: only what
// has waited since an ACK can be new then. How many were reported above is not, and would make
// retransmissions without end of what a peer that is gone never answers, and no time-out of it.
Time Pdc::infer_losses(bool by_ack, Time now) {
  if (recover_until_ && tx_.base() > *recover_until_) recover_until_.reset();
  if (highest_reported_ < tx_.base()) return kNever;
  std::uint32_t reported = 0;
  const Time again = look_for_losses(by_ack, reported, now);
  if (!by_ack || !begin_recovery(reported)) return again;
  return look_for_losses(by_ack, reported, now);
}

// CMS-150. `reported`: packets that have arrived above what is missing.
bool Pdc::begin_recovery(std::uint32_t reported) {
  if (recover_until_ || reported < kRecoveryReports) return false;
  if (!ccc_.recovers_midway) return false;
  const std::optional<cms::RecoveryRules> rules = ccc_.ccc->recovery();
  if (!rules || std::uint64_t{reported} * env_.cms.mtu_bytes < rules->bytes) return false;
  recover_until_ = tx_.next_psn() - 1;
  return true;
}

void Pdc::on_silence(Time now) {
  const Time probe = look_for_silence(now);  // first: what is asked for now has not been silent
  set_deadline(kSilence, std::min(probe, look_for_tail(now)));
}

// The newest packet, if it is data whose ACK has not been asked for: nothing later does. A peer
// that has not answered yet could not be asked.
TxRecord* Pdc::unasked_tail() {
  if (state_ == PdcState::Creating) return nullptr;
  TxRecord* newest = tx_.find(tx_.next_psn() - 1);
  const bool unasked = newest != nullptr && newest->message != nullptr && !newest->ar;
  return unasked && !newest->sacked ? newest : nullptr;
}

// The ACK tells of all before it, too.
void Pdc::ask_for_tail() {
  TxRecord* tail = unasked_tail();
  if (tail != nullptr && send_ack_request(tx_.next_psn() - 1)) tail->ar = tail->asked = true;
}

// PDS-128. Returns when to look again.
Time Pdc::look_for_tail(Time now) {
  const Duration wait = tail_loss_time(env_.parameters);
  if (!backlog_.empty() || unasked_tail() == nullptr) return kNever;
  const Time due = last_data_sent_ + wait;
  if (now < due) return due;
  ask_for_tail();
  return now + wait;
}

// CMS-151. While data is outstanding this looks now and then whether ACKs still come. The Probe
// goes the way of data: if it waited in no queue (unqueued_rtt), what was sent before it and has
// not arrived is lost. Returns when to look again.
Time Pdc::look_for_silence(Time now) {
  const std::optional<cms::RecoveryRules> rules = ccc_.ccc->recovery();
  if (!rules || tx_.empty() || destination_.mode != DeliveryMode::Rud) return kNever;
  if (backlog_.empty() ? unasked_tail() != nullptr : rules->only_probe_at_end) return kNever;
  Duration silence = backlog_.empty() ? rules->silence_at_end : rules->silence;
  Duration retry = rules->retry;
  if (rules->in_order) {  // a peer that computes is asked ever more rarely
    silence = std::max({silence, tail_loss_time(env_.parameters), answer_time_.limit()});
    retry = std::max({retry, silence, recovery_probe_sent_ - std::max(last_heard_, opened_)});
  }
  Time due = std::max(last_heard_, last_data_sent_) + silence;
  if (recovery_probe_sent_ > last_heard_) due = recovery_probe_sent_ + retry;
  due = std::max(due, rules->not_before);
  const bool can = state_ == PdcState::Established && in_flight_bytes_ > 0;
  if (now >= due) {
    due = now + retry;
    const wire::ControlHeader probe{.ctl_type = wire::CpType::Probe,
                                    .ar = true,
                                    .probe_opaque = recovery_opaque(now),
                                    .payload = (peer_cack_ + 1).value};
    if (can && send_untracked(probe, true)) {
      ++env_.counters.probes_sent;
      recovery_probe_sent_ = now;
    }
  }
  return due;
}

void Pdc::on_recovery_answer(const wire::AckHeader& ack, Time arrived, Time now) {
  // Only of the newest it is known when it was sent.
  if (recovery_probe_sent_ == Time{} || ack.probe_opaque != recovery_opaque(recovery_probe_sent_))
    return;
  const Time sent = std::exchange(recovery_probe_sent_, Time{});
  on_silence(now);
  const auto rtt = cms::rtt_sample(1, false, sent, arrived, ack.service_time);
  const std::optional<cms::RecoveryRules> rules = ccc_.ccc->recovery();
  if (!rules) return;
  if (!rules->in_order && (!rtt || *rtt >= rules->unqueued_rtt)) return;
  for (Psn psn = tx_.base(); psn != tx_.next_psn(); ++psn) {
    TxRecord* record = tx_.find(psn);
    if (record == nullptr || record->sacked || record->resend) continue;
    if (Outbox::holds(*record->packet) || record->not_before != Time{}) continue;
    if (record->last_sent + (rules->in_order ? Duration{} : rules->silence_at_end) > sent) continue;
    recover_until_ = psn;
    presume_lost(psn, *record, false, now);
  }
}

void Pdc::presume_lost(Psn psn, TxRecord& record, bool by_path, Time now) {
  record.last_inferred = now;
  record.inferred_by_path = by_path;
  ++env_.counters.inferred_loss_retransmissions;
  if (by_path) note_inference(true);
  mark_lost(record, cms::LossCause::Path, now);
  queue_resend(psn, record, now);
}

Time Pdc::look_for_losses(bool by_ack, std::uint32_t& reported, Time now) {
  Time again = kNever;
  PathEvidence& arrived = env_.path_evidence;
  arrived.begin();
  // What has been on its way for less may be on a longer path.
  Duration recovery_age{};
  if (recover_until_) {
    if (const auto rules = ccc_.ccc->recovery()) recovery_age = rules->silence_at_end;
  }
  const std::uint32_t enough = out_of_order_threshold(
      env_.parameters, ccc_.ccc->largest_window_bytes() / env_.cms.mtu_bytes,
      static_cast<std::uint32_t>(std::min(tx_.capacity(), static_cast<std::size_t>(peer_range_))));
  std::optional<Duration> wait;  // costs a little to find out, and is rarely asked for
  reported = 0;
  for (Psn psn = highest_reported_; psn >= tx_.base(); psn = psn - 1) {
    TxRecord& record = tx_.at(psn);
    if (record.packet == nullptr || record.sacked) {
      ++reported;
      // Which transmission arrived is known only if there was one; control packets overtake data.
      if (record.sent_count == 1 && record.message != nullptr) {
        arrived.note(record.entropy, record.order);
      }
      continue;
    }
    if (record.resend || record.not_before != Time{} || Outbox::holds(*record.packet)) continue;
    const bool overtaken = env_.cms.path_inference && record.order > route_epoch_ &&
                           arrived.newest(record.entropy) > record.order;
    if (overtaken && record.overtaken_since == Time{}) record.overtaken_since = now;
    if (overtaken && !wait) wait = inference_wait();
    LossEvidence evidence;
    evidence.sacked_above = by_ack ? reported : 0;
    evidence.enough_above = enough;
    evidence.recovering =
        recover_until_ && psn <= *recover_until_ && record.last_sent + recovery_age <= now;
    evidence.later_on_same_path = overtaken && now - record.overtaken_since >= *wait;
    evidence.since_inferred =
        record.last_inferred == Time{} ? Duration::max() : now - record.last_inferred;
    if (presumed_lost(env_.parameters, evidence)) {
      presume_lost(psn, record, evidence.later_on_same_path, now);
    } else if (overtaken) {
      const Time allowed = record.last_inferred == Time{}
                               ? now
                               : record.last_inferred + env_.parameters.rto_init;  // PDS-132
      again = std::min(again, std::max(record.overtaken_since + *wait, allowed));
    }
  }
  return again;
}

}  // namespace uet::pds
