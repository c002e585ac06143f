// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/clear_fields.h"

#include <gtest/gtest.h>

#include "unit/tss/tss_testing.h"

namespace uet::tss {
namespace {

const FabricAddress kSource = ipv4(10, 0, 0, 7);
const FabricAddress kDestination = ipv4(10, 0, 0, 9);

Bytes encoded(const wire::SecurityHeader& header) {
  Bytes bytes(kMaxHeaderBytes);
  bytes.resize(header.encode(bytes.data()));
  return bytes;
}

std::string aad_of(const OuterFields& outer, const wire::SecurityHeader& header) {
  return to_hex(Aad(outer, encoded(header)).bytes());
}

std::string iv_of(const wire::SecurityHeader& header, const FabricAddress& source,
                  const IvMask* mask = nullptr) {
  return to_hex(make_iv(header, source, mask));
}

// TSS-2, TSS-61
TEST(ClearFields, Tss2And61_HeaderAndOverhead) {
  EXPECT_EQ(encoded({.sdi = 1}).size(), header_bytes(false));
  EXPECT_EQ(encoded({.sp = true, .sdi = 1}).size(), header_bytes(true));
  EXPECT_EQ(overhead_bytes(false), 12U + 16U);
  EXPECT_EQ(overhead_bytes(true), 16U + 16U);
}

// TSS-6: the AAD of known answer G2.
TEST(ClearFields, Tss6_UdpAadHasBothPorts) {
  const OuterFields outer = udp_fields({kSource, 0xC123}, {kDestination, 4793});
  EXPECT_EQ(aad_of(outer, {.sp = true,
                           .an = true,
                           .sdi = 0xABCD,
                           .ssi = 0xA1B2C3D4,
                           .epoch = 3,
                           .counter = 0x10203}),
            "0a0000070a000009c12312b90d00abcda1b2c3d40003000000010203");
}

// TSS-4: the AAD of known answers N1 and N4.
TEST(ClearFields, Tss4_NativeAadHasTheEntropyHeader) {
  EXPECT_EQ(aad_of(native_fields(kSource, kDestination, 0x4242), {.sdi = 1, .counter = 1}),
            "0a0000070a00000942420000080000010000000000000001");
  EXPECT_EQ(aad_of(native_fields(ipv6(0x2A), ipv6(0x2B), 0x4242),
                   {.sp = true, .sdi = 1, .ssi = 1, .counter = 1}),
            "fd00000000000000000000000000002afd00000000000000000000000000002b"
            "424200000c000001000000010000000000000001");
}

TEST(ClearFields, Tss32_IvBeginsWithTheIdentity) {
  wire::SecurityHeader header{.sdi = 0xABCDEF, .epoch = 2, .counter = 0x0000A0B0C0D0E0};
  EXPECT_EQ(iv_of(header, kSource), "0a000007000200a0b0c0d0e0");
  EXPECT_EQ(iv_of(header, ipv6(1)), "00abcdef000200a0b0c0d0e0");
  header.sp = true;
  header.ssi = 0xA1B2C3D4;
  EXPECT_EQ(iv_of(header, kSource), "a1b2c3d4000200a0b0c0d0e0");
  EXPECT_EQ(iv_of(header, ipv6(1)), "a1b2c3d4000200a0b0c0d0e0");
}

// TSS-32: the IV of known answer G2.
TEST(ClearFields, Tss32_MaskIsXored) {
  const Bytes mask = from_hex("8068b6b47ccee94428bac7da");
  const IvMask secret{std::span<const std::byte, kMaskBytes>(mask.data(), kMaskBytes)};
  EXPECT_EQ(
      iv_of({.sp = true, .ssi = 0xA1B2C3D4, .epoch = 3, .counter = 0x10203}, kSource, &secret),
      "21da75607ccde94428bbc5d9");
}

TEST(ClearFields, Tss30_RekeyValueIsMaskedAndShifted) {
  EXPECT_EQ(rekey_value(0x123456789ABC, {0xFF00, 8}), 0x9AU);
  EXPECT_EQ(rekey_value(0xFFFFFFFFFFFF, RekeyRule{}), 0xFFFFFFFFU);
  EXPECT_EQ(rekey_value(0x00000001FFFF, RekeyRule{}), 1U);
}

TEST(ClearFields, Tss30_RuleFits32Bits) {
  EXPECT_TRUE(is_valid({0xFF00, 8}));
  EXPECT_TRUE(is_valid(RekeyRule{}));
  EXPECT_FALSE(is_valid({0x1FFFFFFFF, 0}));
  EXPECT_FALSE(is_valid({kTscEnd, 20}));
  EXPECT_FALSE(is_valid({0, 64}));
}

TEST(ClearFields, Tss41_AgeOfAnEpochWraps) {
  EXPECT_EQ(epoch_age(20, 4), 16);
  EXPECT_EQ(epoch_age(20, 20), 0);
  EXPECT_EQ(epoch_age(20, 21), 0);
  EXPECT_EQ(epoch_age(0, 65535), 1);
  EXPECT_EQ(epoch_age(65535, 0), 0);
  EXPECT_EQ(epoch_age(0x8000, 1), 0x7FFF);
  EXPECT_EQ(epoch_age(0x8000, 0), 0);  // half the circle: newer
}

}  // namespace
}  // namespace uet::tss
