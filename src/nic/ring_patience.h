// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Whether packets wait for space in a full ring, or pass it over and go to the NIC below. Packets
// wait for a peer that reads. A sender that left a full ring and came back late does not wait at
// first: it would otherwise send no more than one ring at each visit.
#pragma once

#include <chrono>
#include <optional>

#include "uet/base/time.h"

namespace uet::nic {

class RingPatience {
 public:
  // A peer whose ring stays full for so long does not read.
  static constexpr Duration kReads = std::chrono::milliseconds(10);
  // A sender that left a full ring for kReads before its next packet sends seldom, and does not
  // wait for space in the first kVisit.
  static constexpr Duration kVisit = std::chrono::milliseconds(1);

  // The ring is passed over until the peer has emptied it.
  bool passes_over() const { return passed_over_; }
  // The peer has emptied the ring.
  void try_again() { passed_over_ = false; }

  // A packet has fitted into the ring.
  void fitted(Time now) {
    // This process has offered no packet meanwhile, so the peer may have freed space long ago.
    const bool was_away = full_since_ && now - found_full_ >= kReads;
    if (was_away) waits_again_ = now + kVisit;
    full_since_.reset();
  }
  // A packet has found no space. True: it should wait; false: the ring is passed over.
  bool waits_when_full(Time now) {
    if (!full_since_) full_since_ = now;
    found_full_ = now;
    passed_over_ |= now < waits_again_ || now - *full_since_ >= kReads;
    return !passed_over_;
  }

 private:
  std::optional<Time> full_since_;  // empty: the ring has taken the last packet
  Time found_full_{};               // when a packet last found no space
  bool passed_over_ = false;
  Time waits_again_{};  // until then a full ring is passed over
};

}  // namespace uet::nic
