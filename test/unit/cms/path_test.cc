// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Path choice `single` and `oblivious` (CMS section 5).
#include "uet/cms/path.h"

#include <gtest/gtest.h>

#include <cstdint>
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
  for (int i = 0; i < count; ++i) values.insert(selector.next(rng));
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
    values.insert(selector.next(rng));
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
    starts.insert(selector.next(rng));
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

TEST(PathSelector, Cms404_PathCountIsTakenWithinItsRange) {
  Rng rng(6);
  EXPECT_EQ(PathSelector(oblivious(0), false, rng).path_count(), 1);
  EXPECT_EQ(PathSelector(oblivious(65535), false, rng).path_count(), 1024);
}

TEST(PathSelector, Next_SameSeedSameValues) {
  std::vector<std::uint16_t> runs[2];
  for (auto& run : runs) {
    Rng rng(7);
    PathSelector selector(oblivious(8), false, rng);
    for (int i = 0; i < 100; ++i) run.push_back(selector.next(rng));
  }
  EXPECT_EQ(runs[0], runs[1]);
}

}  // namespace
}  // namespace uet::cms
