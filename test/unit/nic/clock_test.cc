// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Time by a counter of ticks: the clock's, looked at seldom while both agree and each time while
// they do not.
#include "nic/clock.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"

namespace uet::nic {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

struct Ticks : ::testing::Test {
  Time read() {
    return clock.now(counter, [&] {
      ++looks;
      return TickClock::Look{time, counter + ticks(look_takes)};
    });
  }
  void pass(Duration duration) {
    time += duration;
    counter += ticks(duration);
  }
  std::uint64_t ticks(Duration duration) const {
    return static_cast<std::uint64_t>(static_cast<double>(duration.count()) * rate);
  }
  // Reads `times` times; returns how far from the clock it was at most.
  Duration run(int times, Duration step) {
    Duration error{};
    for (int i = 0; i < times; ++i) {
      pass(step);
      error = std::max(error, std::chrono::abs(read() - time));
    }
    return error;
  }
  int looks_of(int times, Duration step) {
    const int before = looks;
    run(times, step);
    return looks - before;
  }
  void learn_rate() { run(300, microseconds(10)); }

  TickClock clock;
  Time time{seconds(5000)};
  std::uint64_t counter = 77'000'000;
  double rate = 2.6;  // ticks in a nanosecond
  Duration look_takes{25};
  int looks = 0;
};

TEST_F(Ticks, EachReadLooksUntilTheRateWasMeasuredTwice) {
  EXPECT_EQ(read(), time);
  EXPECT_EQ(looks_of(199, microseconds(10)), 199);
  EXPECT_LE(looks_of(10'000, microseconds(10)), 10'000 / 4);
}

TEST_F(Ticks, OneReadIn50MicrosecondsLooks) {
  learn_rate();
  EXPECT_NEAR(looks_of(100'000, Duration(100)), 200, 2);
  EXPECT_LE(run(100'000, Duration(100)), Duration(5));
  EXPECT_EQ(looks_of(100, microseconds(51)), 100);
}

TEST_F(Ticks, SlowAndFastCountersTellTheSame) {
  for (const double each : {0.02, 1.0, 5.8}) {
    rate = each;
    learn_rate();
    EXPECT_LE(run(10'000, microseconds(7)), Duration(200)) << each;
    EXPECT_LE(looks_of(10'000, microseconds(7)), 10'000 / 7) << each;
  }
}

TEST_F(Ticks, AnotherRateIsWrongForAMomentOnly) {
  learn_rate();
  rate = 1.3;
  EXPECT_LE(run(1000, microseconds(1)), 2 * TickClock::kTrusted);
  learn_rate();
  EXPECT_LE(run(1000, microseconds(1)), Duration(5));
}

TEST_F(Ticks, CounterThatWasSetOrWentOnAloneIsNotBelieved) {
  learn_rate();
  for (const std::uint64_t other : {counter + 1'000'000'000'000, std::uint64_t{3}}) {
    counter = other;
    EXPECT_LE(run(5000, microseconds(1)), TickClock::kTrusted) << other;
    EXPECT_LE(run(1000, microseconds(1)), Duration(5)) << other;
  }
}

TEST_F(Ticks, InterruptedLookIsNotGoneOnFrom) {
  learn_rate();
  run(1, microseconds(60));
  look_takes = Duration(200);
  EXPECT_NEAR(looks_of(100, microseconds(1)), 50, 1) << "goes on from the last for 50 us";
  look_takes = Duration(190);
  EXPECT_LE(looks_of(100, microseconds(1)), 4);
}

TEST_F(Ticks, TimeNeverGoesBack) {
  Rng rng(11);
  Time last = read();
  for (int i = 0; i < 200'000; ++i) {
    if (rng.chance(0.001)) rate = 0.5 + static_cast<double>(rng.below(40)) / 10;
    if (rng.chance(0.001)) counter = rng.below(1'000'000'000);
    pass(Duration(static_cast<std::int64_t>(rng.below(2000))));
    const Time now = read();
    ASSERT_GE(now, last) << i;
    last = now;
  }
}

TEST(Clock, LiesBetweenTwoLooksAtTheKernels) {
  for (int i = 0; i < 200'000; ++i) {
    const Time before{read_clock(CLOCK_MONOTONIC)};
    const Time now = monotonic_now();
    const Time after{read_clock(CLOCK_MONOTONIC)};
    ASSERT_GE(now, before - microseconds(5));
    ASSERT_LE(now, after + microseconds(5));
  }
}

}  // namespace
}  // namespace uet::nic
