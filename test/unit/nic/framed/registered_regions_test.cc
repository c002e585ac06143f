// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "nic/framed/registered_regions.h"

#include <gtest/gtest.h>

#include <array>

namespace uet::nic {
namespace {

class RegisteredRegionsTest : public ::testing::Test {
 protected:
  std::span<const std::byte> memory(std::size_t begin, std::size_t bytes) const {
    return std::span(bytes_).subspan(begin, bytes);
  }
  // The region that contains these bytes, or 0.
  int at(std::size_t begin, std::uint32_t bytes) {
    const int* found = regions_.find({bytes_.data() + begin, bytes});
    return found != nullptr ? *found : 0;
  }

  std::array<std::byte, 1000> bytes_{};
  RegisteredRegions<int> regions_;
};

TEST_F(RegisteredRegionsTest, APieceMustBeInsideWholly) {
  regions_.add(memory(100, 200), 7);
  EXPECT_EQ(at(100, 200), 7);
  EXPECT_EQ(at(299, 1), 7);
  EXPECT_EQ(at(99, 10), 0);
  EXPECT_EQ(at(299, 2), 0);
  EXPECT_EQ(at(300, 1), 0);
  EXPECT_EQ(at(0, 1), 0);
}

TEST_F(RegisteredRegionsTest, OfTheSameMemoryTheLatestIsFound) {
  const std::uint64_t first = regions_.add(memory(0, 500), 1);
  const std::uint64_t second = regions_.add(memory(0, 500), 2);
  EXPECT_NE(first, 0U);
  EXPECT_NE(first, second);
  EXPECT_EQ(at(10, 10), 2);
  regions_.remove(second);
  EXPECT_EQ(at(10, 10), 1);
  regions_.remove(second);  // again: nothing
  EXPECT_EQ(at(10, 10), 1);
  regions_.remove(first);
  EXPECT_EQ(at(10, 10), 0);
}

TEST_F(RegisteredRegionsTest, IsFoundByName) {
  const std::uint64_t id = regions_.add(memory(0, 10), 5);
  ASSERT_NE(regions_.get(id), nullptr);
  EXPECT_EQ(*regions_.get(id), 5);
  EXPECT_EQ(regions_.get(id + 1), nullptr);
  int sum = 0;
  regions_.add(memory(20, 10), 6);
  regions_.for_each([&](int region) { sum += region; });
  EXPECT_EQ(sum, 11);
}

}  // namespace
}  // namespace uet::nic
