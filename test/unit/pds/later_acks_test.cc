// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pds/later_acks.h"

#include <gtest/gtest.h>

#include <vector>

namespace uet::pds {
namespace {

std::vector<PdcId> released(LaterAcks& acks) {
  std::vector<PdcId> ids;
  acks.release([&](PdcId id) { ids.push_back(id); });
  return ids;
}

TEST(LaterAcks, EachIsReleasedOnce) {
  LaterAcks acks;
  EXPECT_TRUE(acks.empty());
  EXPECT_TRUE(acks.add(PdcId{3}));
  EXPECT_TRUE(acks.add(PdcId{7}));
  EXPECT_FALSE(acks.empty());
  EXPECT_EQ(released(acks), (std::vector{PdcId{3}, PdcId{7}}));
  EXPECT_TRUE(acks.empty());
  EXPECT_TRUE(released(acks).empty());
}

TEST(LaterAcks, OneAddedWhileOthersAreReleasedWaits) {
  LaterAcks acks;
  ASSERT_TRUE(acks.add(PdcId{3}));
  acks.release([&](PdcId) { EXPECT_TRUE(acks.add(PdcId{4})); });
  EXPECT_EQ(released(acks), (std::vector{PdcId{4}}));
}

TEST(LaterAcks, TooMany_NextMustNotWait) {
  LaterAcks acks;
  std::uint16_t taken = 0;
  while (taken < 1000 && acks.add(PdcId{++taken})) {
  }
  EXPECT_GE(taken, 16);
  EXPECT_LT(taken, 1000);
  EXPECT_EQ(released(acks).size(), taken - 1U);
  EXPECT_TRUE(acks.add(PdcId{1}));
}

}  // namespace
}  // namespace uet::pds
