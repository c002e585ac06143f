// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/indexed_pool.h"

#include <gtest/gtest.h>

#include <set>

namespace uet {
namespace {

TEST(IndexedPool, HandsOutAsManyAsItsCapacity) {
  for (const std::size_t capacity : {1U, 2U, 64U, 100U, 1000U}) {
    IndexedPool<std::uint64_t> pool(capacity);
    std::set<std::uint16_t> taken;
    for (std::size_t i = 0; i < capacity; ++i) {
      const auto index = pool.take();
      ASSERT_TRUE(index.has_value()) << i << " of " << capacity;
      EXPECT_TRUE(taken.insert(*index).second);
      pool[*index] = i;
    }
    EXPECT_EQ(pool.take(), std::nullopt) << "of " << capacity;
    EXPECT_FALSE(pool.ready());
    EXPECT_EQ(pool.available(), 0U);
    pool.give_back(*taken.begin());
    EXPECT_EQ(pool.take(), *taken.begin());
  }
}

TEST(IndexedPool, ObjectsStayWhereTheyAre) {
  IndexedPool<std::uint64_t> pool(1000);
  const std::uint16_t first = *pool.take();
  std::uint64_t* const object = &pool[first];
  *object = 7;
  while (pool.take()) {
  }
  EXPECT_EQ(&pool[first], object);
  EXPECT_EQ(*object, 7U);
}

}  // namespace
}  // namespace uet
