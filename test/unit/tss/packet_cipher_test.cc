// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/packet_cipher.h"

#include <gmock/gmock.h>

#include "unit/tss/nist_vectors.h"
#include "unit/tss/tss_testing.h"

namespace uet::tss {
namespace {

using testing::Each;

Iv iv_of(std::string_view hex) {
  Iv iv{};
  const Bytes bytes = from_hex(hex);
  std::copy(bytes.begin(), bytes.end(), iv.begin());
  return iv;
}

Slice slice(std::span<const std::byte> bytes) {
  return {bytes.data(), static_cast<std::uint32_t>(bytes.size())};
}

class PacketCipherTest : public testing::Test {
 protected:
  PacketCipherTest() { EXPECT_TRUE(cipher_.set_key(known_key())); }

  Bytes sealed(std::span<const Slice> pieces) {
    std::size_t length = kIcvBytes;
    for (const Slice& piece : pieces) length += piece.length;
    Bytes out(length);
    EXPECT_TRUE(cipher_.seal(kIv, aad_, pieces, out));
    return out;
  }

  const Iv kIv = iv_of("0a0000070000000000000001");
  const Bytes aad_ = from_hex("0a0000070a000009c12312b9080000010000000000000001");
  const Bytes plain_ = counting(0x40, 32);
  PacketCipher cipher_;
};

// TSS-1: known answer G1.
TEST_F(PacketCipherTest, Tss1_KnownAnswerG1BothWays) {
  const Slice whole = slice(plain_);
  const Bytes out = sealed({&whole, 1});
  EXPECT_EQ(to_hex(out),
            "2e1c814d3d79189b1728e35d809ed18891c8ea20f7792081af236aadf34cfc0a"
            "dce4ea5022fa245a16c4bfa63c27c5d5");
  Bytes opened(plain_.size());
  EXPECT_TRUE(cipher_.open(kIv, aad_, out, opened));
  EXPECT_EQ(opened, plain_);
}

TEST_F(PacketCipherTest, Tss3_PiecesAreOneText) {
  const std::span<const std::byte> all(plain_);
  const Slice whole = slice(plain_);
  const std::array<Slice, 4> pieces = {slice(all.first(5)), slice(all.subspan(5, 18)), Slice{},
                                       slice(all.subspan(23))};
  EXPECT_EQ(sealed(pieces), sealed({&whole, 1}));
}

// TSS-40: no byte of an unverified packet remains.
TEST_F(PacketCipherTest, Tss40_FailureWipesThePlainText) {
  const Slice whole = slice(plain_);
  Bytes out = sealed({&whole, 1});
  out.back() ^= std::byte{1};
  Bytes opened(plain_.size(), std::byte{0x77});
  EXPECT_FALSE(cipher_.open(kIv, aad_, out, opened));
  EXPECT_THAT(opened, Each(std::byte{0}));
}

TEST_F(PacketCipherTest, WithoutAKeyNothingIsSealed) {
  const Slice whole = slice(plain_);
  Bytes out(plain_.size() + kIcvBytes, std::byte{0x77});
  EXPECT_FALSE(PacketCipher().seal(kIv, aad_, {&whole, 1}, out));
  EXPECT_THAT(out, Each(std::byte{0}));
  EXPECT_FALSE(PacketCipher().open(kIv, aad_, out, out));
}

TEST_F(PacketCipherTest, Tss45_EachBitOfTheIcvCounts) {
  const Slice whole = slice(plain_);
  const Bytes good = sealed({&whole, 1});
  Bytes opened(plain_.size());
  for (std::size_t bit = 0; bit < 8 * kIcvBytes; ++bit) {
    Bytes bad = good;
    bad[plain_.size() + bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(cipher_.open(kIv, aad_, bad, opened)) << bit;
  }
  EXPECT_TRUE(cipher_.open(kIv, aad_, good, opened));
}

TEST_F(PacketCipherTest, ShorterThanTheIcvIsRefused) {
  Bytes opened;
  EXPECT_FALSE(cipher_.open(kIv, aad_, counting(0, kIcvBytes - 1), opened));
}

TEST_F(PacketCipherTest, NewKeyReplacesTheOldOne) {
  const Slice whole = slice(plain_);
  const Bytes old = sealed({&whole, 1});
  ASSERT_TRUE(cipher_.set_key(key_of(counting(9, kKeyBytes))));
  Bytes opened(plain_.size());
  EXPECT_FALSE(cipher_.open(kIv, aad_, old, opened));
  ASSERT_TRUE(cipher_.set_key(known_key()));
  EXPECT_TRUE(cipher_.open(kIv, aad_, old, opened));
  cipher_.forget();
  EXPECT_FALSE(cipher_.has_key());
}

// The groups that UET uses: 96-bit IV, 128-bit tag.
bool is_form_of_uet(const NistRecord& record) {
  return record.at("IVLEN") == "96" && record.at("TAGLEN") == "128";
}

TEST(PacketCipherNist, Tss1_NistVectorsOfEncryption) {
  UET_NIST_OR_SKIP(records, "ciphers/AES/GCM/gcmEncryptExtIV256.rsp");
  int checked = 0;
  PacketCipher cipher;
  for (const NistRecord& record : records) {
    if (!is_form_of_uet(record)) continue;
    const Bytes plain = from_hex(record.at("PT"));
    const Slice whole = slice(plain);
    Bytes out(plain.size() + kIcvBytes);
    ASSERT_TRUE(cipher.set_key(key_of(from_hex(record.at("KEY")))));
    ASSERT_TRUE(cipher.seal(iv_of(record.at("IV")), from_hex(record.at("AAD")), {&whole, 1}, out));
    EXPECT_EQ(to_hex(out), record.at("CT") + record.at("TAG"));
    ++checked;
  }
  EXPECT_GE(checked, 300);
}

TEST(PacketCipherNist, Tss1And45_NistVectorsOfDecryption) {
  UET_NIST_OR_SKIP(records, "ciphers/AES/GCM/gcmDecrypt256.rsp");
  int opened = 0;
  int refused = 0;
  PacketCipher cipher;
  for (const NistRecord& record : records) {
    if (!is_form_of_uet(record)) continue;
    const Bytes sealed = from_hex(record.at("CT") + record.at("TAG"));
    Bytes out(sealed.size() - kIcvBytes);
    ASSERT_TRUE(cipher.set_key(key_of(from_hex(record.at("KEY")))));
    const bool good = cipher.open(iv_of(record.at("IV")), from_hex(record.at("AAD")), sealed, out);
    EXPECT_NE(good, record.contains("FAIL"));
    if (good) {
      EXPECT_EQ(to_hex(out), record.at("PT"));
    }
    ++(good ? opened : refused);
  }
  EXPECT_GE(opened, 100);
  EXPECT_GE(refused, 50);
}

}  // namespace
}  // namespace uet::tss
