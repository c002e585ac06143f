// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/rng.h"

#include <gtest/gtest.h>

#include <set>

namespace uet {
namespace {

TEST(Rng, SameSeedGivesTheSameNumbers) {
  Rng a(42);
  Rng b(42);
  Rng c(43);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const auto n = a.next();
    EXPECT_EQ(n, b.next());
    differs |= n != c.next();
  }
  EXPECT_TRUE(differs);
}

// Known output of SplitMix64 for seed 0.
TEST(Rng, IsSplitMix64) {
  Rng rng(0);
  EXPECT_EQ(rng.next(), 0xE220A8397B1DCDAFU);
  EXPECT_EQ(rng.next(), 0x6E789E6AA1B965F4U);
}

TEST(Rng, RangesAreKeptAndReached) {
  Rng rng(1);
  std::set<std::uint64_t> below;
  std::set<std::uint64_t> between;
  for (int i = 0; i < 1000; ++i) {
    below.insert(rng.below(5));
    between.insert(rng.between(7, 9));
  }
  EXPECT_EQ(below, (std::set<std::uint64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(between, (std::set<std::uint64_t>{7, 8, 9}));
}

TEST(Rng, ChanceFollowsItsProbability) {
  Rng rng(2);
  int hits = 0;
  for (int i = 0; i < 10000; ++i) {
    EXPECT_FALSE(rng.chance(0.0));
    EXPECT_TRUE(rng.chance(1.0));
    hits += rng.chance(0.25) ? 1 : 0;
  }
  EXPECT_NEAR(hits, 2500, 200);
}

}  // namespace
}  // namespace uet
