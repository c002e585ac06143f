// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A packet delivery context: one connection-like state between two FEPs in one delivery mode.
//
// Each end is the source of one direction (SendSide: initiator -> target requests, or read data the
// other way) and the destination of the other (ReceiveSide). The PDC joins the two: it gives them
// what arrives and what time it is, opens, closes and fails. Receiving only changes state; packets
// leave in pump(), except the ACK of a guaranteed response and NACKs, which go to the outbox at
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "pds/ending.h"
#include "pds/environment.h"
#include "pds/incoming.h"
#include "pds/pdc_core.h"
#include "pds/receive_side.h"
#include "pds/send_side.h"
#include "uet/base/packet.h"
#include "uet/pds/api.h"

namespace uet::pds {

// Aligned, so that of one that has left the caches no more lines are fetched than it has.
class alignas(64) Pdc final : public PdcCore {
 public:
  Pdc(Environment& environment, Role role, PdcId id, PdcId peer_id, const Destination& destination,
      Psn start_psn, SharedCcc& ccc, Time now);

  SendSide& send_side() { return send_; }
  const SendSide& send_side() const { return send_; }
  ReceiveSide& receive_side() { return receive_; }
  const ReceiveSide& receive_side() const { return receive_; }

  // Closing, and all that was given to it has been acknowledged.
  bool drained() const {
    return send_.backlog().empty() &&
           (send_.outstanding().empty() || state_ == PdcState::CloseAckWait);
  }
  // Nothing is outstanding or queued, and no lock or watch holds the PDC.
  bool idle() const { return yields() && watches_ == 0; }
  // Idle, or held by watches only (Delivery::watch).
  bool yields() const { return send_.idle() && locks_ == 0; }
  // pump() would send an ACK at most.
  bool has_only_ack() const {
    return state_ == PdcState::Established && send_.backlog().empty() &&
           send_.outstanding().queued() == 0 && !send_.clear_debt().is_urgent() && !close_.wanted();
  }

  void lock() { ++locks_; }
  void unlock();
  void watch() { ++watches_; }
  void unwatch();
  // Gives back everything it holds without a word to the client: the FEP is going away.
  void discard();

  // One turn of the scheduler: at most `budget` data packets. True if it could go on at once.
  bool pump(std::uint32_t& budget, Time now);
  void on_deadline(Time now);

  // An ACK that asks for `asked` has been applied (AckIntake): a close that waited for it goes on.
  void after_ack(wire::AckRequestCode asked);
  void on_nack(const wire::NackHeader& nack, Time now);
  void on_request(Incoming& request, Time now);

  // Starts closing: the initiator quiesces, the target asks for it (PDS-169).
  void begin_close(Time now);
  // Starts closing for lack of PDCs: watches do not keep the PDC open.
  void close_for_shortage(Time now) {
    close_.close_for_shortage();
    begin_close(now);
  }
  void fail(PdsError error, Time now);
  // The host of the peer has reported that no process has its port (PDS-234).
  void note_refusal(const FepAddress& peer) { refused_ |= destination_.address == peer; }

  // Processes of this host (DeadPeer). A PDC belongs to the instance of the peer that has sent on
  // it first; before the first answer, to the instance that all its packets went to.
  void note_connection(std::uint16_t connection) {
    if (local_connection_ == 0) local_connection_ = connection;
  }
  bool is_connected_to(const DeadPeer& lost);
  // Fails. If another process has the address now, what the lost one has not read is NotConsumed.
  void on_dead_peer(const DeadPeer& lost, Time now);

 private:
  // A turn could do something.
  bool has_work() const { return receive_.ack_is_due() || !has_only_ack(); }
  bool is_at_psn_limit() const;
  bool clear_may_wait() const;
  bool waits_for_window() const;
  bool ask_for_window(Time now);
  void on_resend_deadline(Time now);

  CloseHandshake::Step next_close_step() const;
  void continue_close(Time now);
  void finish();
  void on_close_command(const Incoming& request, Time now);
  void on_idle(Time now);
  void await_sign_of_life(Time now);
  void on_unproved_idle(Duration idle_for, Time now);
  void end_all(const Ending& ending, Time now);
  void give_up(Time now);
  void announce_failure();

  SendSide send_;
  ReceiveSide receive_;
};

}  // namespace uet::pds
