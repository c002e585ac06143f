// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pds/tombstones.h"

#include <gtest/gtest.h>

namespace uet::pds {
namespace {

constexpr Time kNow = time_from_ns(1'000'000);

Tombstone of(std::uint16_t id, Time until = kNow) {
  return {.id = PdcId{id}, .peer = {.address = {}, .spdcid = PdcId{7}}, .until = until};
}

TEST(Tombstones, Pds175_IsFoundUntilItsTimeEnds) {
  Tombstones stones(4);
  stones.add(of(9));
  ASSERT_NE(stones.find(PdcId{9}, kNow), nullptr);
  EXPECT_EQ(stones.find(PdcId{9}, kNow)->peer.spdcid, PdcId{7});
  EXPECT_EQ(stones.find(PdcId{9}, kNow + std::chrono::nanoseconds(1)), nullptr);
  EXPECT_EQ(stones.find(PdcId{8}, kNow), nullptr);
}

TEST(Tombstones, Pds175_DeliveredIsWhatCackAndTheBitsSay) {
  const Delivered delivered{.highest = Psn{70'003}, .cack = Psn{70'000}, .above = 0b101};
  EXPECT_TRUE(delivered.has(Psn{70'000}));
  EXPECT_TRUE(delivered.has(Psn{70'001}));
  EXPECT_FALSE(delivered.has(Psn{70'002}));
  EXPECT_TRUE(delivered.has(Psn{70'003}));
  EXPECT_FALSE(delivered.has(Psn{70'065}));
  EXPECT_TRUE(delivered.has(Psn{70'000 - 32'768}));
  EXPECT_FALSE(delivered.has(Psn{70'000 - 32'769})) << "no ACK can name it";
}

TEST(Tombstones, Pds31_OutOfTime_StillHoldsItsId) {
  Tombstones stones(4);
  stones.add(of(9, Time{}));
  EXPECT_TRUE(stones.holds(PdcId{9}));
  EXPECT_NE(stones.at(PdcId{9}), nullptr);
  EXPECT_FALSE(stones.holds(PdcId{0}));
}

TEST(Tombstones, FullRing_NewestReplacesOldest) {
  Tombstones stones(3);
  for (const std::uint16_t id : {1, 2, 3}) EXPECT_FALSE(stones.add(of(id)));
  const auto replaced = stones.add(of(4));
  ASSERT_TRUE(replaced);
  EXPECT_EQ(replaced->id, PdcId{1});
  EXPECT_FALSE(stones.holds(PdcId{1}));
  for (const std::uint16_t id : {2, 3, 4}) EXPECT_EQ(stones.at(PdcId{id})->id, PdcId{id});
  EXPECT_EQ(stones.add(of(1))->id, PdcId{2});
}

}  // namespace
}  // namespace uet::pds
