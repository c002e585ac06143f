// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The path schemes of CMS section 5, by rule; the ring of `reps` is in recycled_paths_test.cc.
#include "cms/path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace uet::cms {
namespace {

Parameters oblivious(std::uint16_t path_count) {
  Parameters p;
  p.paths = PathPolicy::Oblivious;
  p.path_count = path_count;
  return p;
}

std::set<std::uint16_t> draw(PathSelector& selector, Rng& rng, int count) {
  std::set<std::uint16_t> values;
  for (int i = 0; i < count; ++i) values.insert(selector.next(rng, Time{}));
  return values;
}

TEST(PathSelector, Cms416_SinglePolicyKeepsOneValue) {
  Rng rng(1);
  PathSelector selector(Parameters{}, false, rng);
  EXPECT_EQ(draw(selector, rng, 1000).size(), 1U);
}

TEST(PathSelector, Cms401_SingleForcesOneValueUnderOblivious) {
  Rng rng(2);
  PathSelector selector(oblivious(64), true, rng);
  EXPECT_EQ(draw(selector, rng, 1000).size(), 1U);
  EXPECT_EQ(selector.path_count(), 1);
}

TEST(PathSelector, Cms2_TwoSelectorsUseDifferentValues) {
  Rng rng(3);
  std::set<std::uint16_t> values;
  for (int i = 0; i < 20; ++i) {
    PathSelector selector(Parameters{}, true, rng);
    values.insert(selector.next(rng, Time{}));
  }
  EXPECT_GE(values.size(), 18U);
}

TEST(PathSelector, Cms410_EveryRoundUsesEachValueOnce) {
  for (std::uint16_t n : {2, 3, 16, 64, 1000, 1024}) {
    Rng rng(n);
    PathSelector selector(oblivious(n), false, rng);
    const std::set<std::uint16_t> first = draw(selector, rng, n);
    EXPECT_EQ(first.size(), n);
    EXPECT_EQ(draw(selector, rng, n), first) << "the set stays";
  }
}

TEST(PathSelector, Cms410_RoundsBeginAtDifferentValues) {
  Rng rng(5);
  PathSelector selector(oblivious(64), false, rng);
  std::set<std::uint16_t> starts;
  for (int round = 0; round < 20; ++round) {
    starts.insert(selector.next(rng, Time{}));
    draw(selector, rng, 63);
  }
  EXPECT_GE(starts.size(), 10U);
}

TEST(PathSelector, Cms404_ValuesAreDynamicPortsAndNeverZero) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Rng rng(seed);
    PathSelector selector(oblivious(64), false, rng);
    EXPECT_GE(*draw(selector, rng, 64).begin(), 49152);
  }
}

// Also of the fewest values, a power of two, that the low bits of a source port choose from.
TEST(PathSelector, Cms404_EachOfTheSetHasALowPartOfItsOwn) {
  for (const std::uint16_t ports : {2, 4, 8, 16, 64}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Rng rng(seed);
      PathSelector selector(oblivious(ports), false, rng);
      std::set<std::uint16_t> low;
      for (const std::uint16_t value : draw(selector, rng, ports)) low.insert(value % ports);
      EXPECT_EQ(low.size(), ports);
    }
  }
}

TEST(PathSelector, Cms700_ATrainTakesOneValue) {
  for (const PathPolicy policy :
       {PathPolicy::Oblivious, PathPolicy::RoundRobin, PathPolicy::Bitmap, PathPolicy::Mixed}) {
    Parameters p = oblivious(8);
    p.paths = policy;
    Rng rng(7);
    PathSelector selector(p, false, rng);
    const auto take = [&](int us, std::uint32_t train) {
      return selector.next(rng, Time(std::chrono::microseconds(us)), train);
    };
    const std::uint16_t first = take(1, 3);
    EXPECT_EQ(take(1, 3), first);
    EXPECT_EQ(take(1, 3), first);
    const std::uint16_t second = take(1, 3);
    EXPECT_NE(second, first) << "three are a train";
    EXPECT_NE(take(2, 3), second) << "what is asked for later does not leave with it";
    const std::uint16_t last = take(3, 1);
    EXPECT_NE(take(3, 1), last) << "no trains";
  }
}

