// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The clocks that back ends read: the core itself knows none.
#pragma once

#include <ctime>

#include "uet/base/time.h"

namespace uet::nic {

inline Duration read_clock(clockid_t clock) {
  timespec now;
  ::clock_gettime(clock, &now);
  return std::chrono::seconds(now.tv_sec) + Duration(now.tv_nsec);
}

// On the core's time line.
inline Time monotonic_now() { return Time(read_clock(CLOCK_MONOTONIC)); }

// What the kernel's clock of arrivals is ahead of the core's, which setting the time changes.
inline Duration arrival_clock_offset() {
  return read_clock(CLOCK_REALTIME) - read_clock(CLOCK_MONOTONIC);
}

}  // namespace uet::nic
