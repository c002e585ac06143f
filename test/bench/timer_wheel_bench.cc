// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Cost of what every packet does to the timers: move its PDC's deadline; and of time that passes.
#include <benchmark/benchmark.h>

#include <vector>

#include "base/timer_wheel.h"

namespace uet {
namespace {

constexpr std::size_t kTimers = 1024;
constexpr Duration kRto = std::chrono::milliseconds(20);

void TimerWheelMove(benchmark::State& state) {
  TimerWheel wheel(Time{});
  std::vector<TimerEntry> timers(kTimers);
  for (TimerEntry& timer : timers) wheel.insert(timer, Time{} + kRto);
  Time now{};
  std::size_t index = 0;
  for (auto _ : state) {
    now += std::chrono::microseconds(1);
    wheel.move(timers[index++ % kTimers], now + kRto);
  }
  for (TimerEntry& timer : timers) wheel.cancel(timer);
}
BENCHMARK(TimerWheelMove);

// Each iteration is a progress pass 2 us after the last; every timer that fires is armed again.
void TimerWheelExpire(benchmark::State& state) {
  TimerWheel wheel(Time{});
  std::vector<TimerEntry> timers(kTimers);
  for (std::size_t i = 0; i < kTimers; ++i) {
    wheel.insert(timers[i], Time{} + kRto * static_cast<std::int64_t>(i) / kTimers);
  }
  Time now{};
  std::uint64_t fired = 0;
  for (auto _ : state) {
    now += std::chrono::microseconds(2);
    wheel.expire(now, [&](TimerEntry& timer) {
      ++fired;
      wheel.insert(timer, now + kRto);
    });
  }
  state.counters["fired/pass"] =
      benchmark::Counter(static_cast<double>(fired), benchmark::Counter::kAvgIterations);
  for (TimerEntry& timer : timers) wheel.cancel(timer);
}
BENCHMARK(TimerWheelExpire);

void TimerWheelNextDeadline(benchmark::State& state) {
  TimerWheel wheel(Time{});
  std::vector<TimerEntry> timers(kTimers);
  for (TimerEntry& timer : timers) wheel.insert(timer, Time{} + kRto);
  for (auto _ : state) benchmark::DoNotOptimize(wheel.next_deadline());
  for (TimerEntry& timer : timers) wheel.cancel(timer);
}
BENCHMARK(TimerWheelNextDeadline);

}  // namespace
}  // namespace uet
