// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/keyed_sequence.h"

#include <gtest/gtest.h>

#include <set>

namespace uet {
namespace {

// From the vectors of SipHash's authors: key 00 to 0f, message 00 to 07.
TEST(Siphash, EightBytesOfThePublishedVectors) {
  EXPECT_EQ(siphash(0x0706050403020100, 0x0F0E0D0C0B0A0908, 0x0706050403020100),
            0x93F5F5799A932462ULL);
}

TEST(KeyedSequence, SecretReplaysIt) {
  KeyedSequence first(7);
  KeyedSequence again(7);
  KeyedSequence other(8);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t number = first.next();
    EXPECT_EQ(again.next(), number);
    EXPECT_NE(other.next(), number);
    EXPECT_TRUE(seen.insert(number).second);
  }
}

}  // namespace
}  // namespace uet
