// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Does this end owe the peer a CLEAR, and when must it leave (PDS-115, PDS-118)? A request that
// follows soon says it as well as a Clear Command, and costs no packet.
#pragma once

#include <cstdint>
#include <optional>

#include "uet/base/types.h"

namespace uet::pds {

class ClearDebt {
 public:
  bool owed() const { return owed_ != Owed::None; }
  bool may_wait_for_request() const { return owed_ == Owed::NextRequest; }
  bool is_urgent() const { return owed_ == Owed::AtOnce; }

  // After an ACK that has moved CLEAR_PSN from `before` to `now`; `asked`: the PSN whose CLEAR it
  // asks for. True if a CLEAR is owed that was not before.
  bool on_ack(std::optional<Psn> asked, Psn before, Psn now, bool nothing_outstanding) {
    bool owes = false;
    if (asked) {
      owes = owe();
      if (!wanted_ || *asked > *wanted_) wanted_ = *asked;
    } else if (wanted_ && now > before) {
      owes = owe();  // a gap kept CLEAR_PSN below what was asked for
    }
    if (wanted_ && (now >= *wanted_ || nothing_outstanding)) wanted_.reset();
    return owes;
  }
  void pay_at_once() { owed_ = Owed::AtOnce; }
  // A request or a Clear Command with CLEAR_PSN has left.
  void paid() { owed_ = Owed::None; }

 private:
  enum class Owed : std::uint8_t { None, NextRequest, AtOnce };

  bool owe() {
    if (owed()) return false;
    owed_ = Owed::NextRequest;
    return true;
  }

  std::optional<Psn> wanted_;  // highest PSN asked to be cleared and not yet so
  Owed owed_ = Owed::None;
};

}  // namespace uet::pds
