// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Tables of zeros, whose pages cost nothing until they are used.
#include "base/zeroed_array.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace uet {
namespace {

struct Entry {
  std::uint64_t bytes = 0;
  const void* what = nullptr;
};

TEST(ZeroedArray, BeginsEmptyAndKeepsWhatIsWritten) {
  ZeroedArray<Entry> table(65536);
  EXPECT_EQ(table.size(), 65536U);
  EXPECT_EQ(table[0].what, nullptr);
  EXPECT_EQ(table[65535].bytes, 0U);
  table[40000].bytes = 7;
  EXPECT_EQ(table[40000].bytes, 7U);
  EXPECT_EQ(table[39999].bytes, 0U);
}

}  // namespace
}  // namespace uet
