// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet/base/types.h"

#include <gtest/gtest.h>

#include <type_traits>
#include <unordered_set>

namespace uet {
namespace {

TEST(Psn, DistanceWraps) {
  EXPECT_EQ(Psn{5} - Psn{3}, 2);
  EXPECT_EQ(Psn{3} - Psn{5}, -2);
  EXPECT_EQ(Psn{1} - Psn{0xFFFFFFFF}, 2);
  EXPECT_EQ(Psn{0xFFFFFFFF} - Psn{1}, -2);
  EXPECT_EQ(Psn{0x80000000} - Psn{0x7FFFFFFF}, 1);
}

TEST(Psn, AddingAndSubtractingWraps) {
  EXPECT_EQ(Psn{0xFFFFFFFE} + 3, Psn{1});
  EXPECT_EQ(Psn{1} + -3, Psn{0xFFFFFFFE});
  EXPECT_EQ(Psn{1} - 3, Psn{0xFFFFFFFE});
  Psn psn{0xFFFFFFFF};
  EXPECT_EQ(++psn, Psn{0});
}

TEST(Psn, OrderIsSerial) {
  EXPECT_LT(Psn{0xFFFFFFFF}, Psn{0});
  EXPECT_GT(Psn{5}, Psn{0xFFFFFF00});
  EXPECT_LE(Psn{7}, Psn{7});
  EXPECT_GE(Psn{7}, Psn{7});
  EXPECT_FALSE(Psn{7} < Psn{7});
  EXPECT_LT(Psn{10}, Psn{10} + 0x7FFFFFFF);
}

TEST(Id, DifferentKindsDoNotMix) {
  static_assert(!std::is_convertible_v<PdcId, MsgId>);
  static_assert(!std::is_constructible_v<PdcId, MsgId>);
  static_assert(sizeof(PdcId) == 2 && sizeof(JobId) == 4);
  EXPECT_LT(PdcId{1}, PdcId{2});
  EXPECT_EQ(MsgId{}, MsgId{0});
}

TEST(Id, CanBeHashed) {
  const std::unordered_set<JobId> jobs{JobId{1}, JobId{2}, JobId{1}};
  EXPECT_EQ(jobs.size(), 2U);
}

}  // namespace
}  // namespace uet
