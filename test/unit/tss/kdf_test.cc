// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/kdf.h"

#include <gmock/gmock.h>

#include "unit/tss/nist_vectors.h"
#include "unit/tss/tss_testing.h"

namespace uet::tss {
namespace {

using testing::Each;

struct KnownAnswer {
  const char* id;
  KeyMode mode;
  Identity identity;
  std::uint16_t epoch;
  std::uint32_t rekey;
  const char* context;
  const char* key;
  const char* mask;
};

const KnownAnswer kAnswers[] = {
    {"K1",
     KeyMode::Cluster,
     {ipv4(10, 0, 0, 7), {}},
     3,
     0x102,
     "0003000001020a000007",
     "144a4f431ca087a1b0ec98efb3ab72d0cc5e78d3d75fced69515b61a98fdd189",
     "3d8b264932eca4257331fb9f"},
    {"K2",
     KeyMode::Cluster,
     {ipv4(10, 0, 0, 7), 0xA1B2C3D4},
     3,
     0x102,
     "000300000102a1b2c3d4",
     "2c90c12f3a355afb7268f0cdfb769445798223eda6999513f6e1d15d29b3e0f0",
     "8068b6b47ccee94428bac7da"},
    {"K3",
     KeyMode::Cluster,
     {ipv6(0x2A), {}},
     3,
     0x102,
     "00000000000300000102fd00000000000000000000000000002a",
     "1bd7370511f0788af6e1611dccd44221aa69acaac4b1b0a1c849bae01ae09aea",
     "6f36ce73bf95d5ed0b921c34"},
    {"K4",
     KeyMode::Server,
     {ipv4(10, 0, 0, 7), {}},
     3,
     0,
     "0003000000000a000007",
     "67ee05d508ca76ae2ae820522af8a1218f9d2f8ff51f9696fbaf207a6825b507",
     "148d65516b59f079464ff94b"},
    {"K5",
     KeyMode::Server,
     {ipv6(0x2A), {}},
     3,
     0,
     "00000000000300000000fd00000000000000000000000000002a",
     "55a29abf9aa90f37c3300633d8118b4b5fb607c8bad8e42b8cb99d93eae1ca86",
     "4a2630cfdf583ce84451471a"},
    {"K6",
     KeyMode::Cluster,
     {ipv4(10, 0, 0, 7), {}},
     0,
     0,
     "0000000000000a000007",
     "310ffeb6d46f92a6137d4389b399e9dff76118fad35c42c3223cdbd22a7bc3c8",
     "14559d49a3881a18b05f6b56"},
};

KeyMaterial derived(Kdf& kdf, KeyMode mode, const DerivationContext& context) {
  KeyMaterial material;
  EXPECT_TRUE(kdf.derive(mode, context, material));
  return material;
}

// TSS-15, TSS-16, TSS-23 to TSS-28: known answers K1 to K6.
TEST(Kdf, Tss23To28_KnownAnswers) {
  Result<Kdf> kdf = Kdf::make(known_key());
  ASSERT_TRUE(kdf.ok());
  for (const KnownAnswer& answer : kAnswers) {
    const DerivationContext context(answer.epoch, answer.rekey, answer.identity);
    EXPECT_EQ(to_hex(context.bytes()), answer.context) << answer.id;
    const KeyMaterial material = derived(kdf.value(), answer.mode, context);
    EXPECT_EQ(to_hex(material.key.bytes()), answer.key) << answer.id;
    EXPECT_EQ(to_hex(material.mask.bytes()), answer.mask) << answer.id;
  }
}

// TSS-24: the number of the block, the two labels and 25: key and mask are one string.
TEST(Kdf, Tss24And25_LabelsSeparateTheModes) {
  Result<Kdf> kdf = Kdf::make(known_key());
  const DerivationContext context(0, 0, {ipv4(10, 0, 0, 7), {}});
  const KeyMaterial cluster = derived(kdf.value(), KeyMode::Cluster, context);
  const KeyMaterial server = derived(kdf.value(), KeyMode::Server, context);
  EXPECT_NE(to_hex(cluster.key.bytes()), to_hex(server.key.bytes()));
  EXPECT_NE(to_hex(cluster.mask.bytes()), to_hex(server.mask.bytes()));
}

// TSS-26: the whole PRF input is one AES block; TSS-27: two.
TEST(Kdf, Tss26And27_ContextSizes) {
  EXPECT_EQ(DerivationContext(0, 0, {ipv4(1, 2, 3, 4), {}}).bytes().size(), 10U);
  EXPECT_EQ(DerivationContext(0, 0, {ipv4(1, 2, 3, 4), 7}).bytes().size(), 10U);
  EXPECT_EQ(DerivationContext(0, 0, {ipv6(1), {}}).bytes().size(), 26U);
}

TEST(Kdf, Tss29_SsiOverIpv6UsesTheAddress) {
  EXPECT_EQ(DerivationContext(1, 2, {ipv6(1), 7}), DerivationContext(1, 2, {ipv6(1), {}}));
  EXPECT_FALSE(DerivationContext(1, 2, {ipv6(1), 7}) == DerivationContext(1, 2, {ipv6(2), 7}));
}

// SP 800-108: the groups with an 8-bit counter in front of the fixed input.
TEST(Kdf, Tss23And24_NistVectorsOfCounterMode) {
  UET_NIST_OR_SKIP(records, "KDF/nist-800-108-KBKDF-CTR.txt");
  int checked = 0;
  for (const NistRecord& record : records) {
    if (record.at("PRF") != "CMAC_AES256" || record.at("CTRLOCATION") != "BEFORE_FIXED" ||
        record.at("RLEN") != "8_BITS") {
      continue;
    }
    Result<Cmac> prf = Cmac::make(key_of(from_hex(record.at("KI"))));
    ASSERT_TRUE(prf.ok());
    Bytes out(std::stoul(record.at("L")) / 8);
    ASSERT_TRUE(expand(prf.value(), from_hex(record.at("FIXEDINPUTDATA")), out));
    EXPECT_EQ(to_hex(out), record.at("KO"));
    ++checked;
  }
  EXPECT_GE(checked, 40);
}

TEST(Kdf, FingerprintFollowsTheKey) {
  Result<Kdf> a = Kdf::make(known_key());
  Result<Kdf> again = Kdf::make(known_key());
  Result<Kdf> b = Kdf::make(key_of(counting(1, kKeyBytes)));
  EXPECT_EQ(a.value().fingerprint(), again.value().fingerprint());
  EXPECT_NE(a.value().fingerprint(), b.value().fingerprint());
  EXPECT_THAT(a.value().fingerprint(), testing::Not(Each(std::byte{0})));
}

}  // namespace
}  // namespace uet::tss
