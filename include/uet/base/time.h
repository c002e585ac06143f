// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Points and spans of time. The core never reads a clock: every entry takes `now`.
#pragma once

#include <chrono>
#include <cstdint>

namespace uet {

using Duration = std::chrono::nanoseconds;

// A monotonic time line without a clock; the host or the simulator says where "now" is.
struct TimeLine {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<TimeLine, duration>;
  static constexpr bool is_steady = true;
};

using Time = TimeLine::time_point;

inline constexpr Time kNever = Time::max();

constexpr Time time_from_ns(std::int64_t ns) { return Time(Duration(ns)); }
constexpr std::int64_t to_ns(Time t) { return t.time_since_epoch().count(); }
constexpr double to_us(Duration d) { return static_cast<double>(d.count()) / 1000.0; }

}  // namespace uet