TEST(PathSelector, Cms404_PathCountIsTakenWithinItsRange) {
  Rng rng(6);
  EXPECT_EQ(PathSelector(oblivious(0), false, rng).path_count(), 1);
  EXPECT_EQ(PathSelector(oblivious(65535), false, rng).path_count(), 1024);
}

TEST(PathSelector, Cms410_SameSeedSameValues) {
  std::vector<std::uint16_t> runs[2];
  for (auto& run : runs) {
    Rng rng(7);
    PathSelector selector(oblivious(8), false, rng);
    for (int i = 0; i < 100; ++i) run.push_back(selector.next(rng, Time{}));
  }
  EXPECT_EQ(runs[0], runs[1]);
}

TEST(SinglePath, Cms401_SinglePath_ChangesNoSoonerThanTold) {
  constexpr Duration kSpacing = std::chrono::microseconds(120);
  Rng rng(7);
  PathSelector single(oblivious(8), true, rng);
  Time now = time_from_ns(1'000'000);
  const std::uint16_t first = single.next(rng, now);
  now += kSpacing - std::chrono::microseconds(1);
  EXPECT_FALSE(single.reroute(rng, now, kSpacing));
  EXPECT_EQ(single.next(rng, now), first);
  now += std::chrono::microseconds(1);
  EXPECT_TRUE(single.reroute(rng, now, kSpacing));
  EXPECT_NE(single.next(rng, now), first);
  EXPECT_FALSE(single.reroute(rng, now + kSpacing / 2, kSpacing));
  EXPECT_TRUE(single.reroute(rng, now + kSpacing, kSpacing));
  PathSelector several(oblivious(8), false, rng);
  several.next(rng, now);
  EXPECT_FALSE(several.reroute(rng, now + 10 * kSpacing, kSpacing));
}

// ---- schemes that learn -------------------------------------------------------------------------

constexpr auto kGood = PathFeedback::Good;
constexpr auto kEcn = PathFeedback::Ecn;
constexpr auto kNack = PathFeedback::Nack;
constexpr auto kTimeout = PathFeedback::Timeout;

class Scheme : public testing::Test {
 protected:
  void with(PathPolicy policy, std::uint16_t count, bool trimming = true, double ban_after = 3) {
    Parameters p;
    p.tuning.path_ban_after = ban_after;
    p.paths = policy;
    p.path_count = count;
    p.trimming = trimming;
    p.mtu_bytes = 4096;
    p.link_rate_bps = 100'000'000'000;
    p.base_rtt = std::chrono::microseconds(12);  // 150,000 bytes: 36.6 packets
    selector_.emplace(p, false, rng_);
  }
  std::uint16_t next() { return selector_->next(rng_, now_); }
  std::vector<std::uint16_t> take(int count) {
    std::vector<std::uint16_t> values;
    for (int i = 0; i < count; ++i) values.push_back(next());
    return values;
  }
  void tell(std::uint16_t entropy, PathFeedback feedback) {
    selector_->on_feedback(entropy, feedback, now_);
  }
  // Ends the exploration of `reps`.
  std::vector<std::uint16_t> explore() { return take(37); }

  // CMS-406 is over.
  void rest() { now_ += std::chrono::microseconds(14); }

  Rng rng_{11};
  Time now_{};
  std::optional<PathSelector> selector_;
};

TEST_F(Scheme, Cms411_RoundRobinCountsUp) {
  with(PathPolicy::RoundRobin, 5);
  const auto values = take(11);
  for (std::size_t i = 1; i < values.size(); ++i) {
    const int next_in_turn = i % 5 == 0 ? values[0] : values[i - 1] + 1;
    EXPECT_EQ(49152 + (next_in_turn - 49152) % 16384, values[i]);
  }
}

