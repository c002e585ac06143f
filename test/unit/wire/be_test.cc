// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet/wire/be.h"

#include <gtest/gtest.h>

#include "unit/wire/vectors.h"

namespace uet::wire {
namespace {

template <class Word>
std::string hex_of(Word word) {
  return to_hex(std::as_bytes(std::span(&word, 1)));
}

TEST(BigEndian, MostSignificantByteComesFirst) {
  EXPECT_EQ(hex_of(be16(0x0102)), "0102");
  EXPECT_EQ(hex_of(be24(0x010203)), "010203");
  EXPECT_EQ(hex_of(be32(0x01020304)), "01020304");
  EXPECT_EQ(hex_of(be64(0x0102030405060708)), "0102030405060708");
  EXPECT_EQ(hex_of(BigEndian<std::uint64_t, 6>(0x010203040506)), "010203040506");
}

TEST(BigEndian, ReadsBackWhatWasWritten) {
  EXPECT_EQ(be16(0xFFFE).get(), 0xFFFE);
  EXPECT_EQ(be24(0xFFFFFE).get(), 0xFFFFFEU);
  EXPECT_EQ(be32(0xFFFFFFFE).get(), 0xFFFFFFFEU);
  EXPECT_EQ(be64(0xFFFFFFFFFFFFFFFE).get(), 0xFFFFFFFFFFFFFFFEU);
}

TEST(BigEndian, ValueTooWideKeepsLowOrderBytes) { EXPECT_EQ(be24(0xAB010203).get(), 0x010203U); }

TEST(BigEndian, WorksInConstantExpressions) {
  static_assert(be16(0x1234) == 0x1234);
  static_assert(be24(0x123456) == 0x123456);
  static_assert(be32() == 0);
  SUCCEED();
}

struct Pair {
  std::uint8_t first;
  be32 second;
};

TEST(LoadStore, WorkAtAnyAddress) {
  const Bytes bytes = from_hex("00ff01020304");
  const auto pair = load<Pair>(std::span(bytes).subspan(1));
  EXPECT_EQ(pair.first, 0xFF);
  EXPECT_EQ(pair.second, 0x01020304U);
  Bytes out(6);
  EXPECT_EQ(store(out.data() + 1, pair), 5U);
  EXPECT_EQ(to_hex(out), to_hex(bytes));
}

}  // namespace
}  // namespace uet::wire
