// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which PSNs the peer takes: CACK + MP_RANGE (PDS-40 to 43, PDS-218, PDS-220), and when a window
// that stays closed is asked for.
#pragma once

#include <algorithm>
#include <cstdint>

#include "pds/parameters.h"
#include "pds/retransmit.h"
#include "uet/base/time.h"
#include "uet/base/types.h"

namespace uet::pds {

class PeerWindow {
 public:
  // `range`: the MP_RANGE that is assumed until the peer says one.
  PeerWindow(Psn start_psn, std::uint16_t range)
      : cack_(start_psn - 1), mpr_cack_(start_psn - 1), range_(range) {}

  Psn cack() const { return cack_; }
  std::uint16_t range() const { return range_; }
  bool allows(Psn psn) const { return psn - cack_ <= range_; }

  // Every PSN up to `cack` is acknowledged. True if CACK has moved.
  bool move_cack(Psn cack) {
    if (cack <= cack_) return false;
    cack_ = cack;
    return true;
  }
  // An ACK that says MPR has this CACK. True if none has come with a higher one (PDS-41).
  bool is_newest(Psn cack) {
    if (cack < mpr_cack_) return false;
    mpr_cack_ = cack;
    return true;
  }
  // The peer says its MP_RANGE. True for the first time.
  bool set_range(std::uint16_t range) {
    range_ = range;
    const bool first = !range_is_said_;
    range_is_said_ = true;
    return first;
  }
  // PDS-220: a peer that does not say its MP_RANGE has refused `refused`, which lies within the one
  // that is assumed. True if half is assumed from now on, `least` at least: what was sent beyond is
  // not sent again before CACK allows it.
  bool halve(Psn refused, std::uint16_t least) {
    if (range_is_said_ || !allows(refused)) return false;
    range_ = std::max(static_cast<std::uint16_t>(range_ / 2), least);
    return true;
  }
  // The peer has reported a packet above a gap: it keeps packets that arrive early, on ROD, too.
  bool keeps_early() const { return keeps_early_; }
  void note_keeps_early() { keeps_early_ = true; }
  // Start_PSN is another one, and the peer has accepted nothing (PDS-77).
  void rebase(Psn start_psn) { cack_ = mpr_cack_ = start_psn - 1; }

  // The window is closed, and no packet is out whose ACK would move it. ask_due(): when to ask for
  // an ACK; exhausted(): the peer has not answered for as often as it is asked.
  Time ask_due() const { return ask_due_; }
  bool exhausted(const Parameters& parameters) const { return rto_exhausted(parameters, asked_); }
  void asked(const Parameters& parameters, Time now) { ask_due_ = now + rto(parameters, ++asked_); }
  // A packet of any type came from the peer.
  void heard() { asked_ = 0; }
  // An ACK came. True if it may be the answer.
  bool ack_heard() {
    const bool was_asked = ask_due_ != Time{};
    ask_due_ = Time{};
    return was_asked;
  }

 private:
  Psn cack_;
  Psn mpr_cack_;  // highest cack_psn of ACKs that say MPR
  std::uint16_t range_;
  std::uint16_t asked_ = 0;  // ACK Requests since the peer was heard of
  bool range_is_said_ = false;
  bool keeps_early_ = false;
  Time ask_due_{};  // Time{}: not asked since the last ACK
};

}  // namespace uet::pds
