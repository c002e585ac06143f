// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/slot_list.h"

#include <gtest/gtest.h>

namespace uet {
namespace {

TEST(SlotList, KeepsTheOrderOfAddition) {
  SlotList list;
  list.prepare(3);
  EXPECT_TRUE(list.empty());
  for (const std::size_t slot : {3U, 0U, 2U}) list.push_back(slot);
  list.remove(1);  // not there
  list.remove(0);
  EXPECT_EQ(list.front(), 3U);
  list.push_back(3);  // once more: the last now
  EXPECT_EQ(list.front(), 2U);
  list.remove(2);
  EXPECT_EQ(list.front(), 3U);
  list.remove(3);
  EXPECT_TRUE(list.empty());
}

}  // namespace
}  // namespace uet
