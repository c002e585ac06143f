// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The clocks that the provider and its back ends read: the core itself knows none.
#pragma once

#include <cstdint>
#include <ctime>

#include "uet/base/time.h"

namespace uet::nic {

inline Duration read_clock(clockid_t clock) {
  timespec now;
  ::clock_gettime(clock, &now);
  return std::chrono::seconds(now.tv_sec) + Duration(now.tv_nsec);
}

// A clock told by a counter of ticks, whose rate is taken from the clock and not relied on for
// long: after kTrusted the clock is looked at again, and at each call until two measurements of
// the rate agree. Time never goes back. One thread's.
class TickClock {
 public:
  static constexpr Duration kTrusted = std::chrono::microseconds(50);
  static constexpr Duration kMeasured = std::chrono::milliseconds(1);  // at least, for a rate

  struct Look {
    Time time;            // the clock's
    std::uint64_t ticks;  // the counter's, afterwards
  };
  // `ticks`: the counter's now. `look`: gives a Look; called where the counter is no help.
  template <class LookAtClock>
  Time now(std::uint64_t ticks, LookAtClock look) {
    const std::uint64_t passed = ticks - ticks_;
    if (passed < usable_ticks_) [[likely]]
      return time_after(passed);
    return set(ticks, look());
  }

 private:
  Time time_after(std::uint64_t ticks) const {
    return time_ + Duration(static_cast<std::int64_t>((ticks * ns_per_tick_) >> 32));
  }
  Time set(std::uint64_t ticks, const Look& seen);
  void measure(std::uint64_t ticks, Time time);

  std::uint64_t ticks_ = 0;  // when time_ was
  Time time_{};
  std::uint64_t usable_ticks_ = 0;    // after ticks_
  std::uint64_t ns_per_tick_ = 0;     // in 2^-32
  std::uint64_t trusted_ticks_ = 0;   // kTrusted in ticks, 0: the rate is not known
  std::uint64_t measured_ticks_ = 0;  // since when the rate is measured
  Time measured_time_{};
};

// On the core's time line, which is CLOCK_MONOTONIC. By the processor's counter where its rate is
// constant: less than half of what asking the kernel costs, and no wait for all that is under way.
// It goes back for no thread; two may differ by a quarter of a microsecond.
Time monotonic_now();

// Offset of CLOCK_REALTIME (arrival times) from CLOCK_MONOTONIC; setting the wall clock changes it.
inline Duration arrival_clock_offset() {
  return read_clock(CLOCK_REALTIME) - read_clock(CLOCK_MONOTONIC);
}

}  // namespace uet::nic
