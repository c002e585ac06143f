// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// When packets of a PDC count as lost (PDS section 12, CMS-150 to 153, CMS-420, CMS-421).
// Must not know how packets are sent, nor what a loss does to the congestion window.
#include "pds/loss_detector.h"

#include <algorithm>
#include <new>
#include <utility>

#include "pds/retransmit.h"

namespace uet::pds {

// ---- what happens -------------------------------------------------------------------------------

void LossDetector::sent(TxRecord& record, bool retransmission, Time now) {
  if (retransmission && !record.excused) count_unanswered(record);
  record.excused = record.restarted = false;
  record.last_sent = now;
  record.not_before = record.overtaken_since = Time{};
  if (!retransmission) record.first_sent = now;
  record.order = ++order_;
  if (record.sent_count < UINT16_MAX) ++record.sent_count;
  if (record.message != nullptr) last_data_sent_ = now;
}

bool LossDetector::heard(Time now) {
  peer_lived_ = now;
  if (silence_over_ != kNever) return false;
  silence_over_ = now;
  return true;
}

bool LossDetector::reported(const LossContext& at, Psn psn, TxRecord& record, Time now) {
  if (psn > highest_reported_) highest_reported_ = psn;
  if (!record.inferred_by_path) return false;
  record.inferred_by_path = false;  // reported: judged once
  if (!was_inferred_wrongly(at, record, now)) return false;
  at.history.note_wrong();
  route_epoch_ = order_;
  return true;
}

// The packet was taken for lost, and is reported before its retransmission can have been answered:
// the route of a path has changed, or the network does not keep the order of paths.
bool LossDetector::was_inferred_wrongly(const LossContext& at, const TxRecord& record,
                                        Time now) const {
  if (record.out_of_flight) return true;  // not even sent again
  const std::optional<Duration> rtt = at.known_base_rtt();
  return rtt && !record.restarted && now - record.last_sent < *rtt;
}

Time LossDetector::await_final_response(const Parameters& parameters, Psn psn, TxRecord& record,
                                        Time now) {
  record.sacked = true;  // not in flight, and not acknowledged (PDS-89)
  record.provisional = true;
  record.not_before = Time{};
  record.rto_count = record.unanswered = 0;
  record.rto_epoch = rto_epoch_;
  record.sent_count = UINT16_MAX;  // the time until the final response is no round trip
  record.restart_time_out(now);
  if (psn > highest_reported_) highest_reported_ = psn;
  return now + response_time(parameters, record);
}

void LossDetector::note_progress(TxRecord& record) const {
  if (record.rto_epoch == rto_epoch_) return;
  record.rto_epoch = rto_epoch_;
  record.rto_count = record.nack_count = 0;
  record.unanswered = 0;
}

// ---- time-outs ----------------------------------------------------------------------------------

// The latest transmission was unsuccessful if the peer has been heard of since.
void LossDetector::count_unanswered(TxRecord& record) const {
  if (!has_answered_nothing_since(record) && record.unanswered < UINT16_MAX) ++record.unanswered;
}

// A final response takes as long as an application does. Once it has been asked for, the peer owes
// an answer as to a packet.
Duration LossDetector::response_time(const Parameters& parameters, const TxRecord& record) const {
  const Duration answers = answer_time_.limit();
  const Duration timeout = std::max(rto(parameters, record.rto_count, answers),
                                    retransmission_pause(parameters, record.unanswered));
  if (record.provisional && record.rto_count == 0) return parameters.keepalive_time + timeout;
  if (record.rto_count == 0 || answers <= parameters.rto_cap) return timeout;
  const Duration left = silence_limit(parameters, answers) - waited_for(parameters, record);
  return std::clamp(left, std::min(timeout, parameters.rto_init), timeout);
}

// The time-outs of this packet so far, without the one that no answer was owed in.
Duration LossDetector::waited_for(const Parameters& parameters, const TxRecord& record) const {
  Duration waited{};
  for (std::uint32_t k = record.provisional ? 1 : 0; k < record.rto_count; ++k) {
    waited += rto(parameters, k, answer_time_.limit());
  }
  return waited;
}

// PDS-121, after a time-out. Either no packet at all has come for too long, or the peer lives and
// this packet does not reach it.
bool LossDetector::counts_as_dead(const Parameters& parameters, const TxRecord& record, bool first,
                                  Time now) const {
  if (!has_answered_nothing_since(record)) {
    const Duration pause = retransmission_pause(parameters, record.unanswered);
    return gives_up(parameters, record) && record.last_sent + pause <= now;
  }
  if (!first || (record.provisional && record.rto_count == 0)) return false;
  return waited_for(parameters, record) + response_time(parameters, record) >=
         silence_limit(parameters, answer_time_.limit());
}

bool LossDetector::gives_up(const Parameters& parameters, const TxRecord& record) const {
  return !has_answered_nothing_since(record) && answers_exhausted(parameters, record.unanswered);
}

// A packet that was sent before a silence has one short time-out from the end of the silence on,
// since the peer takes up what has come, whatever its answers took before.
Time LossDetector::answer_due(const Parameters& parameters, TxRecord& record) const {
  const bool spoke_again = silence_over_ != kNever && record.last_sent < silence_over_;
  if (!spoke_again) return record.last_sent + response_time(parameters, record);
  if (waited_for(parameters, record) >= parameters.rto_cap) record.rto_count %= 2;
  if (record.sacked) return silence_over_ + response_time(parameters, record);
  return silence_over_ + rto(parameters, record.rto_count);
}

Time LossDetector::may_leave(const Parameters& parameters, TxRecord& record) const {
  note_progress(record);
  return record.last_sent + retransmission_pause(parameters, record.unanswered);
}

LossDetector::Judgement LossDetector::check(const LossContext& at, TxWindow& window, Psn psn,
                                            TxRecord& record, Standing standing, Time now) {
  const Parameters& parameters = at.parameters;
  if (record.not_before != Time{}) {
    if (now < record.not_before) return {Verdict::Wait, record.not_before};
    note_progress(record);
    return {answers_exhausted(parameters, record.unanswered) ? Verdict::Dead : Verdict::Resend};
  }
  if (!standing.in_window) {
    // The ACK that moves the window may be the last one, so that time alone brings the next look.
    record.restart_time_out(now);
    return {Verdict::OutsideWindow, now + rto(parameters, 0)};
  }
  if (record.waits_for_nic()) {
    record.last_sent = now;
    return {Verdict::NotSent, now + rto(parameters, 0)};
  }
  note_progress(record);
  const Time due = answer_due(parameters, record);
  if (now < due) return {Verdict::Wait, due};
  if (record.sacked && at.ordered && psn != window.base()) {
    record.restart_time_out(now);  // no response to ask for yet behind a gap (PDS-205)
    return {Verdict::Wait, now + rto(parameters, 0)};
  }
  // If the peer stays silent after a retransmission, the oldest packet alone asks whether the peer
  // lives. Its answer tells what else has arrived.
  const bool silent = has_answered_nothing_since(record);
  if (silent && record.rto_count > 0 && !standing.asks) {
    return {Verdict::Wait, now + response_time(parameters, record)};
  }
  if (counts_as_dead(parameters, record, standing.first, now)) return {Verdict::Dead};
  if (silent && standing.first) silence_over_ = kNever;
  ++record.rto_count;
  if (!record.sacked || at.creating) return {Verdict::TimedOut};
  count_unanswered(record);
  record.restart_time_out(now);
  return {Verdict::Ask, now + response_time(parameters, record)};
}

bool LossScratch::take_memory() noexcept {
  try {
    arrived.prepare();
    lost.reserve(window_psns_);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// ---- reports of later packets -------------------------------------------------------------------

// Walks from the highest reported PSN downwards. A packet that was sent once and arrived has a
// higher PSN than all packets that left before it, so that one walk finds all evidence. Without an
// ACK only packets whose wait has ended are new evidence. The number of packets reported above a
// gap does not count: it would cause endless retransmissions to a dead peer, and no time-out.
LossDetector::Look LossDetector::overtaken(const LossContext& at, TxWindow& window, bool by_ack,
                                           LossScratch& scratch, Time now) {
  Look look;
  scratch.lost.clear();
  if (recover_until_ && window.base() > *recover_until_) recover_until_.reset();
  if (highest_reported_ < window.base()) return look;
  if (!scratch.prepare()) return look;
  PathEvidence& arrived = scratch.arrived;
  arrived.begin();
  // A packet that has been on its way for less than this may be on a longer path.
  Duration recovery_age{};
  if (recover_until_) {
    if (const auto rules = at.ccc.recovery()) recovery_age = rules->silence_at_end;
  }
  const std::uint32_t enough = out_of_order_threshold(
      at.parameters, at.ccc.largest_window_bytes() / at.cms.mtu_bytes,
      static_cast<std::uint32_t>(std::min<std::size_t>(window.capacity(), at.range_psns)));
  std::optional<Duration> wait;  // costs a little to find out, and is rarely asked for
  for (Psn psn = highest_reported_; psn >= window.base(); psn = psn - 1) {
    TxRecord& record = window.at(psn);
    if (record.packet == nullptr || record.sacked) {
      ++look.reported;
      // Which transmission arrived is known only if there was one; control packets overtake data.
      if (record.sent_count == 1 && record.message != nullptr) {
        arrived.note(record.entropy, record.order);
      }
      continue;
    }
    if (record.resend || record.not_before != Time{} || record.waits_for_nic()) continue;
    const bool overtaken = at.cms.path_inference && record.order > route_epoch_ &&
                           arrived.newest(record.entropy) > record.order;
    if (overtaken && record.overtaken_since == Time{}) record.overtaken_since = now;
    if (overtaken && !wait) {  // CMS-421: a NACK may tell more, and the order of a path may be a
                               // little less than perfect
      const double usual_ns =
          at.cms.tuning.path_inference_wait_rtts * static_cast<double>(at.base_rtt().count());
      wait = at.history.wait(Duration(static_cast<std::int64_t>(usual_ns)));
    }
    LossEvidence evidence;
    evidence.sacked_above = by_ack ? look.reported : 0;
    evidence.enough_above = enough;
    evidence.recovering =
        recover_until_ && psn <= *recover_until_ && record.last_sent + recovery_age <= now;
    evidence.later_on_same_path = overtaken && now - record.overtaken_since >= *wait;
    evidence.since_inferred =
        record.last_inferred == Time{} ? Duration::max() : now - record.last_inferred;
    if (presumed_lost(at.parameters, evidence)) {
      presume_lost(at, psn, record, evidence.later_on_same_path, scratch, now);
    } else if (overtaken) {
      const Time allowed = record.last_inferred == Time{}
                               ? now
                               : record.last_inferred + at.parameters.rto_init;  // PDS-132
      look.again = std::min(look.again, std::max(record.overtaken_since + *wait, allowed));
    }
  }
  return look;
}

void LossDetector::presume_lost(const LossContext& at, Psn psn, TxRecord& record, bool by_path,
                                LossScratch& scratch, Time now) const {
  record.last_inferred = now;
  record.inferred_by_path = by_path;
  if (by_path) at.history.note_right();
  scratch.lost.push_back(psn);
}

bool LossDetector::begin_recovery(const LossContext& at, const TxWindow& window,
                                  std::uint32_t reported, Time now) {
  if (recover_until_ || reported < kRecoveryReports || !at.recovers_midway) return false;
  const std::optional<cms::RecoveryRules> rules = at.ccc.recovery();
  if (!rules || now < rules->not_before ||
      std::uint64_t{reported} * at.cms.mtu_bytes < rules->bytes)
    return false;
  recover_until_ = window.next_psn() - 1;
  return true;
}

// ---- silence ------------------------------------------------------------------------------------

namespace {

bool is_unasked(const TxRecord& record) {
  return record.message != nullptr && !record.ar && !record.sacked;
}

}  // namespace

std::optional<Psn> unasked_tail(TxWindow& window) {
  const Psn newest = window.next_psn() - 1;
  const TxRecord* record = window.find(newest);
  return record != nullptr && is_unasked(*record) ? std::optional(newest) : std::nullopt;
}

std::optional<Psn> unasked_in_flight(TxWindow& window) {
  for (Psn psn = window.next_psn() - 1; psn >= window.base(); psn = psn - 1) {
    const TxRecord* record = window.find(psn);
    if (record == nullptr || record->sacked || record->out_of_flight) continue;
    return is_unasked(*record) ? std::optional(psn) : std::nullopt;
  }
  return std::nullopt;
}

// The Probe goes the way of data: if it waited in no queue (unqueued_rtt), what was sent before it
// and has not arrived is lost.
LossDetector::Silence LossDetector::silence(const LossContext& at, const Outstanding& outstanding,
                                            Time now) const {
  const std::optional<cms::RecoveryRules> rules = at.ccc.recovery();
  if (!rules || outstanding.nothing || at.ordered) return {};
  if (outstanding.more_to_send ? rules->only_probe_at_end : outstanding.unasked_tail) return {};
  Duration silence = outstanding.more_to_send ? rules->silence : rules->silence_at_end;
  Duration retry = rules->retry;
  if (rules->in_order) {  // a peer that computes is asked ever more rarely
    silence = std::max({silence, tail_loss_time(at.parameters), answer_time_.limit()});
    retry = std::max({retry, silence, probe_sent_ - std::max(last_heard_, opened_)});
  }
  // With nothing more to send, ACKs of what has arrived need not end before a loss is sought.
  const bool at_end = !outstanding.more_to_send && !rules->in_order;
  Time due = (at_end ? last_data_sent_ : std::max(last_heard_, last_data_sent_)) + silence;
  const bool sent_since = last_data_sent_ > probe_sent_;
  if (probe_sent_ > last_heard_ || (at_end && !sent_since)) due = probe_sent_ + retry;
  due = std::max(due, rules->not_before);
  if (now < due) return {false, due};
  return {outstanding.may_ask, now + retry};
}

std::optional<Time> LossDetector::probe_answered(std::uint16_t opaque) {
  if (probe_open_ == 0 || opaque != probe_opaque(probe_sent_)) return std::nullopt;
  probe_open_ = 0;
  return probe_sent_;
}

void LossDetector::presume_lost_before_probe(const LossContext& at, TxWindow& window, Time sent,
                                             std::optional<Duration> rtt, LossScratch& scratch,
                                             Time now) {
  scratch.lost.clear();
  const std::optional<cms::RecoveryRules> rules = at.ccc.recovery();
  if (!rules) return;
  if (!rules->in_order && (!rtt || *rtt >= rules->unqueued_rtt)) return;
  if (!scratch.prepare()) return;
  for (Psn psn = window.base(); psn != window.next_psn(); ++psn) {
    TxRecord* record = window.find(psn);
    if (record == nullptr || record->sacked || record->resend) continue;
    if (record->waits_for_nic() || record->not_before != Time{}) continue;
    if (record->last_sent + (rules->in_order ? Duration{} : rules->silence_at_end) > sent) continue;
    recover_until_ = psn;
    presume_lost(at, psn, *record, false, scratch, now);
  }
}

}  // namespace uet::pds
