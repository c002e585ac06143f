// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A PDC as the source of its direction: messages that wait to be sent (Backlog), packets that are
// not acknowledged (Outstanding), the window of the peer (PeerWindow), the rules of loss
// (LossDetector), and the CLEAR that is owed (ClearDebt). Others act on these parts: SendTurn makes
// packets and sends them, new ones and lost ones, as far as the windows allow; AckIntake,
// NackIntake and LossRecovery, when an ACK or a NACK arrives or time passes. Must not know what
// arrives, nor how the PDC closes.
#pragma once

#include <cstdint>
#include <optional>

#include "pds/backlog.h"
#include "pds/clear_debt.h"
#include "pds/ending.h"
#include "pds/loss_detector.h"
#include "pds/outstanding.h"
#include "pds/pdc_core.h"
#include "pds/peer_window.h"
#include "pds/window_wait.h"
#include "uet/base/packet.h"
#include "uet/base/time.h"
#include "uet/base/types.h"
#include "uet/pds/api.h"

namespace uet::pds {

class SendSide {
 public:
  // `core` outlives it.
  SendSide(PdcCore& core, Time now);

  PdcCore& core() { return core_; }
  Outstanding& outstanding() { return outstanding_; }
  const Outstanding& outstanding() const { return outstanding_; }
  TxWindow& window() { return outstanding_.window(); }
  const TxWindow& window() const { return outstanding_.window(); }
  Backlog& backlog() { return backlog_; }
  const Backlog& backlog() const { return backlog_; }
  PeerWindow& peer_window() { return peer_window_; }
  LossDetector& loss() { return loss_; }
  const LossDetector& loss() const { return loss_; }
  ClearDebt& clear_debt() { return clear_; }
  const ClearDebt& clear_debt() const { return clear_; }
  WindowWait& wait() { return wait_; }
  LossContext loss_context() const;

  // Nothing waits and nothing is outstanding.
  bool idle() const { return outstanding_.empty() && backlog_.empty(); }
  // `psn` was sent, or is the one before the first.
  bool has_sent(Psn psn) const { return psn >= core_.start_psn() - 1 && psn < window().next_psn(); }
  // All that is outstanding and has gone to a process of this host went through `connection`.
  bool went_only_to(std::uint16_t connection);

  // ---- what SES gives ---------------------------------------------------------------------------

  // Queues the message, which stays the caller's until it is answered for.
  void enqueue(Message& message, Time now);
  // From now on the application waits for the answers to all messages.
  void request_acks_now();
  // Gives back everything without a word to the client.
  void discard();
  // Ends every packet and message with an error to the client (PDS-134, PDS-139).
  void fail_all(const Ending& ending, Time now);

  // ---- what leaves ------------------------------------------------------------------------------

  // A control packet that consumes a PSN; acknowledged and resent like a request (PDS-155). False
  // if none can be sent now.
  bool send_control(wire::CpType type, Time now);
  // Sends the owed CLEAR as a packet of its own.
  void send_clear_command();
  // The owed CLEAR waits for no request to travel with.
  void clear_at_once();
  // A NOOP opens the PDC at the peer, since what it has sent has not and more needs credit. Once;
  // false if there is nothing to open, or it was tried.
  bool open_without_data(Time now);
  // The record leaves again at once (then kNever is returned), or when the pause that follows
  // unanswered retransmissions ends (then its end is returned).
  Time queue_resend(Psn psn, TxRecord& record, Time now);

  // ---- windows ----------------------------------------------------------------------------------

  // PDS-40, and PDS-52: before establishment psn_offset must fit its 12 bits.
  bool within_peer_window(Psn psn) const;
  // The peer's window stays closed: it is asked for an ACK.
  void await_window(Time now);
  // The receiver has granted `credit`, in units of the wire (CMS-202).
  void on_credit(std::uint32_t credit, Time now);
  // A Credit Request names no context: the peer must know it from a request of this PDC.
  bool can_request_credit() const { return context_known_ && !core_.finished(); }
  // The peer has had a request: it knows the context that the request names, if it names one.
  void note_request_known();

  // ---- the peer ---------------------------------------------------------------------------------

  // An authentic packet of the peer has come: the peer lives (PDS-125).
  void heard(Time now);
  // The peer's PDC id becomes known from the first packet of its own (PDS-51, PDS-199).
  void learn_peer(PdcId peer_id, Time now);
  // All outstanding packets begin at `start_psn` instead and leave again (PDS-77). False: too
  // often.
  [[nodiscard]] bool rebase(Psn start_psn, Time now);
  // A NOOP was sent to open the PDC.
  bool opened_without_data() const { return opened_without_data_; }
  // It was opened beside others to its destination (PDS-9), which can do its work.
  void note_additional() { additional_ = true; }
  bool additional() const { return additional_; }
  // Everything outstanding has been sent once, and the peer has refused it.
  bool all_refused_once();

 private:
  Environment& env() const { return core_.env(); }
  SharedCcc& ccc() const { return core_.ccc(); }
  void release_held(Time now);

  PdcCore& core_;
  // The fields that each transmission uses come first, in adjacent cache lines.
  [[no_unique_address]] Outstanding outstanding_;  // the next three bytes lie in its tail
  bool context_known_ : 1 = false;        // the peer has had a request that names the context
  bool opened_without_data_ : 1 = false;  // a NOOP was sent for that
  bool additional_ : 1 = false;           // opened beside others to its destination
  std::uint16_t rebases_ = 0;             // PDS-77
  Backlog backlog_;
  PeerWindow peer_window_;
  WindowWait wait_;
  LossDetector loss_;
  ClearDebt clear_;
};

}  // namespace uet::pds
