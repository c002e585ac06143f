// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A PDC as the source of its direction: what an ACK, a NACK or a time-out does to packets sent.
// The rules themselves are in retransmit.h and nack.h.
#include <algorithm>
#include <bit>

#include "uet/cms/rtt.h"
#include "uet/pds/nack.h"
#include "uet/pds/pdc.h"
#include "uet/pds/retransmit.h"

namespace uet::pds {

namespace {

// CMS-712: a packet that waits its turn in this host is not in the network yet.
Time departure_of(const TxRecord& record) {
  return record.packet->sent == Time{} ? record.last_sent : record.packet->sent;
}

// CMS-20, CMS-21: a last hop that trims says nothing of the path to it.
cms::PathFeedback path_feedback(const wire::NackHeader& nack) {
  if (nack.nack_code == NackCode::Trimmed) return cms::PathFeedback::Nack;
  if (nack.nack_code == NackCode::TrimmedLastHop) return cms::PathFeedback::Good;
  return nack.ce ? cms::PathFeedback::Ecn : cms::PathFeedback::Good;
}

}  // namespace

// ---- acknowledgement (PDS-108, steps in its order)
// ------------------------------------------------

bool Pdc::believable(const wire::AckHeader& ack) const {
  const bool from_peer = state_ == PdcState::Creating || ack.spdcid == peer_id_;
  // Start_PSN bounds a young PDC only: later it is more than half the circle away.
  const bool not_below_start = state_ != PdcState::Creating || ack.cack_psn >= start_psn_ - 1;
  // An ACK that was overtaken is at most a window older than the newest one. Of random CACK_PSNs
  // hardly any is in here.
  const auto window = static_cast<std::int32_t>(tx_.capacity());
  const bool in_window = ack.cack_psn < tx_.next_psn() && window_.cack() - ack.cack_psn <= window;
  return from_peer && ack.spdcid.value != 0 && in_window && not_below_start;
}

void Pdc::heard(Time now) {
  last_activity_ = now;
  window_.heard();
  if (!loss_.heard(now)) return;
  set_deadline(kResend, std::min(deadlines_[kResend], now + rto(env_.parameters, 0)));
}

void Pdc::learn_peer(PdcId peer_id, Time now) {
  if (state_ != PdcState::Creating) return;
  env_.proved_hosts.add(destination_.address.ip);
  peer_id_ = peer_id;
  enter(PdcEvent::PeerKnown);
  release_held(now);
}

void Pdc::on_ack(const wire::AckHeader& ack, std::span<const std::byte> ses, Time arrived,
                 Time now) {
  if (!believable(ack)) {
    ++env_.counters.acks_invalid;
    return;
  }
  ++env_.counters.acks_received;
  prove();
  loss_.ack_heard(now);
  heard(now);
  const bool asked_for_window = window_.ack_heard();
  learn_peer(ack.spdcid, now);
  ack_is_newest_ = ack.type != wire::PdsType::Ack && window_.is_newest(ack.cack_psn);  // PDS-41
  const bool says_range = ack.mpr != 0 || env_.parameters.mpr_zero_psns != 0;  // PDS-43, PDS-218
  if (ack_is_newest_ && says_range && window_.set_range(range_psns(env_.parameters, ack.mpr))) {
    env_.peer_limits.forget_range(destination_.address);
  }
  cms::AckFeedback feedback;
  std::uint64_t acked_bytes = 0;
  ack_vouches_ = path().uses_feedback() && !ack.ce && !ack.p;
  if (!ack.p) {  // the answer to a probe names no packet
    if (const TxRecord* record = tx_.find(ack.ack_psn()); record != nullptr) {
      const std::uint16_t service_time =
          ack.type == wire::PdsType::AckCc ? ack.service_time : cms::kServiceTimeInvalid;
      if (!record->asked) {
        feedback.rtt = cms::rtt_sample(record->sent_count, ack.retx, departure_of(*record), arrived,
                                       service_time);
      }
      if (ack.ce) path().on_feedback(record->entropy, cms::PathFeedback::Ecn, now);  // CMS-114
      // The RETX flag says which transmission is answered. A packet that was SACKed before had been
      // answered already: this answer came because an ACK was requested.
      if (!record->sacked && !record->asked) {
        if (record->sent_count == 1) path().on_answered(record->entropy);
        if (!ack.retx && record->sent_count != UINT16_MAX) {
          loss_.answer_took(now - record->first_sent);
        } else if (record->sent_count == 2) {
          loss_.answer_took(now - record->last_sent);
        }
      }
      const bool late =
          service_time == cms::kServiceTimeTooLong && record->sent_count == 1 && !record->asked;
      if (feedback.rtt || late) feedback.loop = now - record->last_sent;
      // PDS-109: the explicit response before what CACK implies.
      acked_bytes +=
          acknowledge(ack.ack_psn(), ResponseView{ack.next_hdr, ses, ack.ack_psn()}, now);
    }
  }
  acked_bytes += apply_cack(ack.cack_psn, now);
  if (ack.type != wire::PdsType::Ack) apply_sack(ack, now);
  const Psn cleared = tx_.clear_psn();
  tx_.slide();
  std::optional<Psn> clear_asked;
  if (ack.req == wire::AckRequestCode::Clear) clear_asked = ack.ack_psn();
  if (clear_.on_ack(clear_asked, cleared, tx_.clear_psn(), tx_.empty())) {
    set_deadline(kIdle, std::min(deadlines_[kIdle], now + env_.parameters.clear_time));
  }
  // All is answered and CACK has not moved over it: the last CLEAR was lost, and no request can
  // leave that would carry it (PDS-118).
  if (asked_for_window && window_.cack() < tx_.clear_psn()) clear_.pay_at_once();
  if (ack.req == wire::AckRequestCode::Close && role_ == Role::Initiator) {
    close_.peer_asks();
  }
  if (ack.p) on_probe_answer(ack, arrived, now);
  inform_ccc(ack, feedback, acked_bytes, now);
  if (ccc_.probes_wanted > 0) probe_base_rtt(now);
  if (ack.type == wire::PdsType::AckCc && ack.cc_type == wire::CcType::Credit) {
    on_credit(ack.credit, now);
  }
  if (destination_.mode == DeliveryMode::Rud) {  // CMS-424: ROD has its own NACK
    const Time again = infer_losses(true, now);
    if (again < deadlines_[kResend]) set_deadline(kResend, again);
  }
  if (state_ == PdcState::CloseAckWait && tx_.empty()) return finish();
  if (has_work()) make_ready();
}

void Pdc::note_reported(Psn psn, TxRecord& record, Time now) {
  if (path().uses_feedback() && !record.sacked) path().on_acknowledged(record.entropy, now);
  if (loss_.reported(loss_context(), psn, record, now)) ++env_.counters.inferred_losses_spurious;
}

// CMS-418: what an unmarked ACK reports for the first time went along good paths. Which of several
// transmissions arrived is not known.
void Pdc::praise_path(const TxRecord& record, Time now) {
  if (!ack_vouches_ || record.sacked || record.sent_count != 1) return;
  path().on_feedback(record.entropy, cms::PathFeedback::Good, now);
}

// Returns the nominal bytes that this newly acknowledged.
std::uint64_t Pdc::acknowledge(Psn psn, const ResponseView& response, Time now) {
  TxRecord* record = tx_.find(psn);
  if (record == nullptr) return 0;
  note_reported(psn, *record, now);
  praise_path(*record, now);
  flight_.arrived_after_all(*ccc_.ccc, *record);
  const std::uint64_t bytes = record->message != nullptr ? record->nominal_bytes : 0;
  context_known_ |= bytes > 0 && ccc_.credit != nullptr && ccc_.credit->asks_for_credit();
  if (!record->sacked && bytes > 0) flight_.reported(*record);
  Message* message = record->message;
  const std::uint32_t tag = record->tag;
  const bool reported = record->sacked;
  Packet* packet = withdraw(*record);
  Verdict verdict = Verdict::Final;
  if (message != nullptr) verdict = env_.client.rx_rsp(*message, tag, response, now);
  const bool answered =
      verdict == Verdict::Final || response.next_hdr == wire::NextHdr::None;  // PDS-87
  if (answered || state_ == PdcState::Closed) {
    env_.packets.give_back(packet);
  } else {
    await_final_response(psn, *record, *packet, now);
  }
  // The client failed the PDC meanwhile and got an error for each packet except this one.
  if (!answered && state_ == PdcState::Closed) {
    env_.client.pds_error(*message, tag, error_.value_or(PdsError::ClosedInError), now);
  }
  return reported ? 0 : bytes;
}

// SES-46, SES-48: the peer has the packet and holds its CACK below it until the real response is
// there, which takes as long as an application there takes. It is asked so rarely that this costs
// nothing, and often enough that a dead peer is noticed (PDS-90).
void Pdc::await_final_response(Psn psn, TxRecord& record, Packet& packet, Time now) {
  record.packet = &packet;
  const Time due = loss_.await_final_response(env_.parameters, psn, record, now);
  if (due < deadlines_[kResend]) set_deadline(kResend, due);
}

// PDS-87: every PSN up to CACK needed nothing more than the default response.
std::uint64_t Pdc::apply_cack(Psn cack, Time now) {
  std::uint64_t bytes = 0;
  for (Psn psn = tx_.base(); psn <= cack && psn != tx_.next_psn(); ++psn) {
    bytes += acknowledge(psn, ResponseView{wire::NextHdr::None, {}, psn}, now);
  }
  if (window_.move_cack(cack)) loss_.cack_moved();
  return bytes;
}

// PDS-88, PDS-89: a set bit says received, not acknowledged; a zero bit says nothing.
void Pdc::apply_sack(const wire::AckHeader& ack, Time now) {
  std::uint64_t bits = ack.sack_bitmap;
  while (bits != 0) {
    const int i = std::countr_zero(bits);
    bits &= bits - 1;
    const Psn psn = ack.sack_base() + i;
    TxRecord* record = tx_.find(psn);
    if (record == nullptr || record->sacked) continue;
    if (record->message != nullptr && !record->out_of_flight) flight_.reported(*record);
    praise_path(*record, now);
    note_reported(psn, *record, now);
    record->sacked = true;
    peer_buffers_ = true;
    flight_.arrived_after_all(*ccc_.ccc, *record);
    if (record->resend || record->not_before != Time{}) {
      if (record->resend) end_resend(*record);
      record->not_before = Time{};
      // Its response is still to come: watched again (PDS-89, PDS-90).
      const Time due = record->last_sent + loss_.response_time(env_.parameters, *record);
      if (due < deadlines_[kResend]) set_deadline(kResend, due);
    }
  }
}

void Pdc::inform_ccc(const wire::AckHeader& ack, cms::AckFeedback& feedback,
                     std::uint64_t newly_acked_bytes, Time now) {
  const bool longer =
      flight_.inform(*ccc_.ccc, ack, ack_is_newest_, feedback, newly_acked_bytes, tx_.empty(), now);
  if (longer && ccc_.measures_base_rtt) ccc_.probes_wanted = kBaseRttProbes;
  settle_ccc();
  wake_ccc_waiters();
}

// CMS-140: the first answer to the newest Probe; one to an older one, or a copy, tells nothing.
void Pdc::on_probe_answer(const wire::AckHeader& ack, Time arrived, Time now) {
  if (ack.probe_opaque >= LossDetector::kFirstOpaque) return on_recovery_answer(ack, arrived, now);
  const auto newest = static_cast<std::uint16_t>(ccc_.probes - 1);
  if (ccc_.probe_sent == Time{} || ack.probe_opaque != base_rtt_opaque(newest)) return;
  const auto rtt = cms::rtt_sample(1, false, ccc_.probe_sent, arrived, ack.service_time);
  ccc_.probe_sent = Time{};
  if (rtt) ccc_.ccc->on_probe_answer(*rtt);
}

void Pdc::settle_ccc() { flight_.reconcile(*ccc_.ccc, tx_.empty()); }

// They keep their places until they have sent: with a window of one packet a PDC with small packets
// would else starve one with a large packet for ever.
void Pdc::on_credit(std::uint32_t credit, Time now) {
  if (ccc_.credit == nullptr) return;
  ccc_.credit->on_credit(credit, now);
  wake_ccc_waiters();
}

void Pdc::wake_ccc_waiters() {
  for (Pdc& pdc : ccc_.waiting) pdc.make_ready();
}

// ---- loss
// -----------------------------------------------------------------------------------------

void Pdc::mark_lost(TxRecord& record, cms::LossCause cause, Time now) {
  if (!flight_.lost(*ccc_.ccc, record, cause, now)) return;
  if (cause != cms::LossCause::OutOfOrder) {  // else a NACK has said that it must come again
    path().on_feedback(record.entropy, cms::PathFeedback::Timeout, now);
  }
}

Time Pdc::queue_resend(Psn psn, TxRecord& record, Time now) {
  UET_ASSERT(tx_.holds(psn));
  (void)psn;
  const Time allowed = loss_.may_leave(env_.parameters, record);
  record.not_before = Time{};
  if (!record.resend) {
    if (now < allowed) {
      record.not_before = allowed;
      set_deadline(kResend, std::min(deadlines_[kResend], allowed));
      return allowed;
    }
    record.resend = true;
    ++resend_count_;
    if (ccc_.credit != nullptr && record.message != nullptr) {
      ccc_.credit->mark_rtx(record.nominal_bytes);
      env_.credits->note_demand(ccc_);
    }
  }
  make_ready();
  return kNever;
}

// PDS-166: all from the gap on, except what the peer is known to have buffered.
void Pdc::go_back(Time now) {
  for (Psn psn = tx_.base(); psn != tx_.next_psn(); ++psn) {
    if (peer_buffers_ && psn > loss_.highest_reported()) return;
    TxRecord* record = tx_.find(psn);
    if (record == nullptr || record->sacked || record->resend) continue;
    ++env_.counters.nack_retransmissions;
    mark_lost(*record, cms::LossCause::OutOfOrder, now);
    queue_resend(psn, *record, now);
  }
}

// PDS-223. False: the NACK says something else, or concerns a packet that asks again by itself.
bool Pdc::on_refused_pdc(const wire::NackHeader& nack, TxRecord& record, Time now) {
  if (state_ != PdcState::Creating || !lacks_pdc(nack.nack_code)) return false;
  flight_.refused(*ccc_.ccc, record, nack, now);
  if (!peer_lacks_pdc_) hold_behind_first();
  if (record.not_before != kNever) return false;
  TxRecord& first = tx_.at(tx_.base());
  first.rto_count = first.unanswered = 0;  // its NACK may have found no room at the target
  if (!first.resend && first.not_before == Time{}) {
    flight_.refused(*ccc_.ccc, first);
    send_later(first, first.last_sent + env_.parameters.nack_retransmission_time);
  }
  settle_ccc();
  wake_ccc_waiters();
  return true;
}

// Data behind the first packet wait, out of flight and without a deadline, until the target has a
// PDC. A NOOP there does not: it opens the PDC where the first packet has no credit to leave.
void Pdc::hold_behind_first() {
  peer_lacks_pdc_ = true;
  for (Psn psn = tx_.base() + 1; psn != tx_.next_psn(); ++psn) {
    TxRecord* record = tx_.find(psn);
    if (record == nullptr || record->message == nullptr) continue;
    if (record->resend) end_resend(*record);
    flight_.refused(*ccc_.ccc, *record);
    record->rto_count = record->unanswered = 0;
    record->not_before = kNever;
  }
}

// The target has a PDC now. No packet leaves sooner after its last transmission than after a NACK:
// by then the target has reported those that it has.
void Pdc::release_held(Time now) {
  if (!peer_lacks_pdc_) return;
  peer_lacks_pdc_ = false;
  for (Psn psn = tx_.base(); psn != tx_.next_psn(); ++psn) {
    TxRecord* record = tx_.find(psn);
    if (record == nullptr || record->not_before != kNever) continue;
    const Time allowed = record->last_sent + env_.parameters.nack_retransmission_time;
    send_later(*record, allowed);
    if (now >= allowed) queue_resend(psn, *record, now);
  }
  make_ready();
}

// PDS-76, PDS-77: the target names the Start_PSN. It has accepted nothing yet, so that all
// outstanding packets move by the same distance, in order, and are sent again.
void Pdc::rebase(Psn start_psn, Time now) {
  if (start_psn == start_psn_) return;
  if (rto_exhausted(env_.parameters, rebases_++)) return fail(PdsError::NackExhausted, now);
  peer_lacks_pdc_ = false;
  tx_.rebase(start_psn);
  start_psn_ = start_psn;
  window_.rebase(start_psn);
  loss_.rebase(start_psn);
  receive_.rebase(start_psn);
  for (Psn psn = tx_.base(); psn != tx_.next_psn(); ++psn) {
    TxRecord* record = tx_.find(psn);
    if (record == nullptr) continue;
    record->rto_count = record->nack_count = record->unanswered = 0;
    flight_.refused(*ccc_.ccc, *record);
    ++env_.counters.nack_retransmissions;
    queue_resend(psn, *record, now);
  }
  settle_ccc();
  wake_ccc_waiters();
}

// A refused packet leaves again at `at`.
void Pdc::send_later(TxRecord& record, Time at) {
  record.not_before = at;
  ++env_.counters.nack_retransmissions;
  if (at < deadlines_[kResend]) set_deadline(kResend, at);
}

// The peer's window is smaller than the Default_MPR that we began with, and the packet still had
// its SYN (PDS-46). Another incarnation would be refused from its first packet on (PDS-67).
bool Pdc::is_beyond_window(const wire::NackHeader& nack) const {
  return nack.nack_code == NackCode::InvalidSyn && nack.spdcid.value != 0 &&
         nack.nack_psn - start_psn_ >= least_range_psns(env_.parameters);
}

void Pdc::halve_assumed_window(Psn refused) {
  if (!within_peer_window(refused)) return;
  if (!window_.halve(refused, least_range_psns(env_.parameters))) return;
  env_.peer_limits.set_range(destination_.address, window_.range());
}

// Another implementation may refuse the request of ask_for_proof(). A peer without the PDC says so.
bool Pdc::answers_proof(const wire::NackHeader& nack) const {
  const bool knows_pdc =
      nack.nack_code == NackCode::PktNotRcvd || nack.nack_code == NackCode::RcvdSesProcg ||
      nack.nack_code == NackCode::AckWithData || nack.nack_code == NackCode::UnexpEvent;
  return !proved_ && proof_asked_ && knows_pdc && nack.nack_psn == start_psn_ - 1;
}

// The peer lives and is short of PDCs: it is asked again on another PDC (Delivery::connect), and
// what has something to carry goes first there.
bool Pdc::was_only_to_hear_of_peer(const TxRecord& refused, NackCode code) const {
  const bool shortage =
      code == NackCode::NoPdcAvail || code == NackCode::NoCccAvail || code == NackCode::NoBitmap;
  return shortage && state_ == PdcState::Creating && watches_ > 0 && refused.message == nullptr &&
         tx_.next_psn() == tx_.base() + 1 && backlog_.empty() && locks_ == 0;
}

void Pdc::on_nack(const wire::NackHeader& nack, Time now) {
  const bool from_peer =
      nack.spdcid.value == 0 || nack.spdcid == peer_id_ || state_ == PdcState::Creating;
  TxRecord* record = tx_.find(nack.nack_psn);
  const bool beyond_window = is_beyond_window(nack);
  const NackAction action = nack_action(beyond_window ? NackCode::PsnOorWindow : nack.nack_code);
  ++env_.counters.nacks_received[static_cast<std::uint8_t>(nack.nack_code)];
  // PDS-76, PDS-141: whatever PSN it names. A NACK from before the last rebase names no valid PSN.
  if (action == NackAction::Rebase && state_ == PdcState::Creating) {
    heard(now);
    return rebase(Psn{nack.payload}, now);
  }
  if (from_peer && answers_proof(nack)) prove();
  if (from_peer && on_refused_control(nack, record, now)) return heard(now);
  if (!from_peer || record == nullptr || action == NackAction::Ignore ||
      action == NackAction::Rebase) {  // PDS-76, PDS-141, PDS-144
    ++env_.counters.nacks_ignored;
    return;
  }
  heard(now);
  path().on_feedback(record->entropy, path_feedback(nack), now);
  const bool trimmed =
      nack.nack_code == NackCode::Trimmed || nack.nack_code == NackCode::TrimmedLastHop;
  if (trimmed && record->trim_count < UINT8_MAX) ++record->trim_count;
  record->rto_count = 0;  // PDS-125: the peer lives, though it refuses
  // A refused packet has arrived. Other NACKs say that it has not.
  if (action != NackAction::RetransmitNow) record->unanswered = 0;
  if (!beyond_window && is_fatal(nack.nack_code)) {
    return on_fatal_nack(nack.nack_code, nack.nack_psn, *record, now);
  }
  if (nack.spdcid.value != 0 && !beyond_window) learn_peer(nack.spdcid, now);  // PDS-55
  if (beyond_window || nack.nack_code == NackCode::PsnOorWindow) {
    halve_assumed_window(nack.nack_psn);
  }
  if (trimmed && ccc_.credit != nullptr) {  // CMS-505: a PDC there has taken up its target
    context_known_ |= nack.spdcid.value != 0 && ccc_.credit->asks_for_credit();
    open_without_data(now);
  }
  const Psn psn = nack.nack_psn;
  if (was_only_to_hear_of_peer(*record, nack.nack_code)) {
    close_psn_ = psn;
    return finish();
  }
  if (action == NackAction::RestartRto) {
    const bool bounded = !record->provisional;  // else the peer's SES has said that it takes time
    if (bounded && now - record->first_sent >= env_.parameters.ses_processing_timeout) {  // PDS-143
      return fail(PdsError::ClosedInError, now);
    }
    record->last_sent = now;
    return;
  }
  if (on_refused_pdc(nack, *record, now)) return;
  if (action == NackAction::GoBack && state_ != PdcState::Creating) {
    if (nack.spdcid.value != 0) go_back(now);
    return wake_ccc_waiters();
  }
  flight_.refused(*ccc_.ccc, *record, nack, now);
  record->sacked = record->provisional = false;     // a refused packet left no trace (PDS-211)
  if (nack.nack_code == NackCode::NoGtdDelAvail) {  // the last CLEAR may be lost
    clear_at_once();
  }
  if (action == NackAction::RetransmitNow) {
    ++env_.counters.nack_retransmissions;
    queue_resend(psn, *record, now);
  } else {
    loss_.note_progress(*record);
    if (record->nack_count++ >= env_.parameters.max_nack_retransmissions) {
      return fail(PdsError::NackExhausted, now);
    }
    send_later(*record, now + env_.parameters.nack_retransmission_time);
  }
  settle_ccc();
  wake_ccc_waiters();
  if (ccc_.probes_wanted > 0) probe_base_rtt(now);
}

// PDS-142: a packet that was sent once and is refused has not been consumed. If it was sent more
// often, a PDC that the peer has closed since may have consumed another copy.
void Pdc::on_fatal_nack(NackCode code, Psn psn, const TxRecord& record, Time now) {
  // PDS-171, and CLOSING_IN_ERR in section 6.3: the target has already closed the PDC.
  if (state_ == PdcState::CloseAckWait &&
      (code == NackCode::InvDpdcid || code == NackCode::ClosingInErr)) {
    // After CLOSING_IN_ERR the SES of the target goes on, and what waits there with it.
    if (watches_ > 0 && code == NackCode::InvDpdcid) error_ = nack_error(code);
    return finish();
  }
  Ending ending{.error = nack_error(code)};
  if (nack_action(code) == NackAction::FailUnconsumed) {
    if (record.sent_count == 1 && !record.sacked) ending.not_consumed = psn;
    // The peer had closed the PDC before, so that packets behind this one meet no PDC either.
    ending.nothing_behind = code == NackCode::Closing || code == NackCode::InvDpdcid;
    ending.spares_backlog = role_ == Role::Initiator;
    // No PDC there: closed without a handshake.
    ending.tells_peer = code != NackCode::InvDpdcid && code != NackCode::PdcHdrMismatch;
  }
  end_all(ending, now);
}

// ---- deadlines
// ------------------------------------------------------------------------------------

// CMS-401: what takes one path only would wait for its repair. That order may suffer is accepted.
void Pdc::leave_silent_path(Time now) {
  const double rtts = env_.cms.tuning.reroute_rtts;
  if (rtts == 0) return;
  const Duration rtt = loss_context().base_rtt();
  const Duration spacing(static_cast<std::int64_t>(rtts * static_cast<double>(rtt.count())));
  if (path().reroute(env_.rng, now, spacing)) ++env_.counters.reroutes;
}

void Pdc::on_deadline(Time now) {
  if (now >= deadlines_[kClose]) {  // PDS-177
    ++env_.counters.close_in_error;
    return fail(PdsError::ClosedInError, now);
  }
  if (now >= deadlines_[kResend]) {
    Time next = destination_.mode == DeliveryMode::Rud ? infer_losses(false, now) : kNever;
    bool first = true;   // of the packets that do not wait to be sent again
    bool oldest = true;  // of those among them that the peer has not reported
    for (Psn psn = tx_.base(); psn != tx_.next_psn(); ++psn) {
      TxRecord* record = tx_.find(psn);
      if (record == nullptr || record->resend) continue;
      const bool asks = first || (oldest && !record->sacked);
      const std::optional<Time> again = check_record(psn, *record, first, asks, now);
      if (!again) return give_up(now);
      first = false;
      oldest = oldest && record->sacked;
      next = std::min(next, *again);
    }
    if (waits_for_window()) {
      if (now >= window_.ask_due()) {
        if (window_.exhausted(env_.parameters)) return give_up(now);
        send_ack_request(tx_.base() - 1);  // its ACK tells how far CACK has come
        window_.asked(env_.parameters, now);
      }
      next = std::min(next, window_.ask_due());
    }
    if (close_.wanted() || state_ == PdcState::AckWait) make_ready();
    set_deadline(kResend, next);
    if (resend_count_ > 0) make_ready();
    settle_ccc();
    wake_ccc_waiters();
  }
  if (now >= deadlines_[kSilence]) on_silence(now);
  if (now >= deadlines_[kIdle]) on_idle(now);
  set_deadline(kIdle, deadlines_[kIdle]);  // the wheel entry has fired: arm the earliest again
}

// Retries are used up. An unanswered Close Command does no harm (PDS section 6.3).
void Pdc::give_up(Time now) {
  if (role_ == Role::Target || state_ == PdcState::CloseAckWait) ++env_.counters.close_in_error;
  if (state_ != PdcState::CloseAckWait) return fail(PdsError::RtoExhausted, now);
  finish();
}

// ---- failure (PDS section 12.3)
// -------------------------------------------------------------------

void Pdc::fail(PdsError error, Time now) {
  end_all({.error = error, .tells_peer = error != PdsError::PeerLost}, now);
}

bool Pdc::is_with(const LostPeer& lost) {
  if (destination_.address != lost.address || finished()) return false;
  if (local_connection_ != 0) return local_connection_ == lost.from;
  if (state_ != PdcState::Creating || lost.to == 0) return false;
  bool any = false;
  for (Psn psn = tx_.base(); psn != tx_.next_psn(); ++psn) {
    const TxRecord* record = tx_.find(psn);
    if (record == nullptr || record->packet->way.connection == 0) continue;
    if (record->packet->way.connection != lost.to) return false;
    any = true;
  }
  return any;
}

void Pdc::lose_peer(const LostPeer& lost, Time now) {
  Ending ending{.error = PdsError::PeerLost, .tells_peer = false};
  if (lost.succeeded && role_ == Role::Initiator) {
    ending.lost = &lost;
    ending.spares_backlog = true;
  }
  end_all(ending, now);
}

void Pdc::end_all(const Ending& ending, Time now) {
  if (state_ == PdcState::Closed) return;
  const PdsError error = ending.error;
  const bool tell_peer =
      ending.tells_peer && peer_id_.value != 0 && state_ != PdcState::CloseAckWait;
  close_psn_ = tx_.next_psn();
  error_ = error;
  enter(PdcEvent::Failed);  // from here on nothing can be queued here any more
  for (Psn psn = tx_.base(); psn != tx_.next_psn(); ++psn) {
    TxRecord* record = tx_.find(psn);
    if (record == nullptr) continue;
    Message* message = record->message;
    const std::uint32_t tag = record->tag;
    const bool unread = ending.lost != nullptr && ending.lost->left_unread(record->packet->way);
    const bool behind = ending.nothing_behind && ending.not_consumed &&
                        psn > *ending.not_consumed && record->sent_count == 1 && !record->sacked;
    const bool spared = unread || behind || psn == ending.not_consumed;
    release(*record);
    if (message == nullptr) continue;
    env_.client.pds_error(*message, tag, spared ? PdsError::NotConsumed : error, now);  // PDS-134
  }
  tx_.slide();
  settle_ccc();
  while (!backlog_.empty()) {  // PDS-139
    Message& message = backlog_.pop_front();
    leave_backlog(message);
    env_.client.message_failed(message, ending.spares_backlog ? PdsError::NotConsumed : error, now);
  }
  wake_ccc_waiters();
  ++env_.counters.pdcs_failed;
  if (error == PdsError::RtoExhausted) ++env_.counters.rto_exhausted;
  if (tell_peer) send_last_word();
  // The tombstone refuses what comes behind this as not consumed (PDS-142, PDS-176): of what has
  // arrived a copy may come.
  if (role_ == Role::Target) close_psn_ = receive_.highest_psn();
  make_ready();
}

}  // namespace uet::pds
