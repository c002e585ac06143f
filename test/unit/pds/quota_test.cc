// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What is kept for whom when everything runs short. PDS-182.
#include "pds/quota.h"

#include <gtest/gtest.h>

namespace uet::pds {
namespace {

constexpr Use kInitiator{Role::Initiator, false};
constexpr Use kTarget{Role::Target, false};
constexpr Use kInitiatorPool{Role::Initiator, true};
constexpr Use kTargetPool{Role::Target, true};

std::size_t take_all(Quota& quota, Use use) {
  std::size_t taken = 0;
  for (; quota.available(use); ++taken) quota.take(use);
  return taken;
}

TEST(Quota, Pds182_InitiatorsLeaveTheShareOfTheTargets) {
  Quota quota(10, 4, 0);
  EXPECT_EQ(take_all(quota, kInitiator), 6U);
  EXPECT_EQ(take_all(quota, kTarget), 4U);
  EXPECT_EQ(quota.in_use(), 10U);
  EXPECT_EQ(quota.initiators(), 6U);
}

TEST(Quota, Pds182_TargetsMayTakeEverything) {
  Quota quota(10, 4, 0);
  EXPECT_EQ(take_all(quota, kTarget), 10U);
  EXPECT_FALSE(quota.available(kInitiator));
}

TEST(Quota, TargetsAreKeptHalfAtMost) {
  Quota quota(4, 100, 0);
  EXPECT_EQ(take_all(quota, kInitiator), 2U);
}

TEST(Quota, ThePoolHasItsShareInBothRoles) {
  Quota quota(16, 8, 100);  // two in each role
  EXPECT_EQ(take_all(quota, kTarget), 12U);
  EXPECT_EQ(take_all(quota, kInitiator), 0U);
  EXPECT_EQ(take_all(quota, kInitiatorPool), 2U);
  EXPECT_EQ(take_all(quota, kTargetPool), 2U);
  EXPECT_EQ(quota.in_use(), 16U);
}

TEST(Quota, ReturnedEntriesAreFreeAgain) {
  Quota quota(2, 1, 0);
  quota.take(kInitiator);
  quota.take(kTarget);
  EXPECT_FALSE(quota.available(kTarget));
  quota.give_back(kInitiator);
  EXPECT_TRUE(quota.available(kInitiator));
  EXPECT_EQ(quota.initiators(), 0U);
  quota.give_back(kTarget);
  EXPECT_EQ(quota.in_use(), 0U);
}

}  // namespace
}  // namespace uet::pds
