// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/slot_array.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace uet {
namespace {

struct alignas(64) Counted {
  Counted(int first, int second) : number(first + second) { ++alive; }
  ~Counted() { --alive; }
  int number;
  static inline int alive = 0;
};

TEST(SlotArray, MakesAndEndsByNumber) {
  SlotArray<Counted> slots(4);
  EXPECT_EQ(slots.size(), 4U);
  EXPECT_EQ(slots.emplace(2, 40, 2).number, 42);
  EXPECT_TRUE(slots.holds(2));
  EXPECT_FALSE(slots.holds(1));
  EXPECT_EQ(slots[2].number, 42);
  slots.erase(2);
  slots.erase(1);  // nothing there
  EXPECT_FALSE(slots.holds(2));
  EXPECT_EQ(Counted::alive, 0);
  EXPECT_EQ(slots.emplace(2, 1, 2).number, 3) << "the place is free again";
}

TEST(SlotArray, EndsAllWithItself) {
  {
    SlotArray<Counted> slots(3);
    slots.emplace(0, 1, 1);
    slots.emplace(2, 1, 1);
    EXPECT_EQ(Counted::alive, 2);
  }
  EXPECT_EQ(Counted::alive, 0);
}

TEST(SlotArray, VisitsThoseThatAreThere) {
  SlotArray<Counted> slots(5);
  for (const int slot : {1, 4}) slots.emplace(static_cast<std::size_t>(slot), slot, 0);
  std::vector<int> seen;
  slots.for_each([&](Counted& object) { seen.push_back(object.number); });
  EXPECT_EQ(seen, (std::vector<int>{1, 4}));
  EXPECT_TRUE(slots.any_of([](const Counted& object) { return object.number == 4; }));
  EXPECT_FALSE(slots.any_of([](const Counted& object) { return object.number == 0; }));
}

TEST(SlotArray, AnObjectTakesNoMoreThanItsSize) {
  SlotArray<Counted> slots(2);
  const auto first = reinterpret_cast<std::uintptr_t>(&slots.emplace(0, 0, 0));
  const auto second = reinterpret_cast<std::uintptr_t>(&slots.emplace(1, 0, 0));
  EXPECT_EQ(first % alignof(Counted), 0U);
  EXPECT_EQ(second - first, sizeof(Counted));
}

}  // namespace
}  // namespace uet
