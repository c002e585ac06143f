// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How long the answers of a peer take, hosts included: the least that a time-out must wait.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "uet/base/time.h"

namespace uet::pds {

// How long answers take on a PDC, from transmission until this host takes them up. Where processes
// wait for cores that is many times what the network takes, and a time-out that ignored it would
// send everything twice to hosts that have too much to do already. Mean and mean deviation as in
// RFC 6298.
class AnswerTime {
 public:
  constexpr void add(Duration answer) {
    using std::chrono::microseconds;
    constexpr std::int64_t kLongest = INT32_MAX / 2;
    const auto sample = static_cast<std::int32_t>(
        std::min(std::chrono::duration_cast<microseconds>(answer).count(), kLongest));
    if (mean_us_ == 0) {
      mean_us_ = sample;
      deviation_us_ = sample / 2;
      return;
    }
    const std::int32_t distance = std::max(sample, mean_us_) - std::min(sample, mean_us_);
    deviation_us_ += (distance - deviation_us_) / 4;
    mean_us_ += (sample - mean_us_) / 8;
  }
  // If an answer takes longer than this, its packet counts as lost; 0 while there is no sample.
  constexpr Duration limit() const {
    return std::chrono::microseconds(std::int64_t{mean_us_} + 4 * std::int64_t{deviation_us_});
  }

 private:
  std::int32_t mean_us_ = 0;
  std::int32_t deviation_us_ = 0;
};

}  // namespace uet::pds
