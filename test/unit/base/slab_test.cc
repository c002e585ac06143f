// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet/base/slab.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace uet {
namespace {

struct Counted {
  explicit Counted(int n) : number(n) { ++alive; }
  ~Counted() { --alive; }
  int number;
  static inline int alive = 0;
};

TEST(Slab, HandsOutEveryObjectOnceAndThenNothing) {
  Slab<Counted> slab(3);
  std::set<Counted*> taken;
  for (int i = 0; i < 3; ++i) taken.insert(slab.take(i));
  EXPECT_EQ(taken.size(), 3U);
  EXPECT_FALSE(taken.contains(nullptr));
  EXPECT_EQ(slab.take(9), nullptr);
  EXPECT_EQ(slab.available(), 0U);
  for (Counted* object : taken) slab.give_back(object);
  EXPECT_EQ(slab.in_use(), 0U);
}

TEST(Slab, ConstructsAndDestroys) {
  Slab<Counted> slab(2);
  Counted* object = slab.take(7);
  EXPECT_EQ(object->number, 7);
  EXPECT_EQ(Counted::alive, 1);
  slab.give_back(object);
  EXPECT_EQ(Counted::alive, 0);
}

TEST(Slab, LastGivenBackIsTakenFirst) {
  Slab<Counted> slab(3);
  Counted* one = slab.take(1);
  Counted* two = slab.take(2);
  slab.give_back(one);
  slab.give_back(two);
  EXPECT_EQ(slab.take(3), two);
  EXPECT_EQ(slab.take(4), one);
  slab.give_back(one);
  slab.give_back(two);
}

TEST(Slab, RespectsAlignment) {
  struct alignas(64) Wide {
    char byte;
  };
  Slab<Wide> slab(4);
  std::vector<Wide*> taken;
  for (int i = 0; i < 4; ++i) {
    taken.push_back(slab.take());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(taken.back()) % 64, 0U);
  }
  for (Wide* object : taken) slab.give_back(object);
}

// A program has thousands of slabs, or one with hundreds of objects.
TEST(Slab, TakesLittleMoreMemoryThanIsInUse) {
  struct Object {
    std::array<char, 256> bytes;
  };
  constexpr std::size_t kInUse = 140;
  const auto heap_bytes = [] { return mallinfo2().uordblks; };
  const std::size_t before = heap_bytes();
  Slab<Object> slab(10'000);
  std::vector<Object*> taken;
  taken.reserve(kInUse);
  const std::size_t list = heap_bytes() - before;
  if (list == 0) GTEST_SKIP() << "this heap does not tell what is in use (a sanitizer's)";
  for (std::size_t i = 0; i < kInUse; ++i) taken.push_back(slab.take());
  EXPECT_LT(heap_bytes() - before - list, kInUse * sizeof(Object) * 3 / 2);
  for (Object* object : taken) slab.give_back(object);
}

}  // namespace
}  // namespace uet
