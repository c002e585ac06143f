// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet/wire/field.h"

#include <gtest/gtest.h>

namespace uet::wire {
namespace {

struct Sample {
  be16 word;
  std::uint8_t byte;
  be24 three;

  using Top = Field<&Sample::word, 15, 11>;
  using Middle = Field<&Sample::word, 10, 7>;
  using Flag = Field<&Sample::word, 3, 3>;
  using Nibble = Field<&Sample::byte, 7, 4>;
  using Whole = Field<&Sample::three, 23, 0>;
};

TEST(Field, GetReadsOnlyItsBits) {
  const Sample s{.word = 0x1184, .byte = 0xE5, .three = 0xABCDEF};
  EXPECT_EQ(Sample::Top::get(s), 2);
  EXPECT_EQ(Sample::Middle::get(s), 3);
  EXPECT_EQ(Sample::Flag::get(s), 0);
  EXPECT_EQ(Sample::Nibble::get(s), 0xE);
  EXPECT_EQ(Sample::Whole::get(s), 0xABCDEFU);
}

TEST(Field, SetLeavesTheNeighboursAlone) {
  Sample s{.word = 0xFFFF, .byte = 0xFF, .three = 0};
  Sample::Middle::set(s, 0);
  EXPECT_EQ(s.word, 0xF87F);
  Sample::Flag::set(s, 0);
  EXPECT_EQ(s.word, 0xF877);
  Sample::Nibble::set(s, 5);
  EXPECT_EQ(s.byte, 0x5F);
}

TEST(Field, SetCutsAValueThatIsTooWide) {
  Sample s{};
  Sample::Middle::set(s, 0x1F);
  EXPECT_EQ(s.word, 0x0780);
  Sample::Whole::set(s, 0xFF123456);
  EXPECT_EQ(s.three, 0x123456U);
}

TEST(Field, KnowsItsWidth) {
  static_assert(Sample::Top::kWidth == 5 && Sample::Top::kMax == 31);
  static_assert(Sample::Whole::kMax == 0xFFFFFF);
  SUCCEED();
}

}  // namespace
}  // namespace uet::wire
