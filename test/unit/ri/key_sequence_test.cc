// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ri/key_sequence.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>

namespace uet::ri {
namespace {

constexpr KeySecret kSecret{0x0706050403020100, 0x0F0E0D0C0B0A0908};

TEST(KeySequence, NumbersHave48BitsAndDiffer) {
  KeySequence sequence(kSecret);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t number = sequence.next();
    ASSERT_EQ(number >> KeySequence::kBits, 0U);
    ASSERT_TRUE(seen.insert(number).second) << i;
  }
}

// The next number, or that of another secret, has about half of the bits different.
TEST(KeySequence, NeighboursHaveNothingInCommon) {
  const KeySequence sequence(kSecret);
  const KeySequence other({kSecret[0] ^ 1, kSecret[1]});
  int next = 0;
  int elsewhere = 0;
  constexpr int kNumbers = 1000;
  for (std::uint64_t i = 0; i < kNumbers; ++i) {
    next += std::popcount(sequence.permuted(i) ^ sequence.permuted(i + 1));
    elsewhere += std::popcount(sequence.permuted(i) ^ other.permuted(i));
  }
  EXPECT_NEAR(next, kNumbers * 24, kNumbers);
  EXPECT_NEAR(elsewhere, kNumbers * 24, kNumbers);
}

}  // namespace
}  // namespace uet::ri
