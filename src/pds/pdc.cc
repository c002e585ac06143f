// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A PDC's own life: its turns and deadlines, what it does with NACKs, its end.
// Must not know SES headers, sockets or clocks.
#include "pds/pdc.h"

#include <algorithm>

#include "pds/loss_recovery.h"
#include "pds/nack_intake.h"
#include "pds/retransmit.h"
#include "pds/send_turn.h"

namespace uet::pds {

// An idle PDC takes 1 KiB at most with all that belongs to it, in steps of a cache line.
static_assert(sizeof(Pdc) <= 576);

Pdc::Pdc(Environment& environment, Role role, PdcId id, PdcId peer_id,
         const Destination& destination, Psn start_psn, SharedCcc& ccc, Time now)
    : PdcCore(environment, role, id, peer_id, destination, start_psn, ccc, now),
      send_(*this, now),
      receive_(*this, start_psn) {}

void Pdc::discard() {
  if (receive_.credit_sender() != nullptr) env_.credits->leave(*this);
  send_.discard();
  receive_.discard();
}

void Pdc::unlock() {
  UET_ASSERT(locks_ > 0);
  if (locks_ > 0) --locks_;
  make_ready();
}

void Pdc::unwatch() {
  UET_ASSERT(watches_ > 0);
  if (watches_ > 0) --watches_;
  make_ready();
}

// Nothing is kept from leaving by the window that the CLEAR would open (PDS-48).
bool Pdc::clear_may_wait() const {
  return send_.clear_debt().may_wait_for_request() && state_ == PdcState::Established &&
         send_.backlog().empty() && !close_.wanted();
}

// PDS-80. The close begins once.
bool Pdc::is_at_psn_limit() const {
  if (!env_.parameters.secured || state_ != PdcState::Established) return false;
  const std::int32_t used = send_.window().next_psn() - start_psn_;
  return used < 0 || static_cast<std::uint32_t>(used) >= env_.parameters.psn_limit;
}

bool Pdc::pump(std::uint32_t& budget, Time now) {
  if (state_ == PdcState::Closed) return false;
  if (receive_.ack_is_due()) receive_.send_waiting_ack(now);
  if (proof_due_) {
    proof_due_ = proof_asked_ = false;
    ask_for_proof();
  }
  SendTurn turn(send_, budget, now);
  if (!turn.send_lost() || !turn.send_new() || !turn.send_refused()) return true;
  if (send_.outstanding().queued() == 0 && send_.backlog().empty()) {
    send_.wait().nothing_waits(*this, now);
  }
  const bool owes_clear = send_.clear_debt().owed() && state_ != PdcState::Creating;
  if (owes_clear && !clear_may_wait()) send_.send_clear_command();
  if (close_.wanted() || is_at_psn_limit()) begin_close(now);
  if (state_ != PdcState::Established && state_ != PdcState::Creating) continue_close(now);
  return receive_.ack_is_due();
}

// ---- what arrives -------------------------------------------------------------------------------

void Pdc::after_ack(wire::AckRequestCode asked) {
  if (asked == wire::AckRequestCode::Close && role_ == Role::Initiator) close_.peer_asks();
  if (state_ == PdcState::CloseAckWait && send_.outstanding().empty()) return finish();
  if (has_work()) make_ready();
}

void Pdc::on_nack(const wire::NackHeader& nack, Time now) {
  NackIntake intake(send_, watches_ > 0 && locks_ == 0, now);
  if (intake.answers_proof(nack)) receive_.prove();
  const NackIntake::Outcome outcome = intake.apply(nack);
  switch (outcome.next) {
    case NackIntake::Next::GoesOn:
      break;
    case NackIntake::Next::Rebased:
      return receive_.rebase(start_psn_);
    case NackIntake::Next::Forget:
      close_psn_ = nack.nack_psn;
      return finish();
    case NackIntake::Next::Closed:
      // After CLOSING_IN_ERR the SES of the target goes on, and what waits there with it.
      if (watches_ > 0 && nack.nack_code == NackCode::InvDpdcid) {
        error_ = nack_error(nack.nack_code);
      }
      return finish();
    case NackIntake::Next::Fail:
      return end_all(outcome.ending, now);
  }
}

void Pdc::on_request(Incoming& request, Time now) {
  send_.heard(now);
  PeerCounters& counts = peer_counts();
  ++counts.packets_received;
  counts.bytes_received += request.nominal_bytes;
  counts.trimmed_received += request.trimmed ? 1 : 0;
  counts.last_heard = now;
  extend_close(now);
  if (receive_.on_request(request, now)) on_close_command(request, now);
}

// ---- deadlines ----------------------------------------------------------------------------------

void Pdc::on_deadline(Time now) {
  if (now >= deadlines_[kClose]) {  // PDS-177
    ++env_.counters.close_in_error;
    return fail(PdsError::ClosedInError, now);
  }
  if (now >= deadlines_[kResend]) {
    on_resend_deadline(now);
    if (finished()) return;
  }
  if (now >= deadlines_[kSilence]) LossRecovery(send_, now).on_silence();
  if (now >= deadlines_[kIdle]) on_idle(now);
  set_deadline(kIdle, deadlines_[kIdle]);  // the wheel entry has fired: arm the earliest again
}

void Pdc::on_resend_deadline(Time now) {
  const std::optional<Time> again = LossRecovery(send_, now).check_all();
  if (!again) return give_up(now);
  Time next = *again;
  if (waits_for_window()) {
    if (!ask_for_window(now)) return give_up(now);
    next = std::min(next, send_.peer_window().ask_due());
  }
  if (close_.wanted() || state_ == PdcState::AckWait) make_ready();
  set_deadline(kResend, next);
  if (send_.outstanding().queued() > 0) make_ready();
  send_.outstanding().reconcile(*this);
  wake_waiters(ccc_);
}

// Something is kept back by the peer's window, and no packet is out whose ACK would move it.
bool Pdc::waits_for_window() const {
  if (send_.within_peer_window(send_.window().base())) return false;
  return !send_.idle() || close_.wanted() || state_ == PdcState::AckWait;
}

// False if the peer has not answered for as often as it is asked.
bool Pdc::ask_for_window(Time now) {
  PeerWindow& window = send_.peer_window();
  if (now < window.ask_due()) return true;
  if (window.exhausted(env_.parameters)) return false;
  send_ack_request(send_.window().base() - 1);  // its ACK tells how far CACK has come
  window.asked(env_.parameters, now);
  return true;
}

// Idle is checked every keepalive_time, and when a CLEAR has found no request to travel with: an
// unused PDC closes (PDS-173, PDS-174); one that waits for the peer without having anything
// outstanding sends a NOOP, which fails the PDC if the peer is dead. So does the PDC of a watched
// peer (PDS-234).
void Pdc::on_idle(Time now) {
  const Parameters& parameters = env_.parameters;
  const Duration idle_for = now - last_activity_;
  const Duration limit =
      role_ == Role::Initiator ? parameters.initiator_idle_time : parameters.target_idle_time;
  const Duration period = env_.peers != nullptr ? parameters.peer_probe_period : Duration{};
  const bool watched = period > Duration{} && state_ == PdcState::Established && proved_;
  set_deadline(kIdle, now + (watched ? std::min(parameters.keepalive_time, period / 4)
                                     : parameters.keepalive_time));
  receive_.ask_for_clear_if_late(now);
  if (send_.clear_debt().may_wait_for_request()) send_.clear_at_once();
  if (!proved_) {
    on_unproved_idle(idle_for, now);
  } else if (takes_messages() && idle() && idle_for >= limit && !watched) {
    begin_close(now);
  } else if (locks_ + watches_ > 0 && send_.outstanding().empty() &&
             idle_for >= parameters.keepalive_time) {
    await_sign_of_life(now);
  } else if (role_ == Role::Target && state_ == PdcState::Quiesce && idle() &&
             deadlines_[kClose] == kNever) {  // nothing watches it any more
    set_deadline(kClose, now + CloseHandshake::patience(parameters, proved_));
  }
  if (!watched || finished()) return;
  // A report of a closed port can be forged: the peer may still answer.
  const Duration silence = now - send_.loss().peer_lived();
  refused_ = refused_ && !send_.outstanding().empty() && silence >= period;
  if (refused_ && silence >= period + period / 2) return fail(PdsError::PeerLost, now);
  if (send_.outstanding().empty() && now - last_activity_ >= period) await_sign_of_life(now);
}

// To a peer that knows no NOOP (PDS-221) the ACK of the last PSN is one, if there is a last PSN.
void Pdc::await_sign_of_life(Time now) {
  const Parameters& parameters = env_.parameters;
  const LossDetector& loss = send_.loss();
  if (!env_.peer_limits.refuses(destination_.address, wire::CpType::Noop)) {
    send_.send_control(wire::CpType::Noop, now);
  } else if (send_.window().base() != start_psn_) {
    const Duration silence = now - std::max(loss.peer_lived(), last_activity_);
    const Duration limit = silence_limit(parameters, loss.answers_take());
    if (silence >= parameters.keepalive_time + limit) return fail(PdsError::RtoExhausted, now);
    send_ack_request(send_.window().clear_psn());
  }
}

// Nothing is repeated to an address that has never answered: it is asked for its proof, and to
// close in the end, as often as what came from there allows; and in the turn of the PDC (PDS-225).
void Pdc::on_unproved_idle(Duration idle_for, Time now) {
  const Parameters& parameters = env_.parameters;
  // An initiator that waits for data sends a NOOP after its keepalive_time.
  const Duration limit = idle() ? parameters.target_idle_time
                                : std::max(silence_limit(parameters, send_.loss().answers_take()),
                                           4 * parameters.keepalive_time);
  if (idle_for >= limit && !idle()) return fail(PdsError::PeerLost, now);
  if (idle_for >= limit && takes_messages()) return begin_close(now);
  proof_due_ = true;
  make_ready();
}

// ---- closing ------------------------------------------------------------------------------------

void Pdc::begin_close(Time now) {
  send_.request_acks_now();
  const bool unused = send_.window().next_psn() == start_psn_ && idle();
  switch (close_.begin(role_, state_, unused)) {
    case CloseHandshake::Begin::Later:
      return;
    case CloseHandshake::Begin::Forget:
      close_psn_ = start_psn_;
      return finish();
    case CloseHandshake::Begin::AskInitiator:
      if (!may_send(cms::nominal_packet_bytes(sizeof(wire::PdsControl)))) {
        return fail(PdsError::PeerLost, now);
      }
      if (!send_.send_control(wire::CpType::CloseRequest, now)) return send_.await_window(now);
      // PDS-177. A peer that is slow to close must not cost what waits for the application here.
      if (watches_ == 0) {
        set_deadline(kClose, now + CloseHandshake::patience(env_.parameters, proved_));
      }
      break;
    case CloseHandshake::Begin::Quiesce:
      break;
  }
  close_.begun();
  enter(PdcEvent::CloseWanted);
  make_ready();
}

CloseHandshake::Step Pdc::next_close_step() const {
  return CloseHandshake::next(role_, state_, send_.backlog().empty(), send_.outstanding().empty(),
                              close_.is_held(locks_, watches_));
}

void Pdc::continue_close(Time now) {
  if (next_close_step() == CloseHandshake::Step::Drained) enter(PdcEvent::Drained);
  if (next_close_step() != CloseHandshake::Step::SendClose) return;
  close_psn_ = send_.window().next_psn();
  if (send_.clear_debt().owed() || !send_.send_control(wire::CpType::Close, now)) {
    return send_.await_window(now);
  }
  enter(PdcEvent::CloseSent);
}

// The handshake is over. Manager frees the PDC and keeps a tombstone.
void Pdc::finish() {
  discard();
  enter(PdcEvent::CloseDone);
  ++env_.counters.pdcs_closed;
  make_ready();
}

// PDS section 6.4: answered, then the PDC is gone.
void Pdc::on_close_command(const Incoming& request, Time now) {
  const bool return_data = !send_.backlog().empty() || send_.outstanding().has_data();
  switch (CloseHandshake::reply(role_, return_data, watches_ > 0)) {
    case CloseHandshake::Reply::Unexpected:
      return send_nack(NackCode::UnexpEvent, request.meta);
    case CloseHandshake::Reply::Ignore:
      return;
    case CloseHandshake::Reply::Refuse:
      send_nack(NackCode::ClosingInErr, request.meta);
      ++env_.counters.close_in_error;
      return fail(PdsError::ClosedInError, now);
    case CloseHandshake::Reply::Accept:
      break;
  }
  close_psn_ = request.meta.psn;
  receive_.close_arrived(request.meta, now);
  finish();
}

// ---- failure (PDS section 12.3) -----------------------------------------------------------------

void Pdc::fail(PdsError error, Time now) {
  end_all({.error = error, .tells_peer = error != PdsError::PeerLost}, now);
}

// Retries are used up. An unanswered Close Command does no harm (PDS section 6.3).
void Pdc::give_up(Time now) {
  if (role_ == Role::Target || state_ == PdcState::CloseAckWait) ++env_.counters.close_in_error;
  if (state_ != PdcState::CloseAckWait) return fail(PdsError::RtoExhausted, now);
  finish();
}

bool Pdc::is_connected_to(const DeadPeer& lost) {
  if (destination_.address != lost.address || finished()) return false;
  if (local_connection_ != 0) return local_connection_ == lost.from;
  if (state_ != PdcState::Creating || lost.to == 0) return false;
  return send_.went_only_to(lost.to);
}

void Pdc::on_dead_peer(const DeadPeer& lost, Time now) {
  Ending ending{.error = PdsError::PeerLost, .tells_peer = false};
  if (lost.succeeded && role_ == Role::Initiator) {
    ending.lost = &lost;
    ending.backlog_not_consumed = true;
  }
  end_all(ending, now);
}

void Pdc::end_all(const Ending& ending, Time now) {
  if (state_ == PdcState::Closed) return;
  const bool tell_peer =
      ending.tells_peer && peer_id_.value != 0 && state_ != PdcState::CloseAckWait;
  close_psn_ = send_.window().next_psn();
  error_ = ending.error;
  enter(PdcEvent::Failed);  // from here on nothing can be queued here any more
  send_.fail_all(ending, now);
  if (ending.is_failure) ++env_.counters.pdcs_failed;
  if (ending.error == PdsError::RtoExhausted) ++env_.counters.rto_exhausted;
  if (tell_peer) announce_failure();
  // The tombstone refuses what comes behind this as not consumed (PDS-142, PDS-176): of what has
  // arrived a copy may come.
  if (role_ == Role::Target) close_psn_ = receive_.delivered().highest;
  make_ready();
}

// PDS-135: best effort, the PDC is already gone here.
void Pdc::announce_failure() {
  const bool initiator = role_ == Role::Initiator;
  send_untracked({.ctl_type = initiator ? wire::CpType::Close : wire::CpType::CloseRequest,
                  .ar = true,
                  .psn = close_psn_});
}

}  // namespace uet::pds
