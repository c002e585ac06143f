// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/cmac.h"

#include <gtest/gtest.h>

#include "unit/tss/nist_vectors.h"
#include "unit/tss/tss_testing.h"

namespace uet::tss {
namespace {

std::string mac_of(Cmac& cmac, std::span<const Slice> pieces) {
  std::array<std::byte, Cmac::kBytes> out{};
  EXPECT_TRUE(cmac.mac(pieces, out));
  return to_hex(out);
}

Slice slice(std::span<const std::byte> bytes) {
  return {bytes.data(), static_cast<std::uint32_t>(bytes.size())};
}

// TSS-23: SP 800-38B.
TEST(Cmac, Tss23_NistVectors) {
  UET_NIST_OR_SKIP(records, "CMAC/nist-800-38b-aes256.txt");
  ASSERT_EQ(records.size(), 4U);
  for (const NistRecord& record : records) {
    Result<Cmac> cmac = Cmac::make(key_of(from_hex(record.at("KEY"))));
    ASSERT_TRUE(cmac.ok());
    const Bytes message = from_hex(record.at("MESSAGE"));
    const Slice whole = slice(message);
    EXPECT_EQ(mac_of(cmac.value(), {&whole, 1}), record.at("OUTPUT"));
  }
}

// The kept context begins each MAC from the start, and pieces are one text.
TEST(Cmac, KeptContextStartsAgain) {
  Result<Cmac> cmac = Cmac::make(known_key());
  const Bytes text = counting(1, 40);
  const Slice whole = slice(text);
  const std::string first = mac_of(cmac.value(), {&whole, 1});
  const std::array<Slice, 3> pieces = {slice(std::span(text).first(1)), Slice{},
                                       slice(std::span(text).subspan(1))};
  EXPECT_EQ(mac_of(cmac.value(), pieces), first);
  EXPECT_NE(mac_of(cmac.value(), {pieces.data(), 1}), first);
  EXPECT_EQ(mac_of(cmac.value(), {&whole, 1}), first);
  cmac.value().forget_key();
  EXPECT_NE(mac_of(cmac.value(), {&whole, 1}), first);
  ASSERT_TRUE(cmac.value().set_key(known_key()));
  EXPECT_EQ(mac_of(cmac.value(), {&whole, 1}), first);
}

}  // namespace
}  // namespace uet::tss
