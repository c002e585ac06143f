// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Rest, ban and silence of paths (CMS-406, CMS-419, CMS-423).
#include "cms/path_health.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "cms/path.h"

namespace uet::cms {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kRtt = microseconds(100);
constexpr Duration kTick = microseconds(2);  // what times are kept to, and a little more

class Health : public testing::Test {
 protected:
  explicit Health() : health_(Parameters{}, 8, kRtt) {}
  void lose(std::size_t path) {
    health_.on_sent(path, now_);
    health_.on_timeout(path, now_);
  }
  void ban(std::size_t path) {
    for (int i = 0; i < 3; ++i) lose(path);
  }
  bool usable(std::size_t path) { return health_.usable(path, now_); }

  Time now_ = time_from_ns(1'000'000'000);
  PathHealth health_;
};

TEST_F(Health, Cms406_AMarkedPathRestsForARoundTrip) {
  EXPECT_TRUE(usable(3));
  health_.rest(3, now_);
  EXPECT_FALSE(usable(3));
  EXPECT_TRUE(usable(4));
  now_ += kRtt - kTick;
  EXPECT_FALSE(usable(3));
  now_ += 2 * kTick;
  EXPECT_TRUE(usable(3));
}

TEST_F(Health, Cms406_AnotherMarkMakesItRestLonger) {
  health_.rest(3, now_);
  health_.rest(5, now_);
  now_ += kRtt / 2;
  health_.rest(3, now_);
  now_ += kRtt / 2 + kTick;
  EXPECT_FALSE(usable(3));
  now_ += kRtt / 2 + kTick;
  EXPECT_TRUE(usable(3));
  EXPECT_TRUE(usable(5));
}

TEST_F(Health, Cms406_UnlessItHasAnsweredUnmarkedSince) {
  health_.rest(3, now_);
  health_.on_good(3);
  EXPECT_TRUE(usable(3));
  health_.rest(3, now_);
  EXPECT_FALSE(usable(3)) << "marked once more";
}

TEST_F(Health, Cms406_AnsweredPaths_CountWhileResting) {
  for (std::size_t path = 0; path < 5; ++path) health_.rest(path, now_);
  health_.on_good(4);
  for (std::size_t path = 0; path < 8; ++path) EXPECT_TRUE(usable(path)) << path;
}

TEST_F(Health, Cms406_NotWhenMoreThanHalfRest) {
  for (std::size_t path = 0; path < 4; ++path) health_.rest(path, now_);
  for (std::size_t path = 0; path < 4; ++path) EXPECT_FALSE(usable(path));
  health_.rest(4, now_);
  for (std::size_t path = 0; path < 8; ++path) EXPECT_TRUE(usable(path));
  now_ += kRtt + kTick;
  health_.rest(0, now_);
  EXPECT_FALSE(usable(0)) << "the others have rested";
}

TEST_F(Health, Cms419_ThreeLossesInARowBanForASecond) {
  lose(2);
  lose(2);
  EXPECT_TRUE(usable(2));
  lose(2);
  EXPECT_FALSE(usable(2));
  EXPECT_EQ(health_.banned_count(), 1U);
  now_ += seconds(1) - kTick;
  EXPECT_FALSE(usable(2));
  now_ += 2 * kTick;
  EXPECT_TRUE(usable(2));
}

TEST_F(Health, Cms419_AnAckBetweenResetsTheCount) {
  lose(2);
  lose(2);
  health_.on_sent(2, now_);
  health_.on_acknowledged(2, now_);
  lose(2);
  lose(2);
  EXPECT_TRUE(usable(2));
}

TEST_F(Health, Cms419_ABannedPathReturnsThroughOneProbe) {
  ban(2);
  now_ += seconds(1) + kTick;
  ASSERT_TRUE(usable(2));
  health_.on_sent(2, now_);
  EXPECT_FALSE(usable(2)) << "one packet, until its fate is known";
  health_.on_acknowledged(2, now_);
  EXPECT_TRUE(usable(2));
  lose(2);
  EXPECT_TRUE(usable(2)) << "as any other path";
}

TEST_F(Health, Cms419_EachBanIsTwiceAsLongUpToAMinute) {
  Duration expected = seconds(1);
  ban(2);
  for (int i = 0; i < 8; ++i) {
    now_ += expected - kTick;
    ASSERT_FALSE(usable(2)) << i;
    now_ += 2 * kTick;
    ASSERT_TRUE(usable(2)) << i;
    lose(2);  // the probe
    expected = std::min<Duration>(2 * expected, seconds(60));
  }
}

TEST(PathHealth, Cms419_BansLastAsLongAsTold) {
  Parameters parameters;
  parameters.tuning.path_ban_s = 0.002;
  parameters.tuning.path_ban_longest_s = 0.005;
  PathHealth health(parameters, 8, kRtt);
  Time now = time_from_ns(1'000'000'000);
  for (int i = 0; i < 3; ++i) health.on_timeout(2, now);
  for (const Duration expected : {microseconds(2000), microseconds(4000), microseconds(5000)}) {
    now += expected - kTick;
    EXPECT_FALSE(health.usable(2, now));
    now += 2 * kTick;
    EXPECT_TRUE(health.usable(2, now));
    health.on_sent(2, now);
    health.on_timeout(2, now);  // the probe
  }
}

TEST_F(Health, Cms419_NeverMoreThanHalf) {
  for (std::size_t path = 0; path < 8; ++path) ban(path);
  EXPECT_EQ(health_.banned_count(), 4U);
  EXPECT_TRUE(usable(7));
}

TEST_F(Health, Cms419_NeverWhereSwitchesSprayByThemselves) {
  Parameters parameters;
  parameters.path_inference = false;
  health_ = PathHealth(parameters, 8, kRtt);
  for (int i = 0; i < 10; ++i) lose(2);
  EXPECT_TRUE(usable(2));
}

TEST_F(Health, Cms423_SilenceOfThreeRoundTripsIsFoundOnce) {
  const auto look = [&] {
    std::set<std::size_t> found;
    for (int i = 0; i < 8; ++i) {
      if (const auto silent = health_.find_silent(now_)) found.insert(*silent);
    }
    return found;
  };
  health_.on_sent(1, now_);
  health_.on_sent(6, now_);
  health_.on_sent(6, now_);
  now_ += 2 * kRtt;
  health_.on_acknowledged(6, now_);  // one of the two
  now_ += kRtt - kTick;
  EXPECT_TRUE(look().empty());
  now_ += 2 * kTick;
  EXPECT_EQ(look(), (std::set<std::size_t>{1}));
  EXPECT_TRUE(look().empty());
  now_ += 2 * kRtt;
  EXPECT_EQ(look(), (std::set<std::size_t>{6}));
}

TEST_F(Health, Cms423_WhatIsGoneIsNotWaitedFor) {
  health_.on_sent(1, now_);
  health_.on_gone(1);
  now_ += 10 * kRtt;
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(health_.find_silent(now_));
}

// Half of the values that times are kept in: what was long ago is not to come.
TEST_F(Health, TimesOfLongAgoAreOver) {
  health_.rest(3, now_);
  ban(2);
  for (int i = 0; i < 100; ++i) {
    now_ += std::chrono::minutes(7);
    ASSERT_TRUE(usable(3)) << i;
    ASSERT_TRUE(usable(2)) << i;
  }
}

// ---- what the schemes make of it
// ------------------------------------------------------------------

class RestingScheme : public testing::TestWithParam<PathPolicy> {
 protected:
  static Parameters learnt_paths(std::uint16_t count) {
    Parameters parameters;
    parameters.paths = GetParam();
    parameters.path_count = count;
    parameters.base_rtt = kRtt;
    parameters.tuning.reps_explore_bdp = 0;
    return parameters;
  }
};

TEST_P(RestingScheme, Cms406_NoPathIsTakenWhileItRests) {
  Rng rng(5);
  PathSelector paths(learnt_paths(16), false, rng);
  Time now = time_from_ns(1'000'000'000);
  std::set<std::uint16_t> marked;
  while (marked.size() < 6) {
    const std::uint16_t entropy = paths.next(rng, now);
    if (marked.contains(entropy)) continue;
    paths.on_feedback(entropy, PathFeedback::Good, now);  // in the ring of REPS ...
    paths.on_feedback(entropy, marked.size() % 2 == 0 ? PathFeedback::Ecn : PathFeedback::Nack,
                      now);
    marked.insert(entropy);
  }
  for (int i = 0; i < 200; ++i) {
    ASSERT_FALSE(marked.contains(paths.next(rng, now + kRtt - kTick))) << i;
  }
  bool again = false;
  for (int i = 0; i < 200; ++i) again |= marked.contains(paths.next(rng, now + 2 * kRtt));
  EXPECT_TRUE(again);
}

TEST_P(RestingScheme, Cms406_UnmarkedAnswer_PathIsTakenAgain) {
  Rng rng(5);
  PathSelector paths(learnt_paths(4), false, rng);
  const Time now = time_from_ns(1'000'000'000);
  const std::uint16_t marked = paths.next(rng, now);
  paths.on_feedback(marked, PathFeedback::Nack, now);
  for (int i = 0; i < 50; ++i) ASSERT_NE(paths.next(rng, now), marked) << i;
  paths.on_feedback(marked, PathFeedback::Good, now);
  bool again = false;
  for (int i = 0; i < 50; ++i) again |= paths.next(rng, now) == marked;
  EXPECT_TRUE(again);
}

TEST_P(RestingScheme, Cms419_NoPathIsTakenWhileItIsBanned) {
  Parameters parameters;
  parameters.paths = GetParam();
  parameters.path_count = 2;
  parameters.base_rtt = kRtt;
  Rng rng(5);
  PathSelector paths(parameters, false, rng);
  Time now = time_from_ns(1'000'000'000);
  const std::uint16_t dead = paths.next(rng, now);
  for (int i = 0; i < 3; ++i) paths.on_feedback(dead, PathFeedback::Timeout, now);
  Counters counters;
  paths.count(counters);
  EXPECT_EQ(counters.paths_banned, 1U);
  for (int i = 0; i < 100; ++i) {
    now += milliseconds(9);
    ASSERT_NE(paths.next(rng, now), dead) << i;
  }
}

class SilentPath : public RestingScheme {
 protected:
  Rng rng{5};
  PathSelector paths{learnt_paths(8), false, rng};
  Time now = time_from_ns(1'000'000'000);
  const std::uint16_t dead = paths.next(rng, now);
};

TEST_P(SilentPath, Cms423_ASilentPathIsAvoided) {
  const auto round_trip = [&] {
    now += kRtt / 2;
    int taken = 0;
    for (int i = 0; i < 16; ++i) {
      const std::uint16_t entropy = paths.next(rng, now);
      taken += entropy == dead ? 1 : 0;
      if (entropy != dead) paths.on_acknowledged(entropy, now);
    }
    return taken;
  };
  for (int i = 0; i < 6; ++i) round_trip();
  now += kRtt / 2;
  round_trip();  // here it is found out
  EXPECT_LE(round_trip(), 1);
}

// CMS-419, CMS-423: a path that is silent for good is soon left alone altogether, though nothing
// that took it was found lost.
TEST_P(SilentPath, Cms419_Cms423_ThreeSilencesBan) {
  for (int i = 0; i < 2000; ++i) {
    now += kRtt / 16;
    const std::uint16_t entropy = paths.next(rng, now);
    if (entropy != dead) paths.on_acknowledged(entropy, now);
  }
  Counters counters;
  paths.count(counters);
  EXPECT_EQ(counters.paths_banned, 1U);
}

INSTANTIATE_TEST_SUITE_P(Learning, RestingScheme,
                         testing::Values(PathPolicy::Bitmap, PathPolicy::Reps, PathPolicy::Mixed));
INSTANTIATE_TEST_SUITE_P(Learning, SilentPath,
                         testing::Values(PathPolicy::Bitmap, PathPolicy::Reps, PathPolicy::Mixed));

}  // namespace
}  // namespace uet::cms