TEST_F(Scheme, Cms412_BitmapWorkedExample) {
  with(PathPolicy::Bitmap, 8);
  const auto v = take(8);
  EXPECT_EQ(std::set<std::uint16_t>(v.begin(), v.end()).size(), 8U);
  tell(v[2], kNack);
  tell(v[5], kEcn);
  rest();
  std::vector<std::uint16_t> expected;
  for (const int i : {0, 1, 3, 4, 6, 7, 0, 1, 3, 4, 5, 6, 7, 0, 1}) {
    expected.push_back(v[static_cast<std::size_t>(i)]);
  }
  EXPECT_EQ(take(15), expected);
  const auto later = take(20);  // p[2] is 2 now: skipped twice more
  const auto again = std::find(later.begin(), later.end(), v[2]) - later.begin();
  EXPECT_EQ(std::count(later.begin(), later.begin() + again, v[1]), 2);
}

TEST_F(Scheme, Cms412_WhereAllAreBadTheCircleCloses) {
  with(PathPolicy::Bitmap, 4);
  const auto v = take(4);
  for (const auto value : v) tell(value, kTimeout);
  for (int round = 0; round < 3; ++round) {
    for (const auto value : v) EXPECT_EQ(next(), value) << "each costs one decrement";
  }
}

TEST_F(Scheme, Cms412_OneSelectionForgivesOnlyTheFirstBadOne) {
  with(PathPolicy::Bitmap, 8);
  const auto v = take(8);
  tell(v[1], kEcn);
  tell(v[2], kEcn);
  rest();
  EXPECT_EQ(take(6), (std::vector<std::uint16_t>{v[0], v[3], v[4], v[5], v[6], v[7]}));
  EXPECT_EQ(take(4), (std::vector<std::uint16_t>{v[0], v[1], v[3], v[4]}));
}

TEST_F(Scheme, Cms412_PenaltiesSaturateAt15) {
  with(PathPolicy::Bitmap, 2, true, 0);
  const auto v = take(2);
  for (int i = 0; i < 10; ++i) tell(v[0], kTimeout);
  for (int i = 0; i < 15; ++i) ASSERT_EQ(next(), v[1]) << i;
  EXPECT_EQ(next(), v[0]);
}

TEST_F(Scheme, Cms412_GoodNewsTakePenaltiesBack) {
  with(PathPolicy::Bitmap, 2);
  const auto v = take(2);
  tell(v[0], kNack);
  rest();
  EXPECT_EQ(next(), v[1]);
  tell(v[0], kGood);
  EXPECT_EQ(next(), v[0]);
  EXPECT_EQ(next(), v[1]);
}

TEST_F(Scheme, Cms413_Reps_ExploresOneBdpRecyclesGoodOnes) {
  with(PathPolicy::Reps, 64);
  const std::uint16_t first = next();
  tell(first, kGood);
  const auto explored = take(36);
  EXPECT_GE(std::set<std::uint16_t>(explored.begin(), explored.end()).size(), 15U);
  EXPECT_EQ(next(), first) << "not used before the exploration was over";
  tell(explored[1], kGood);
  tell(explored[2], kEcn);
  tell(explored[3], kNack);
  tell(explored[4], kGood);
  EXPECT_EQ(next(), explored[1]);
  EXPECT_EQ(next(), explored[4]);
  const auto random = take(40);
  EXPECT_GE(std::set<std::uint16_t>(random.begin(), random.end()).size(), 15U);
}

TEST_F(Scheme, Cms414_Freeze_100UsThenExplores16Packets) {
  with(PathPolicy::Reps, 64);
  const auto explored = explore();
  const std::vector<std::uint16_t> good{explored[0], explored[1], explored[2]};
  for (const auto value : good) tell(value, kGood);
  EXPECT_EQ(next(), good[0]);
  tell(explored[5], kTimeout);
  ASSERT_TRUE(selector_->frozen());
  tell(explored[6], kGood);  // ignored
  EXPECT_EQ(take(4), (std::vector<std::uint16_t>{good[0], good[1], good[2], good[0]}));
  now_ += std::chrono::microseconds(99);
  EXPECT_EQ(next(), good[1]);
  now_ += std::chrono::microseconds(1);
  const auto after = take(16);
  EXPECT_FALSE(selector_->frozen());
  EXPECT_GE(std::set<std::uint16_t>(after.begin(), after.end()).size(), 8U);
  EXPECT_EQ(next(), good[1]) << "what was good and not used since is still known";
}

