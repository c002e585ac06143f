// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/used_keys.h"

#include <gtest/gtest.h>

namespace uet::tss {
namespace {

Fingerprint numbered(unsigned number) {
  Fingerprint fingerprint{};
  fingerprint[0] = static_cast<std::byte>(number);
  fingerprint[1] = static_cast<std::byte>(number >> 8);
  return fingerprint;
}

TEST(UsedKeys, Tss37_RemembersUpToItsBound) {
  UsedKeys keys;
  EXPECT_FALSE(keys.contains(numbered(0)));
  for (unsigned i = 0; i < UsedKeys::kMost; ++i) keys.add(numbered(i));
  keys.add(numbered(7));  // again: takes no space
  EXPECT_TRUE(keys.contains(numbered(0)));
  keys.add(numbered(UsedKeys::kMost));
  EXPECT_FALSE(keys.contains(numbered(0)));
  EXPECT_TRUE(keys.contains(numbered(1)));
  EXPECT_TRUE(keys.contains(numbered(UsedKeys::kMost)));
}

}  // namespace
}  // namespace uet::tss
