// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/block_pool.h"

#include <gtest/gtest.h>

#include <vector>

namespace uet {
namespace {

TEST(BlockPool, FreshBlocksAreZeroAndDoNotOverlap) {
  BlockPool<int> pool(4, 2);
  pool.reserve(2);
  int* a = pool.take();
  int* b = pool.take();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(a[i], 0);
    a[i] = i + 1;
  }
  for (int i = 0; i < 4; ++i) EXPECT_EQ(b[i], 0);
  EXPECT_EQ(pool.in_use(), 2U);
  EXPECT_EQ(pool.block_size(), 4U);
}

TEST(BlockPool, GivesTheLastBlockBackFirstAndAsItWas) {
  BlockPool<int> pool(4, 3);
  pool.reserve(3);
  int* a = pool.take();
  int* b = pool.take();
  a[0] = 7;
  pool.give_back(b);
  pool.give_back(a);
  EXPECT_EQ(pool.in_use(), 0U);
  EXPECT_EQ(pool.take(), a);
  EXPECT_EQ(a[0], 7);
  EXPECT_EQ(pool.take(), b);
  EXPECT_NE(pool.take(), a);
  EXPECT_EQ(pool.in_use(), 3U);
}

TEST(BlockPool, BlocksInUseStayWhereMoreAreReserved) {
  BlockPool<int> pool(2, 9);
  std::vector<int*> taken;
  for (int i = 0; i < 9; ++i) {
    pool.reserve(static_cast<std::size_t>(i + 1));
    taken.push_back(pool.take());
    taken.back()[1] = i;
  }
  for (int i = 0; i < 9; ++i) EXPECT_EQ(taken[static_cast<std::size_t>(i)][1], i);
  EXPECT_EQ(pool.in_use(), 9U);
}

}  // namespace
}  // namespace uet
