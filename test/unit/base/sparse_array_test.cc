// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/sparse_array.h"

#include <gtest/gtest.h>

namespace uet {
namespace {

TEST(SparseArray, IsZeroWhereNothingWasMade) {
  SparseArray<int, 1024, 16> array;
  EXPECT_EQ(array[0], 0);
  array.at(17) = 5;
  EXPECT_EQ(array[17], 5);
  EXPECT_EQ(array[16], 0) << "a neighbour";
  EXPECT_EQ(array[1023], 0);
  EXPECT_EQ(array.size(), 1024U);
}

TEST(SparseArray, ElementsKeepTheirAddress) {
  SparseArray<int, 1024, 16> array;
  int* first = array.make(100);
  for (std::size_t i = 0; i < array.size(); ++i) array.at(i) = static_cast<int>(i);
  EXPECT_EQ(array.make(100), first);
  for (std::size_t i = 0; i < array.size(); ++i) EXPECT_EQ(array[i], static_cast<int>(i));
}

TEST(SparseArray, TablesOfOneTypeShareNothing) {
  SparseArray<int, 64, 8> one, other;
  one.at(3) = 7;
  EXPECT_EQ(other[3], 0);
}

}  // namespace
}  // namespace uet
