// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "wire/crc.h"

#include <gtest/gtest.h>

#include <string_view>

#include "base/rng.h"
#include "unit/wire/vectors.h"

namespace uet::wire {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// WIRE 1.4
TEST(Crc32c, CheckValue) { EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283U); }

TEST(Crc32c, OfNothingIsZero) { EXPECT_EQ(crc32c({}), 0U); }

// The definition, bit by bit.
std::uint32_t slow_crc32c(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (std::byte b : bytes) {
    crc ^= std::to_integer<std::uint32_t>(b);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78 : 0);
  }
  return ~crc;
}

TEST(Crc32c, AgreesWithTheDefinitionAtEveryLength) {
  Rng rng(1);
  Bytes bytes;
  for (int length = 0; length < 100; ++length) {
    EXPECT_EQ(crc32c(bytes), slow_crc32c(bytes)) << length;
    bytes.push_back(static_cast<std::byte>(rng.next()));
  }
}

TEST(Crc32c, MayBeTakenInPieces) {
  const auto whole = bytes_of("123456789");
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    EXPECT_EQ(crc32c(whole.subspan(cut), crc32c(whole.first(cut))), 0xE3069283U) << cut;
  }
}

// WIRE 1.4
TEST(CrcTrailer, LeastSignificantByteFirst) {
  EXPECT_EQ(to_hex(crc_trailer(0xE3069283)), "839206e3");
}

// WIRE 1.4
TEST(CrcTrailer, MatchesOnlyTheRightBytes) {
  Bytes packet = from_hex("313233343536373839839206e3");
  EXPECT_TRUE(crc_trailer_matches(packet));
  for (std::size_t i = 0; i < packet.size(); ++i) {
    packet[i] ^= std::byte{0x10};
    EXPECT_FALSE(crc_trailer_matches(packet)) << i;
    packet[i] ^= std::byte{0x10};
  }
  EXPECT_FALSE(crc_trailer_matches(std::span(packet).first(3)));
  EXPECT_TRUE(crc_trailer_matches(from_hex("00000000")));
}

}  // namespace
}  // namespace uet::wire
