// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pds/early_storage.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace uet::pds {
namespace {

TEST(EarlyStorage, PacketsHaveBytesOfTheirOwn) {
  EarlyStorage storage(100);
  const std::vector<std::uint16_t> numbers = {0, 1, 15, 16, EarlyStorage::kPackets - 1};
  for (const std::uint16_t number : numbers) std::memset(storage.room(number), number & 0x7F, 100);
  for (const std::uint16_t number : numbers) {
    const std::byte* room = storage.room(number);
    EXPECT_EQ(room[0], std::byte(number & 0x7F));
    EXPECT_EQ(room[99], std::byte(number & 0x7F));
  }
}

}  // namespace
}  // namespace uet::pds
