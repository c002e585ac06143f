// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "security/auth_key.h"

#include <gtest/gtest.h>

#include <vector>

#include "uet/fi_ext_uet.h"

namespace uet::prov {
namespace {

using Bytes = std::vector<std::uint8_t>;

Result<AuthKey> read(const Bytes& bytes) { return read_auth_key(bytes.data(), bytes.size()); }

TEST(AuthKey, Ses145_ShortFormIsTheJobId) {
  for (const Bytes& bytes : {Bytes{1, 2, 3}, Bytes{0, 1, 2, 3}}) {
    const auto key = read(bytes);
    ASSERT_TRUE(key.ok());
    EXPECT_EQ(key.value().job, JobId{0x010203});
    EXPECT_FALSE(key.value().identity.has_value());
  }
  EXPECT_FALSE(read({1, 1, 2, 3}).ok());
}

TEST(AuthKey, Tss68_LongFormIsRecognisedByItsSize) {
  const Bytes bytes = {0, 1, 2, 3, 0, 4, 5, 6, 7, 8, 9, 10};
  ASSERT_EQ(bytes.size(), std::size_t{FI_UET_TSS_AUTH_KEY_SIZE});
  const auto key = read(bytes);
  ASSERT_TRUE(key.ok());
  EXPECT_EQ(key.value().job, JobId{0x010203});
  ASSERT_TRUE(key.value().identity.has_value());
  EXPECT_EQ(key.value().identity->sdi, 0x040506U);
  EXPECT_EQ(key.value().identity->ssi, 0x0708090AU);
}

TEST(AuthKey, Tss68_SsiZeroIsThatOfTheKeyFile) {
  const auto key = read({0, 1, 2, 3, 0, 4, 5, 6, 0, 0, 0, 0});
  ASSERT_TRUE(key.ok());
  EXPECT_EQ(key.value().identity->ssi, std::nullopt);
}

TEST(AuthKey, Tss68_OtherFormsAreRefused) {
  EXPECT_FALSE(read({1, 1, 2, 3, 0, 4, 5, 6, 0, 0, 0, 0}).ok());
  EXPECT_FALSE(read({0, 1, 2, 3, 1, 4, 5, 6, 0, 0, 0, 0}).ok());
  EXPECT_FALSE(read({0, 1, 2, 3, 0, 4, 5, 6}).ok());
  EXPECT_FALSE(read(Bytes(44)).ok());  // a key of a client, for example
  EXPECT_FALSE(read_auth_key(nullptr, 3).ok());
}

}  // namespace
}  // namespace uet::prov