TEST_F(Scheme, Cms414_ALongPathFreezesFor8Rtts) {
  Parameters p = oblivious(64);
  p.paths = PathPolicy::Reps;
  p.trimming = true;
  p.mtu_bytes = 1 << 20;
  p.base_rtt = std::chrono::microseconds(100);
  selector_.emplace(p, false, rng_);
  const std::uint16_t value = next();
  tell(value, kGood);
  tell(value, kTimeout);
  now_ += std::chrono::microseconds(799);
  next();
  EXPECT_TRUE(selector_->frozen());
  now_ += std::chrono::microseconds(1);
  next();
  EXPECT_FALSE(selector_->frozen());
}

TEST_F(Scheme, Cms414_ExploringOrNoTrimming_NoFreeze) {
  with(PathPolicy::Reps, 64);
  tell(next(), kTimeout);
  EXPECT_FALSE(selector_->frozen());
  with(PathPolicy::Reps, 64, false);
  tell(explore()[0], kTimeout);
  EXPECT_FALSE(selector_->frozen());
}

TEST_F(Scheme, Cms415_MixedTakesARecycledValueElseTheBitmaps) {
  with(PathPolicy::Mixed, 8);
  const auto v = take(8);
  EXPECT_EQ(std::set<std::uint16_t>(v.begin(), v.end()).size(), 8U);
  tell(v[6], kGood);
  tell(v[3], kGood);
  tell(v[0], kNack);
  EXPECT_EQ(take(4), (std::vector<std::uint16_t>{v[6], v[3], v[1], v[2]}));
}

TEST_F(Scheme, Cms20_OnlySchemesThatLearnTakeFeedback) {
  for (const auto policy : {PathPolicy::Bitmap, PathPolicy::Reps, PathPolicy::Mixed}) {
    with(policy, 8);
    EXPECT_TRUE(selector_->uses_feedback());
  }
  for (const auto policy : {PathPolicy::Single, PathPolicy::Oblivious, PathPolicy::RoundRobin}) {
    with(policy, 8);
    EXPECT_FALSE(selector_->uses_feedback());
  }
  Parameters rod = oblivious(8);
  rod.paths = PathPolicy::Mixed;
  EXPECT_FALSE(PathSelector(rod, true, rng_).uses_feedback()) << "ROD";
}

// 8.4 property 7: the value that the peer names need not be one of our paths.
TEST_F(Scheme, Cms8_4_FeedbackOfForeignValuesIsIgnored) {
  with(PathPolicy::Mixed, 8);
  const auto v = take(8);
  const std::set<std::uint16_t> set(v.begin(), v.end());
  for (std::uint32_t entropy = 0; entropy < 65536; ++entropy) {
    if (!set.contains(static_cast<std::uint16_t>(entropy))) {
      tell(static_cast<std::uint16_t>(entropy), entropy % 2 == 0 ? kGood : kTimeout);
    }
  }
  EXPECT_EQ(take(8), v);
}

TEST_F(Scheme, Cms402_TheValueThatWasAnsweredLastIsKept) {
  for (const auto policy : {PathPolicy::Bitmap, PathPolicy::Reps, PathPolicy::Mixed}) {
    with(policy, 8);
    const auto v = take(3);
    selector_->on_answered(v[0]);
    selector_->on_answered(v[1]);
    selector_->on_answered(1);  // foreign
    tell(v[2], kGood);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(selector_->next_answered(rng_, now_), v[1]);
  }
  with(PathPolicy::Bitmap, 8);
  const auto walk = take(8);
  EXPECT_EQ(selector_->next_answered(rng_, now_), walk[0]) << "none was answered";
  with(PathPolicy::RoundRobin, 8);
  const std::uint16_t first = next();
  selector_->on_answered(first);
  EXPECT_EQ(selector_->next_answered(rng_, now_), first + 1) << "learns nothing";
}

TEST_F(Scheme, Cms20_ControlPacketsUseUpNoRecycledValue) {
  with(PathPolicy::Mixed, 8);
  const auto v = take(8);
  const std::set<std::uint16_t> set(v.begin(), v.end());
  tell(v[4], kGood);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(set.contains(selector_->next_for_control(rng_)));
  EXPECT_EQ(next(), v[4]);
}

}  // namespace
}  // namespace uet::cms
