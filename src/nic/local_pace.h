// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How often a NIC with same-host rings looks at the NIC below: each look costs a system call. While
// that NIC is silent and rings exist, a look is due after an interval. While rings have packets,
// the interval is an eighth of the silence, within a bound.
#pragma once

#include <algorithm>
#include <chrono>

#include "uet/base/time.h"

namespace uet::nic {

class LocalPace {
 public:
  static constexpr Duration kInterval = std::chrono::microseconds(1);
  static constexpr Duration kLongestInterval = std::chrono::microseconds(50);
  // The rings count as busy for so long after their last packet.
  static constexpr Duration kRingsBusy = std::chrono::microseconds(10);

  // Packets have come through rings.
  void rings_had_packets(Time now) { rings_busy_until_ = now + kRingsBusy; }
  // The NIC below should be looked at.
  bool is_due(Time now) const { return busy_ || now >= next_; }
  // The NIC below has been looked at; `found`: it had packets.
  void looked(Time now, bool found) {
    busy_ = found;
    if (found) heard_ = now;
    const Duration patience = std::min((now - heard_) / 8, kLongestInterval);
    next_ = now + (now < rings_busy_until_ ? std::max(patience, kInterval) : kInterval);
  }

 private:
  bool busy_ = true;  // the last look has found packets
  Time next_{};
  Time heard_{};  // when the NIC below last had packets
  Time rings_busy_until_{};
};

}  // namespace uet::nic
