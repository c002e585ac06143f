// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How an ACK is applied to the packets that were sent (PDS-108, steps in its order).
#include "pds/ack_intake.h"

#include <algorithm>
#include <bit>

#include "cms/rtt.h"
#include "pds/base_rtt_probe.h"
#include "pds/loss_recovery.h"

namespace uet::pds {

// Its ids and its CACK_PSN fit.
bool AckIntake::is_plausible(const wire::AckHeader& ack) const {
  const bool creating = pdc_.state() == PdcState::Creating;
  const bool from_peer = creating || ack.spdcid == pdc_.peer_id();
  // Start_PSN bounds a young PDC only: later it is more than half the circle away.
  const bool not_below_start = !creating || ack.cack_psn >= pdc_.start_psn() - 1;
  // An ACK that was overtaken is at most a window older than the newest one. Of random CACK_PSNs
  // hardly any is in here.
  const auto window = static_cast<std::int32_t>(side_.window().capacity());
  const bool in_window = ack.cack_psn < side_.window().next_psn() &&
                         side_.peer_window().cack() - ack.cack_psn <= window;
  return from_peer && ack.spdcid.value != 0 && in_window && not_below_start;
}

void AckIntake::apply(const wire::AckHeader& ack, std::span<const std::byte> ses, Time arrived) {
  if (!is_plausible(ack)) {
    ++env().counters.acks_invalid;
    return;
  }
  ++env().counters.acks_received;
  ++pdc_.peer_counts().acks_received;
  pdc_.peer_counts().last_heard = now_;
  pdc_.receive_side().prove();
  side_.loss().ack_heard(now_);
  side_.heard(now_);
  const bool asked_for_window = side_.peer_window().ack_heard();
  side_.learn_peer(ack.spdcid, now_);
  note_range(ack);
  cms::AckFeedback feedback;
  std::uint64_t acked_bytes = 0;
  unmarked_ = pdc_.path().uses_feedback() && !ack.ce && !ack.p;
  // The answer to a probe names no packet. The explicit response comes before those that CACK
  // implies (PDS-109).
  const TxRecord* named = ack.p ? nullptr : side_.window().find(ack.ack_psn());
  if (named != nullptr) {
    learn_times(ack, *named, arrived, feedback);
    acked_bytes = acknowledge(ack.ack_psn(), ResponseView{ack.next_hdr, ses, ack.ack_psn()});
  }
  acked_bytes += apply_cack(ack.cack_psn);
  if (ack.type != wire::PdsType::Ack) apply_sack(ack);
  const Psn cleared = side_.window().clear_psn();
  side_.window().slide();
  note_in_trace(ack);
  note_clear(ack, cleared, asked_for_window);
  if (ack.p) on_probe_answer(ack, arrived);
  inform_ccc(ack, feedback, acked_bytes);
  probe_base_rtt(side_, now_);
  if (ack.type == wire::PdsType::AckCc && ack.cc_type == wire::CcType::Credit) {
    side_.on_credit(ack.credit, now_);
  }
  if (!pdc_.ordered()) {  // CMS-424: ROD has its own NACK
    pdc_.bring_forward(PdcCore::kResend, LossRecovery(side_, now_).infer_losses(true));
  }
  pdc_.after_ack(ack.req);
}

void AckIntake::note_in_trace(const wire::AckHeader& ack) {
  const cms::Ccc& ccc = *pdc_.ccc().ccc;
  env().trace.write(trace::Kind::AckReceived, ack.ce ? 1 : 0, pdc_.id(), ack.cack_psn,
                    ccc.window_bytes() << 32 | static_cast<std::uint32_t>(std::max<std::int64_t>(
                                                   0, ccc.inflight_bytes())));
}

void AckIntake::note_range(const wire::AckHeader& ack) {
  PeerWindow& window = side_.peer_window();
  const Parameters& parameters = env().parameters;
  is_newest_ = ack.type != wire::PdsType::Ack && window.is_newest(ack.cack_psn);  // PDS-41
  const bool says_range = ack.mpr != 0 || parameters.mpr_zero_psns != 0;          // PDS-43, PDS-218
  if (is_newest_ && says_range && window.set_range(range_psns(parameters, ack.mpr))) {
    env().peer_limits.forget_range(pdc_.destination().address);
  }
}

// The answer to this packet tells the round trip, the state of its path, and the time that answers
// take.
void AckIntake::learn_times(const wire::AckHeader& ack, const TxRecord& record, Time arrived,
                            cms::AckFeedback& feedback) {
  const std::uint16_t service_time =
      ack.type == wire::PdsType::AckCc ? ack.service_time : cms::kServiceTimeInvalid;
  if (!record.asked) {
    std::optional<Duration> base_rtt;  // costs a little to find out, and is rarely asked for
    if (record.sent_count > 2) base_rtt = side_.loss_context().known_base_rtt();
    feedback.rtt =
        cms::rtt_sample(record.transmissions(), ack.retx, arrived, service_time, base_rtt);
  }
  if (ack.ce) pdc_.path().on_feedback(record.entropy, cms::PathFeedback::Ecn, now_);  // CMS-114
  // The RETX flag says which transmission is answered. A packet that was SACKed before had been
  // answered already: this answer came because an ACK was requested.
  if (!record.sacked && !record.asked) {
    if (record.sent_count == 1) pdc_.path().on_answered(record.entropy);
    if (!ack.retx && record.sent_count != UINT16_MAX) {
      side_.loss().answer_took(now_ - record.first_sent);
    } else if (record.sent_count == 2 && !record.restarted) {
      side_.loss().answer_took(now_ - record.last_sent);
    }
  }
  const bool late = service_time == cms::kServiceTimeTooLong && record.sent_count == 1 &&
                    !record.asked && !record.restarted;
  if (feedback.rtt || late) feedback.loop = now_ - record.last_sent;
}

void AckIntake::note_reported(Psn psn, TxRecord& record) {
  cms::PathSelector& path = pdc_.path();
  if (path.uses_feedback() && !record.sacked) path.on_acknowledged(record.entropy, now_);
  if (side_.loss().reported(side_.loss_context(), psn, record, now_)) {
    ++env().counters.inferred_losses_spurious;
  }
}

// CMS-418: what an unmarked ACK reports for the first time went along good paths. Which of several
// transmissions arrived is not known.
void AckIntake::credit_path(const TxRecord& record) {
  if (!unmarked_ || record.sacked || record.sent_count != 1) return;
  pdc_.path().on_feedback(record.entropy, cms::PathFeedback::Good, now_);
}

// Returns the nominal bytes that this newly acknowledged.
std::uint64_t AckIntake::acknowledge(Psn psn, const ResponseView& response) {
  TxRecord* record = side_.window().find(psn);
  if (record == nullptr) return 0;
  note_reported(psn, *record);
  credit_path(*record);
  Flight& flight = side_.outstanding().flight();
  flight.arrived_after_all(ccc(), *record);
  const std::uint64_t bytes = record->message != nullptr ? record->nominal_bytes : 0;
  if (bytes > 0) side_.note_request_known();
  if (!record->sacked && bytes > 0) flight.reported(*record);
  Message* message = record->message;
  const std::uint32_t tag = record->tag;
  const bool reported = record->sacked;
  Packet* packet = side_.outstanding().withdraw(pdc_, *record);
  Verdict verdict = Verdict::Final;
  if (message != nullptr) verdict = message->owner->rx_rsp(*message, tag, response, now_);
  const bool answered =
      verdict == Verdict::Final || response.next_hdr == wire::NextHdr::None;  // PDS-87
  if (answered || pdc_.finished()) {
    env().packets.give_back(packet);
  } else {
    await_final_response(psn, *record, *packet);
  }
  // The client failed the PDC meanwhile and got an error for each packet except this one.
  if (!answered && pdc_.finished()) {
    message->owner->pds_error(*message, tag, pdc_.error().value_or(PdsError::ClosedInError), now_);
  }
  return reported ? 0 : bytes;
}

// SES-46, SES-48: the peer has the packet and holds its CACK below it until the real response is
// there, which takes as long as an application there takes. It is asked so rarely that this costs
// nothing, and often enough that a dead peer is noticed (PDS-90).
void AckIntake::await_final_response(Psn psn, TxRecord& record, Packet& packet) {
  record.packet = &packet;
  pdc_.bring_forward(PdcCore::kResend,
                     side_.loss().await_final_response(env().parameters, psn, record, now_));
}

// PDS-87: every PSN up to CACK needed nothing more than the default response.
std::uint64_t AckIntake::apply_cack(Psn cack) {
  TxWindow& window = side_.window();
  std::uint64_t bytes = 0;
  for (Psn psn = window.base(); psn <= cack && psn != window.next_psn(); ++psn) {
    bytes += acknowledge(psn, ResponseView{wire::NextHdr::None, {}, psn});
  }
  if (side_.peer_window().move_cack(cack)) side_.loss().cack_moved();
  return bytes;
}

// PDS-88, PDS-89: a set bit says received, not acknowledged; a zero bit says nothing.
void AckIntake::apply_sack(const wire::AckHeader& ack) {
  Outstanding& outstanding = side_.outstanding();
  std::uint64_t bits = ack.sack_bitmap;
  while (bits != 0) {
    const int i = std::countr_zero(bits);
    bits &= bits - 1;
    const Psn psn = ack.sack_base() + i;
    TxRecord* record = outstanding.window().find(psn);
    if (record == nullptr || record->sacked) continue;
    if (record->message != nullptr && !record->out_of_flight) {
      outstanding.flight().reported(*record);
    }
    credit_path(*record);
    note_reported(psn, *record);
    record->sacked = true;
    side_.peer_window().note_keeps_early();
    outstanding.flight().arrived_after_all(ccc(), *record);
    if (!record->resend && record->not_before == Time{}) continue;
    if (record->resend) outstanding.unqueue(pdc_, *record);
    record->not_before = Time{};
    // Its response is still to come: watched again (PDS-89, PDS-90).
    pdc_.bring_forward(PdcCore::kResend,
                       record->last_sent + side_.loss().response_time(env().parameters, *record));
  }
}

void AckIntake::note_clear(const wire::AckHeader& ack, Psn cleared_before, bool asked_for_window) {
  const Psn cleared = side_.window().clear_psn();
  std::optional<Psn> clear_asked;
  if (ack.req == wire::AckRequestCode::Clear) clear_asked = ack.ack_psn();
  if (side_.clear_debt().on_ack(clear_asked, cleared_before, cleared,
                                side_.outstanding().empty())) {
    pdc_.bring_forward(PdcCore::kIdle, now_ + env().parameters.clear_time);
  }
  // All is answered and CACK has not moved over it: the last CLEAR was lost, and no request can
  // leave that would carry it (PDS-118).
  if (asked_for_window && side_.peer_window().cack() < cleared) side_.clear_debt().pay_at_once();
}

void AckIntake::inform_ccc(const wire::AckHeader& ack, cms::AckFeedback& feedback,
                           std::uint64_t newly_acked_bytes) {
  const bool longer = side_.outstanding().flight().inform(
      ccc(), ack, is_newest_, feedback, newly_acked_bytes, side_.outstanding().empty(), now_);
  SharedCcc& shared = pdc_.ccc();
  PeerCounters& counts = pdc_.peer_counts();
  counts.marks_received += ack.ce ? 1 : 0;
  if (feedback.rtt) counts.rtt = *feedback.rtt;
  if (longer && shared.measures_base_rtt) shared.probes_wanted = kBaseRttProbes;
  side_.outstanding().reconcile(pdc_);
  wake_waiters(shared);
}

void AckIntake::on_probe_answer(const wire::AckHeader& ack, Time arrived) {
  if (ack.probe_opaque >= LossDetector::kFirstOpaque) {
    LossRecovery(side_, now_).on_probe_answer(ack, arrived);
  } else {
    on_base_rtt_answer(pdc_.ccc(), ack, arrived);
  }
}

}  // namespace uet::pds
