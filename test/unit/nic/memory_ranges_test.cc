// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet/nic/memory_ranges.h"

#include <gtest/gtest.h>

#include <array>

namespace uet::nic {
namespace {

TEST(MemoryRanges, ContainTheirBytesOnly) {
  std::array<std::byte, 64> memory{};
  const auto part = [&](std::size_t begin, std::size_t end) {
    return MemoryRanges::Range(memory).subspan(begin, end - begin);
  };
  MemoryRanges ranges;
  EXPECT_FALSE(ranges.contains(memory.data()));
  for (const auto& range : {part(32, 40), part(8, 16), part(16, 24)}) ranges.add(range);
  for (std::size_t i = 0; i < memory.size(); ++i) {
    EXPECT_EQ(ranges.contains(&memory[i]), (i >= 8 && i < 24) || (i >= 32 && i < 40)) << i;
  }
  ranges.remove(&memory[16]);
  ranges.remove(&memory[17]);  // nothing begins there
  EXPECT_FALSE(ranges.contains(&memory[20]));
  EXPECT_TRUE(ranges.contains(&memory[15]));
  EXPECT_TRUE(ranges.contains(&memory[32]));
}

}  // namespace
}  // namespace uet::nic
