// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "wire/parse.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "uet/wire/ses.h"
#include "unit/wire/vectors.h"

namespace uet::wire {
namespace {

// A packet in memory of exactly its size, so that a sanitizer sees every read beyond it.
Bytes first_bytes(const Bytes& bytes, std::size_t count) {
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count)};
}

std::size_t header_bytes_of(const Bytes& packet) {
  const auto type = static_cast<PdsType>(std::to_integer<unsigned>(packet[0]) >> 3);
  if (type != PdsType::Tss) return pds_header_bytes(type);
  return (std::to_integer<unsigned>(packet[0]) & 4) != 0 ? sizeof(TssHeaderSsi) : sizeof(TssHeader);
}

TEST(Parse, EveryVectorShortOfItsHeader_IsRefused) {
  for (const auto& vector : wire_vectors()) {
    const Bytes whole = from_hex(vector["hex"].get<std::string>());
    const std::size_t header_bytes = header_bytes_of(whole);
    for (std::size_t length = 0; length <= whole.size(); ++length) {
      const Bytes bytes = first_bytes(whole, length);
      const auto packet = parse(bytes);
      ASSERT_EQ(packet.has_value(), length >= header_bytes) << vector["name"] << " " << length;
      if (packet) {
        EXPECT_EQ(packet->rest.size(), length - header_bytes);
      }
    }
  }
}

TEST(Parse, EveryType_RefusedShortTakenWithItsHeader) {
  for (unsigned type = 0; type < 32; ++type) {
    const std::size_t header_bytes = type == to_underlying(PdsType::Tss)
                                         ? sizeof(TssHeader)
                                         : pds_header_bytes(static_cast<PdsType>(type));
    Bytes bytes;
    for (std::size_t length = 0; length < 64; ++length) {
      const auto packet = parse(bytes);
      const bool whole = header_bytes != 0 && length >= header_bytes;
      EXPECT_EQ(packet.has_value(), whole) << type << " " << length;
      if (packet) {
        EXPECT_EQ(to_underlying(packet->type), type);
      }
      bytes.push_back(bytes.empty() ? static_cast<std::byte>(type << 3) : std::byte{0});
    }
  }
}

TEST(Parse, RestIsAViewOfTheParsedBytes) {
  const Bytes bytes = vector_bytes("rud_write_last");
  const auto packet = parse(bytes);
  ASSERT_TRUE(packet.has_value());
  EXPECT_EQ(packet->rest.data(), bytes.data() + 12);
  EXPECT_EQ(packet->as<RequestHeader>().psn, Psn{0x00010003});
}

// Reserved numbers inside a header are the protocol's to judge.
TEST(Parse, ReservedNextHdrAndControlTypeArePassedOn) {
  const auto request = parse(from_hex("1788ffff0001000300110022"));
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(to_underlying(request->as<RequestHeader>().next_hdr), 15);
  const auto control = parse(from_hex("5f800000000000000011002200000000"));
  ASSERT_TRUE(control.has_value());
  EXPECT_EQ(to_underlying(control->as<ControlHeader>().ctl_type), 15);
}

TEST(Parse, RandomBytesAreParsedOrRefused) {
  Rng rng(8);
  int parsed = 0;
  for (int i = 0; i < 20000; ++i) {
    Bytes bytes(rng.below(64));
    for (std::byte& b : bytes) b = static_cast<std::byte>(rng.next());
    const auto packet = parse(bytes);
    if (!packet) continue;
    ++parsed;
    EXPECT_LE(packet->rest.size(), bytes.size());
    EXPECT_EQ(packet->rest.data() + packet->rest.size(), bytes.data() + bytes.size());
  }
  EXPECT_GT(parsed, 1000);
}

}  // namespace
}  // namespace uet::wire
