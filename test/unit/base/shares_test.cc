// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/shares.h"

#include <gtest/gtest.h>

namespace uet {
namespace {

// The amount that the holder takes, one at a time, of the rest that the others have left.
std::size_t take_all(Shares& shares, std::uint64_t hash, std::size_t& available) {
  std::size_t taken = 0;
  for (; shares.allows(hash, 1, available); ++taken, --available) shares.take(hash, 1);
  return taken;
}

TEST(Shares, EachFurtherHolderFindsAShare) {
  Shares shares(1, 5);
  std::size_t available = 1200;
  EXPECT_EQ(take_all(shares, 1, available), 600u);
  EXPECT_EQ(take_all(shares, 2, available), 300u);
  EXPECT_EQ(take_all(shares, 3, available), 150u);
  shares.give_back(1, 600);
  available += 600;
  EXPECT_EQ(take_all(shares, 3, available), 300u);
  EXPECT_EQ(shares.held(3), 450u);
}

TEST(Shares, WeightIsHowManyTimesWhatIsFree) {
  Shares shares(3, 5);
  std::size_t available = 1200;
  EXPECT_EQ(take_all(shares, 1, available), 900u);
  EXPECT_EQ(take_all(shares, 2, available), 225u);
}

TEST(Shares, MoreThanIsFreeIsNoShare) {
  Shares shares(3, 5);
  EXPECT_TRUE(shares.allows(1, 750, 1000));
  EXPECT_FALSE(shares.allows(1, 760, 1000));
  EXPECT_FALSE(shares.allows(1, 1001, 1000));
  EXPECT_TRUE(shares.allows(1, 1, SIZE_MAX));
  EXPECT_FALSE(shares.allows(1, 1, 0));
}

}  // namespace
}  // namespace uet
