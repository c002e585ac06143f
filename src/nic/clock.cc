// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "nic/clock.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <x86intrin.h>
#endif

#include <algorithm>

namespace uet::nic {
namespace {

constexpr std::uint64_t kAgreement = 1024;    // two rates differ by less than this part
constexpr std::uint64_t kInterruption = 256;  // part of kTrusted that a look may take

Time read_monotonic() { return Time(read_clock(CLOCK_MONOTONIC)); }

#ifdef __x86_64__
bool has_constant_rate() {
  constexpr unsigned kPowerManagement = 0x80000007;
  constexpr unsigned kInvariantTsc = 1U << 8;
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(kPowerManagement, &eax, &ebx, &ecx, &edx) != 0 && (edx & kInvariantTsc) != 0;
}

const bool kCountsTicks = has_constant_rate();
constinit thread_local TickClock tick_clock;
#endif

}  // namespace

Time TickClock::set(std::uint64_t ticks, const Look& seen) {
  const Time told = time_after(std::min(ticks - ticks_, usable_ticks_));
  measure(ticks, seen.time);
  ticks_ = ticks;
  time_ = std::max(told, seen.time);
  const bool interrupted = seen.ticks - ticks > trusted_ticks_ / kInterruption;
  usable_ticks_ = interrupted ? 0 : trusted_ticks_;
  return time_;
}

// A counter that was set, or went on while the clock stood still, shows in a rate unlike the last.
void TickClock::measure(std::uint64_t ticks, Time time) {
  const Duration passed = time - measured_time_;
  if (passed < kMeasured) return;
  const std::uint64_t ticks_passed = std::max<std::uint64_t>(ticks - measured_ticks_, 1);
  const auto scaled = static_cast<unsigned __int128>(passed.count()) << 32;
  const auto ns_per_tick = static_cast<std::uint64_t>(
      std::min<unsigned __int128>(scaled / ticks_passed, std::uint64_t{1} << 40));
  const std::uint64_t change =
      std::max(ns_per_tick, ns_per_tick_) - std::min(ns_per_tick, ns_per_tick_);
  const bool agrees = ns_per_tick != 0 && change < ns_per_tick / kAgreement;
  ns_per_tick_ = ns_per_tick;
  trusted_ticks_ = agrees ? (static_cast<std::uint64_t>(kTrusted.count()) << 32) / ns_per_tick : 0;
  measured_ticks_ = ticks;
  measured_time_ = time;
}

#ifdef __x86_64__
Time monotonic_now() {
  if (!kCountsTicks) return read_monotonic();
  return tick_clock.now(__rdtsc(), [] { return TickClock::Look{read_monotonic(), __rdtsc()}; });
}
#else
Time monotonic_now() { return read_monotonic(); }
#endif

}  // namespace uet::nic
