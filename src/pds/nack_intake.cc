// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How a NACK is applied to the packet that it names, and to those behind it (PDS section 12.4).
#include "pds/nack_intake.h"

#include "pds/base_rtt_probe.h"
#include "pds/retransmit.h"

namespace uet::pds {

namespace {

// How long a peer that has refused a second PDC is asked for none.
constexpr Duration kNoAdditionalPdcTime = std::chrono::seconds(1);

// CMS-20, CMS-21: a last hop that trims says nothing of the path to it.
cms::PathFeedback path_feedback(const wire::NackHeader& nack) {
  if (nack.nack_code == NackCode::Trimmed) return cms::PathFeedback::Nack;
  if (nack.nack_code == NackCode::TrimmedLastHop) return cms::PathFeedback::Good;
  return nack.ce ? cms::PathFeedback::Ecn : cms::PathFeedback::Good;
}

NackIntake::Outcome failure(PdsError error) {
  return {.next = NackIntake::Next::Fail, .ending = {.error = error}};
}

}  // namespace

bool NackIntake::is_from_peer(const wire::NackHeader& nack) const {
  return nack.spdcid.value == 0 || nack.spdcid == core_.peer_id() ||
         core_.state() == PdcState::Creating;
}

NackIntake::Outcome NackIntake::apply(const wire::NackHeader& nack) {
  TxRecord* record = side_.window().find(nack.nack_psn);
  const NackAction action = nack_action(nack.nack_code);
  ++env().counters.nacks_received[static_cast<std::uint8_t>(nack.nack_code)];
  env().trace.write(trace::Kind::NackReceived, static_cast<unsigned>(nack.nack_code), core_.id(),
                    nack.nack_psn);
  // PDS-76: the copy of a NACK from before the last rebase names a PSN that is no longer in use.
  const bool refused = record != nullptr && core_.state() == PdcState::Creating;
  if (action == NackAction::Rebase && refused) {
    side_.heard(now_);
    return rebase(Psn{nack.payload});
  }
  const bool from_peer = is_from_peer(nack);
  if (from_peer) {
    core_.peer_counts().nacks_received.count(nack.nack_code);
    core_.peer_counts().last_heard = now_;
  }
  if (from_peer && on_refused_control(nack, record)) {
    side_.heard(now_);
    return {};
  }
  if (from_peer && record == nullptr && denies_pdc(nack)) {
    const bool initiator = core_.role() == Role::Initiator;
    return {
        .next = Next::Fail,
        .ending = {
            .error = PdsError::PeerLost, .backlog_not_consumed = initiator, .tells_peer = false}};
  }
  const bool says_nothing = action == NackAction::Ignore || action == NackAction::Rebase;
  if (!from_peer || record == nullptr || says_nothing) {  // PDS-76, PDS-141, PDS-144
    ++env().counters.nacks_ignored;
    return {};
  }
  return apply_to(*record, nack);
}

NackIntake::Outcome NackIntake::apply_to(TxRecord& record, const wire::NackHeader& nack) {
  const bool beyond_window = is_beyond_window(nack);
  const NackAction action = nack_action(beyond_window ? NackCode::PsnOorWindow : nack.nack_code);
  note_arrival(record, nack, action);
  if (!beyond_window && is_fatal(nack.nack_code)) return on_fatal(nack, record);
  if (nack.spdcid.value != 0 && !beyond_window) side_.learn_peer(nack.spdcid, now_);  // PDS-55
  if (beyond_window || nack.nack_code == NackCode::PsnOorWindow) {
    halve_assumed_window(nack.nack_psn);
  }
  if (is_trim(nack.nack_code) && core_.ccc().credit != nullptr) {
    if (nack.spdcid.value != 0) side_.note_request_known();  // CMS-505: its target was taken up
    side_.open_without_data(now_);
  }
  if (was_only_to_hear_of_peer(record, nack.nack_code)) return {.next = Next::Forget};
  if (is_refused_beside_others(nack.nack_code)) {
    ++record.nack_count;
    note_no_additional_pdc();
    if (side_.all_refused_once()) return give_way();
  }
  if (action == NackAction::RestartRto) return restart_time_out(record);
  if (on_refused_pdc(nack, record)) return {};
  // PDS-223: trimmed before the target refused the PDC.
  if (side_.outstanding().holds_data() && Outstanding::is_held(record)) return {};
  if (action == NackAction::GoBack && core_.state() != PdcState::Creating) {
    if (nack.spdcid.value != 0) go_back();
    wake_waiters(core_.ccc());
    return {};
  }
  return send_again(record, nack, action);
}

void NackIntake::note_arrival(TxRecord& record, const wire::NackHeader& nack, NackAction action) {
  side_.heard(now_);
  core_.path().on_feedback(record.entropy, path_feedback(nack), now_);
  if (is_trim(nack.nack_code)) {
    if (record.trim_count < UINT8_MAX) ++record.trim_count;
    record.excused = record.trim_count <= kQuickTrims;
  }
  record.rto_count = 0;  // PDS-125: the peer lives, though it refuses
  // A refused packet has arrived. Other NACKs say that it has not.
  if (action != NackAction::RetransmitNow) record.unanswered = 0;
}

NackIntake::Outcome NackIntake::rebase(Psn start_psn) {
  if (start_psn == core_.start_psn()) return {};
  if (!side_.rebase(start_psn, now_)) return failure(PdsError::NackExhausted);
  return {.next = Next::Rebased};
}

NackIntake::Outcome NackIntake::restart_time_out(TxRecord& record) {
  const bool bounded = !record.provisional;  // else the peer's SES has said that it takes time
  if (bounded && now_ - record.first_sent >= env().parameters.ses_processing_timeout) {  // PDS-143
    return failure(PdsError::ClosedInError);
  }
  record.restart_time_out(now_);
  return {};
}

// PDS-122, PDS-237: a refused additional PDC has time to hear of the refusal of all its packets.
Duration NackIntake::refusal_pause() const {
  const bool may_give_way = side_.additional() && core_.state() == PdcState::Creating;
  const Parameters& parameters = env().parameters;
  return may_give_way ? parameters.rto_init : parameters.nack_retransmission_time;
}

// The packet leaves again, at once or after NACK_Retx_Time (PDS-122).
NackIntake::Outcome NackIntake::send_again(TxRecord& record, const wire::NackHeader& nack,
                                           NackAction action) {
  const Parameters& parameters = env().parameters;
  Outstanding& outstanding = side_.outstanding();
  outstanding.flight().refused(ccc(), record, nack, now_);
  core_.note_window_in_trace();
  record.sacked = record.provisional = false;  // a refused packet left no trace (PDS-211)
  if (nack.nack_code == NackCode::NoGtdDelAvail) side_.clear_at_once();  // the last may be lost
  if (action == NackAction::RetransmitNow) {
    ++env().counters.nack_retransmissions;
    ++core_.peer_counts().nack_retransmissions;
    side_.queue_resend(nack.nack_psn, record, now_);
  } else {
    side_.loss().note_progress(record);
    const bool beside_others = is_refused_beside_others(nack.nack_code);  // then it is counted
    if (!beside_others && record.nack_count++ >= parameters.max_nack_retransmissions) {
      return failure(PdsError::NackExhausted);
    }
    outstanding.send_later(core_, record, now_ + refusal_pause());
  }
  outstanding.reconcile(core_);
  wake_waiters(core_.ccc());
  probe_base_rtt(side_, now_);
  return {};
}

// PDS-166: all from the gap on, except what the peer is known to have buffered.
void NackIntake::go_back() {
  TxWindow& window = side_.window();
  for (Psn psn = window.base(); psn != window.next_psn(); ++psn) {
    if (side_.peer_window().keeps_early() && psn > side_.loss().highest_reported()) return;
    TxRecord* record = window.find(psn);
    if (record == nullptr || record->sacked || record->resend) continue;
    ++env().counters.nack_retransmissions;
    ++core_.peer_counts().nack_retransmissions;
    env().trace.write(trace::Kind::Lost, static_cast<unsigned>(trace::Loss::Refused), core_.id(),
                      psn, static_cast<std::uint64_t>((now_ - record->last_sent).count()),
                      std::uint64_t{record->entropy} << 32 | record->sent_count);
    side_.outstanding().lost(core_, *record, cms::LossCause::OutOfOrder, now_);
    side_.queue_resend(psn, *record, now_);
  }
}

// PDS-223. False: the NACK says something else, or concerns a packet that asks again by itself.
bool NackIntake::on_refused_pdc(const wire::NackHeader& nack, TxRecord& record) {
  if (core_.state() != PdcState::Creating || !lacks_pdc(nack.nack_code)) return false;
  Outstanding& outstanding = side_.outstanding();
  outstanding.flight().refused(ccc(), record, nack, now_);
  if (!outstanding.holds_data()) outstanding.hold_data(core_);
  // Held packets wait for the target. Only the first packet may wait for the congestion context.
  if (outstanding.queued() == 0) side_.wait().nothing_waits(core_, now_);
  if (!Outstanding::is_held(record)) return false;
  TxRecord& first = side_.window().at(side_.window().base());
  first.rto_count = first.unanswered = 0;  // its NACK may have found no space at the target
  if (!first.resend && first.not_before == Time{}) {
    outstanding.flight().refused(ccc(), first);
    outstanding.send_later(core_, first, first.last_sent + refusal_pause());
  }
  outstanding.reconcile(core_);
  wake_waiters(core_.ccc());
  return true;
}

// The peer's window is smaller than the Default_MPR that we began with, and the packet still had
// its SYN (PDS-46). Another incarnation would be refused from its first packet on (PDS-67).
bool NackIntake::is_beyond_window(const wire::NackHeader& nack) const {
  return nack.nack_code == NackCode::InvalidSyn && nack.spdcid.value != 0 &&
         nack.nack_psn - core_.start_psn() >= least_range_psns(env().parameters);
}

void NackIntake::halve_assumed_window(Psn refused) {
  if (!side_.within_peer_window(refused)) return;
  if (!side_.peer_window().halve(refused, least_range_psns(env().parameters))) return;
  env().peer_limits.set_range(core_.destination().address, side_.peer_window().range());
}

// Another implementation may refuse the request of ask_for_proof(). A peer without the PDC says so.
bool NackIntake::answers_proof(const wire::NackHeader& nack) const {
  const bool knows_pdc =
      nack.nack_code == NackCode::PktNotRcvd || nack.nack_code == NackCode::RcvdSesProcg ||
      nack.nack_code == NackCode::AckWithData || nack.nack_code == NackCode::UnexpEvent;
  return is_from_peer(nack) && !core_.proved() && core_.asked_for_proof() && knows_pdc &&
         nack.nack_psn == core_.start_psn() - 1;
}

// PDS-224: the peer answers an ACK Request for the proof or for its window, and no packet is to
// come from a PDC that it has not.
bool NackIntake::denies_pdc(const wire::NackHeader& nack) const {
  if (nack.nack_code != NackCode::InvDpdcid) return false;
  const bool asked_for_window = side_.peer_window().ask_due() != Time{};
  return (!core_.proved() && core_.asked_for_proof() && nack.nack_psn == core_.start_psn() - 1) ||
         (asked_for_window && nack.nack_psn == side_.window().base() - 1);
}

// The peer lives and is short of PDCs: it is asked again on another PDC (Delivery::connect), and
// a PDC that has something to carry goes first there.
bool NackIntake::was_only_to_hear_of_peer(const TxRecord& refused, NackCode code) const {
  const bool shortage =
      code == NackCode::NoPdcAvail || code == NackCode::NoCccAvail || code == NackCode::NoBitmap;
  return shortage && core_.state() == PdcState::Creating && only_watched_ &&
         refused.message == nullptr && side_.window().span() == 1 && side_.backlog().empty();
}

// PDS-237: the peer has no PDC for what the others to it can carry.
bool NackIntake::is_refused_beside_others(NackCode code) const {
  return side_.additional() && core_.state() == PdcState::Creating && lacks_pdc(code);
}

void NackIntake::note_no_additional_pdc() {
  env().peer_limits.refuse_additional_pdcs(core_.destination().address,
                                           now_ + kNoAdditionalPdcTime);
}

// No packet has been consumed, and none is under way that could find a PDC at the peer later.
NackIntake::Outcome NackIntake::give_way() {
  ++env().counters.additional_pdcs_refused;
  return {.next = Next::Fail,
          .ending = {.error = PdsError::NotConsumed,
                     .not_consumed = side_.window().base(),
                     .nothing_behind = true,
                     .backlog_not_consumed = true,
                     .tells_peer = false,
                     .is_failure = false}};
}

// PDS-142: a packet that was sent once and is refused has not been consumed. If it was sent more
// often, a PDC that the peer has closed since may have consumed another copy, unless the peer still
// knows that PDC, and that the packet follows all that it has consumed (CLOSING, PDS-176).
NackIntake::Outcome NackIntake::on_fatal(const wire::NackHeader& nack,
                                         const TxRecord& record) const {
  const NackCode code = nack.nack_code;
  // PDS-171, and CLOSING_IN_ERR in section 6.3: the target has already closed the PDC.
  if (core_.state() == PdcState::CloseAckWait &&
      (code == NackCode::InvDpdcid || code == NackCode::ClosingInErr)) {
    return {.next = Next::Closed};
  }
  Ending ending{.error = nack_error(code)};
  if (nack_action(code) == NackAction::FailUnconsumed) {
    ending.copies_count = code != NackCode::Closing;
    if (ending.is_fresh(record.sent_count) && !record.sacked) ending.not_consumed = nack.nack_psn;
    // The peer had closed the PDC before, so that packets behind this one meet no PDC either.
    ending.nothing_behind = code == NackCode::Closing || code == NackCode::InvDpdcid;
    ending.backlog_not_consumed = core_.role() == Role::Initiator;
    // No PDC there: closed without a handshake.
    ending.tells_peer = code != NackCode::InvDpdcid && code != NackCode::PdcHdrMismatch;
  }
  return {.next = Next::Fail, .ending = ending};
}

}  // namespace uet::pds
