// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What one NACK does to the packets of a PDC; the table of codes is in nack.h. Exists while the
// NACK is applied, at the time `now`.
#pragma once

#include <cstdint>

#include "pds/ending.h"
#include "pds/nack.h"
#include "pds/send_side.h"
#include "uet/base/time.h"
#include "uet/base/types.h"
#include "uet/pds/api.h"

namespace uet::pds {

class NackIntake {
 public:
  enum class Next : std::uint8_t {
    GoesOn,
    Rebased,  // Start_PSN is another one (PDS-77)
    Forget,   // the PDC ends: the peer has none, and nothing is lost with this one
    Closed,   // the peer has closed already (PDS-171)
    Fail,     // the PDC fails
  };
  struct Outcome {
    Next next = Next::GoesOn;
    Ending ending{};  // of Fail
  };

  // `only_watched`: no lock, but a watch holds the PDC (Delivery::watch). `side` outlives it.
  NackIntake(SendSide& side, bool only_watched, Time now)
      : side_(side), core_(side.core()), only_watched_(only_watched), now_(now) {}

  // Returns how the PDC goes on.
  [[nodiscard]] Outcome apply(const wire::NackHeader& nack);
  // The NACK answers PdcCore::ask_for_proof().
  bool answers_proof(const wire::NackHeader& nack) const;

 private:
  Environment& env() const { return core_.env(); }
  cms::Ccc& ccc() const { return *core_.ccc().ccc; }

  bool is_from_peer(const wire::NackHeader& nack) const;
  Outcome apply_to(TxRecord& record, const wire::NackHeader& nack);
  void note_arrival(TxRecord& record, const wire::NackHeader& nack, NackAction action);
  Outcome rebase(Psn start_psn);
  Outcome restart_time_out(TxRecord& record);
  Outcome send_again(TxRecord& record, const wire::NackHeader& nack, NackAction action);
  Outcome on_fatal(const wire::NackHeader& nack, const TxRecord& record) const;
  void go_back();
  bool on_refused_pdc(const wire::NackHeader& nack, TxRecord& record);
  bool is_beyond_window(const wire::NackHeader& nack) const;
  void halve_assumed_window(Psn refused);
  bool denies_pdc(const wire::NackHeader& nack) const;
  bool was_only_to_hear_of_peer(const TxRecord& refused, NackCode code) const;
  bool is_refused_beside_others(NackCode code) const;
  void note_no_additional_pdc();
  Outcome give_way();
  Duration refusal_pause() const;

  // nack_refusals.cc
  bool on_refused_control(const wire::NackHeader& nack, TxRecord* record);
  bool on_refused_untracked(const wire::NackHeader& nack);
  void give_up_credit();
  bool on_refused_credit(Psn psn, TxRecord& record);
  static bool names_credit(const TxRecord& record);

  SendSide& side_;
  PdcCore& core_;
  const bool only_watched_;
  const Time now_;
};

}  // namespace uet::pds
