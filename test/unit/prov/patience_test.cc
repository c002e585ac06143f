// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "objects/patience.h"

#include <gtest/gtest.h>

namespace uet::prov {
namespace {

using std::chrono::microseconds;

// Passes without work, one each microsecond, until the patience is exhausted.
unsigned passes_until_exhausted(Patience& patience, Time& now) {
  for (unsigned passes = 1; passes < 10000; ++passes) {
    now += microseconds(1);
    patience.passed(false, now);
    if (patience.exhausted()) return passes;
  }
  return 0;
}

TEST(Patience, EndsAfterSomePassesWithoutWork) {
  Patience patience;
  Time now{};
  EXPECT_FALSE(patience.exhausted());
  EXPECT_EQ(passes_until_exhausted(patience, now), Patience::kPasses);
  patience.passed(true, now);
  EXPECT_FALSE(patience.exhausted()) << "there was work";
  EXPECT_EQ(passes_until_exhausted(patience, now), Patience::kPasses);
}

TEST(Patience, PeerThatSharesTheProcessorGetsItAfterEachPass) {
  Patience patience;
  Time now{};
  passes_until_exhausted(patience, now);
  for (int i = 0; i < 3; ++i) {
    now += microseconds(40);
    patience.came_back(microseconds(40));
    EXPECT_EQ(passes_until_exhausted(patience, now), 1U);
  }
}

TEST(Patience, IsLongerWhereOthersKeepTheProcessor) {
  Patience patience;
  Time now{};
  passes_until_exhausted(patience, now);
  for (int i = 0; i < 3; ++i) {
    now += Patience::kCostly;
    patience.came_back(Patience::kCostly);
    const Time from = now + microseconds(1);
    EXPECT_GT(passes_until_exhausted(patience, now), Patience::kPasses);
    EXPECT_EQ(now - from, Patience::kLonger);
  }
  patience.passed(true, now);
  const Time from = now + microseconds(1);
  passes_until_exhausted(patience, now);
  EXPECT_EQ(now - from, Patience::kLonger) << "also after work";
  patience.came_back(Patience::kCostly - microseconds(1));
  EXPECT_EQ(passes_until_exhausted(patience, now), 1U) << "they have gone";
}

// Two that share a processor and have both become patient: what either of them takes is no sign of
// others.
TEST(Patience, OfTheOtherProcessIsNotCostly) { EXPECT_LT(Patience::kLonger, Patience::kCostly); }

}  // namespace
}  // namespace uet::prov
