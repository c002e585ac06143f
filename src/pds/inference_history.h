// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How well losses were inferred from the order of packets on a path (CMS-421), for all PDCs of a
// congestion context: how long to wait before the next one is inferred.
#pragma once

#include <cstdint>

#include "uet/base/time.h"

namespace uet::pds {

class InferenceHistory {
 public:
  // A packet was inferred as lost. It is right until the contrary is known.
  void note_right() {
    if (++right_ < kRightPerHalving) return;
    right_ = 0;
    if (doublings_ > 0) --doublings_;
  }
  // An inferred loss was none: the packet has arrived.
  void note_wrong() {
    right_ = 0;
    if (doublings_ < kMostDoublings) ++doublings_;
  }
  // `usual`: before any inference was wrong.
  Duration wait(Duration usual) const { return usual * (1 << doublings_); }

 private:
  static constexpr std::uint8_t kMostDoublings = 4;     // 0.25 R to 4 R
  static constexpr std::uint8_t kRightPerHalving = 16;  // in a row

  std::uint8_t doublings_ = 0;
  std::uint8_t right_ = 0;
};

}  // namespace uet::pds
