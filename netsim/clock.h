// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Time of the simulated network, in picoseconds: 64 bytes at 400 Gb/s take 1.28 ns (CMS-800). The
// core counts nanoseconds, rounded down, so that it never sees the future.
#pragma once

#include <cstdint>

#include "uet/base/time.h"

namespace uet::netsim {

using Picoseconds = std::int64_t;

inline constexpr Picoseconds kPsPerNs = 1000;
inline constexpr Picoseconds kPsPerUs = 1'000'000;
inline constexpr Picoseconds kPsNever = INT64_MAX;

constexpr Time core_time(Picoseconds at) { return time_from_ns(at / kPsPerNs); }
constexpr Picoseconds picoseconds(Time at) {
  return at == kNever ? kPsNever : to_ns(at) * kPsPerNs;
}
constexpr double microseconds(Picoseconds span) { return static_cast<double>(span) / 1e6; }

// How long a packet of `bytes` takes at `rate_bps`; exact for all usual rates.
constexpr Picoseconds serialization(std::uint64_t bytes, std::uint64_t rate_bps) {
  constexpr std::uint64_t kPsPerMs = 1'000'000'000;
  return static_cast<Picoseconds>(bytes * 8 * kPsPerMs / (rate_bps / 1000));
}

}  // namespace uet::netsim
