// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a PDC does about the verdicts of its LossDetector: lost packets leave again, a silent peer
// is asked. Exists for one look at the outstanding packets, at the time `now`.
#pragma once

#include <cstdint>
#include <optional>

#include "pds/send_side.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"

namespace uet::pds {

class LossRecovery {
 public:
  // `side` outlives it.
  LossRecovery(SendSide& side, Time now) : side_(side), core_(side.core()), now_(now) {}

  // Lost packets that reports of later ones show leave again (PDS-130, PDS-131). `by_ack`: a report
  // has just come. Returns when to look again.
  Time infer_losses(bool by_ack);
  // The deadline kResend is over. Returns when to look again; empty if the PDC has to fail.
  std::optional<Time> check_all();
  // Asks a silent peer (CMS-151), and for the ACK of the tail (PDS-128), when it is time to.
  void on_silence();
  // The congestion window, but not a lack of credit, holds everything back. The packets that have
  // asked for an ACK may all have been refused, so that none in flight has.
  void on_closed_window();
  // The packets that left by this rail are lost, and leave again at once. Where none did, the peer
  // is asked for the ACKs that were to come by it (PDS-227).
  void on_lost_rail(std::uint8_t rail);
  // The answer to a Probe of on_silence() arrived at this host at `arrived`.
  void on_probe_answer(const wire::AckHeader& ack, Time arrived);

 private:
  void note_in_trace(trace::Loss why, Psn psn, const TxRecord& record);
  void send_lost_again();
  Time look_for_tail();
  Time look_at_closed_window();
  Time look_for_silence();
  std::optional<Time> check_record(Psn psn, TxRecord& record, bool first, bool asks);
  void leave_silent_path();

  SendSide& side_;
  PdcCore& core_;
  const Time now_;
};

// Asks for the ACK of the newest packet if no ACK of it is asked for (PDS-128). It covers all
// packets before that one, too.
void ask_for_tail(SendSide& side);

}  // namespace uet::pds
