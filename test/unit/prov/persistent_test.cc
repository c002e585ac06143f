// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hmem/persistent.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

namespace uet::prov {
namespace {

std::vector<const std::byte*> lines;
std::vector<std::byte> seen;  // the first byte of each line when its write-back began
int fences = 0;

class Persistent : public testing::Test {
 protected:
  Persistent() {
    lines.clear();
    seen.clear();
    fences = 0;
  }
  alignas(64) std::array<std::byte, 256> cells_{};
  std::array<std::byte, 256> bytes_{};
  PersistentMemory memory_{[](const std::byte* line) {
                             EXPECT_EQ(fences, 0);
                             lines.push_back(line);
                             seen.push_back(*line);
                           },
                           [] { ++fences; }};
};

TEST_F(Persistent, EachLineOfTheBytesIsWrittenBack) {
  bytes_.fill(std::byte{7});
  memory_.place(&cells_[63],
                std::span(bytes_).first(66));  // the end of one to the begin of another
  EXPECT_EQ(lines, (std::vector<const std::byte*>{&cells_[0], &cells_[64], &cells_[128]}));
  EXPECT_EQ(seen, (std::vector{std::byte{0}, std::byte{7}, std::byte{7}})) << "copied before";
  EXPECT_EQ(fences, 1);
  EXPECT_EQ(cells_[128], std::byte{7});
  EXPECT_EQ(cells_[129], std::byte{0});
}

TEST_F(Persistent, WholeLineIsOne) {
  memory_.place(&cells_[64], std::span(bytes_).first(64));
  EXPECT_EQ(lines, (std::vector<const std::byte*>{&cells_[64]}));
}

TEST_F(Persistent, NothingNeedsNoMemory) {
  memory_.place(nullptr, {});
  memory_.fetch({}, nullptr);
  EXPECT_TRUE(lines.empty());
  EXPECT_EQ(fences, 0);
}

TEST_F(Persistent, ReadsWriteNothingBack) {
  cells_[5] = std::byte{9};
  memory_.fetch(std::span(bytes_).first(2), &cells_[4]);
  EXPECT_EQ(bytes_[1], std::byte{9});
  EXPECT_TRUE(lines.empty());
}

TEST(PersistentMemoryOfThisCpu, CopiesEveryByte) {
  PersistentMemory* const memory = PersistentMemory::of_this_cpu();
  if (memory == nullptr) GTEST_SKIP() << "this CPU has no instruction to write a line back";
  std::vector<std::byte> from(10'000, std::byte{3});
  std::vector<std::byte> to(10'002);
  memory->place(&to[1], from);
  EXPECT_EQ(std::memcmp(&to[1], from.data(), from.size()), 0);
  EXPECT_EQ(to.front(), std::byte{0});
  EXPECT_EQ(to.back(), std::byte{0});
}

}  // namespace
}  // namespace uet::prov
