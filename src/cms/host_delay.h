// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How long hosts keep packets and ACKs before they take them up. The congestion control decides
// how that affects a window.
#pragma once

#include <algorithm>

#include "uet/base/time.h"

namespace uet::cms {

// Averaged over time, not over samples: a process that waits for a core adds milliseconds to a
// round trip of microseconds, and while it waits there are no samples.
class HostDelay {
 public:
  // One round trip of `network_us` in the network to which the hosts added `host_us`, microseconds.
  void add(double host_us, double network_us, Time now) {
    const double memory_us = average_us_ > network_us ? kSlowHostsMemoryUs : kMemoryUs;
    const double weight = started_ ? std::min(1.0, to_us(now - last_) / memory_us) : 0;
    average_us_ += weight * (host_us - average_us_);
    last_ = now;
    started_ = true;
  }
  double us() const { return average_us_; }

 private:
  static constexpr double kMemoryUs = 100'000;
  // Hosts slower than the network take longer the larger the window is, which is made for what they
  // take: a stream reaches its own within a few of these.
  static constexpr double kSlowHostsMemoryUs = 10'000;
  double average_us_ = 0;
  Time last_{};
  bool started_ = false;
};

}  // namespace uet::cms
