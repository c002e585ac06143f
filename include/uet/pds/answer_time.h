// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How long the answers of a peer take, hosts included: the least that a time-out must wait.
#pragma once

#include "uet/base/time.h"

namespace uet::pds {

// How long answers take on a PDC, from transmission until this host takes them up. Where processes
// wait for cores that is many times what the network takes, and a time-out that ignored it would
// send everything twice to hosts that have too much to do already. Mean and mean deviation as in
// RFC 6298.
class AnswerTime {
 public:
  constexpr void add(Duration sample) {
    if (mean_ == Duration::zero()) {
      mean_ = sample;
      deviation_ = sample / 2;
      return;
    }
    const Duration distance = sample > mean_ ? sample - mean_ : mean_ - sample;
    deviation_ += (distance - deviation_) / 4;
    mean_ += (sample - mean_) / 8;
  }
  // What an answer may take before its packet counts as lost; 0 while nothing is known.
  constexpr Duration limit() const { return mean_ + 4 * deviation_; }

 private:
  Duration mean_{};
  Duration deviation_{};
};

}  // namespace uet::pds
