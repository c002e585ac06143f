// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Numbers stay within their width, and no unit shows a thousand of itself.
#include "live_view/words.h"

#include <gtest/gtest.h>

namespace uet::view {
namespace {

TEST(ShortCount, HasThreeDigits) {
  EXPECT_EQ(short_count(0), "0");
  EXPECT_EQ(short_count(7), "7");
  EXPECT_EQ(short_count(999), "999");
  EXPECT_EQ(short_count(0.5), "0.50");
  EXPECT_EQ(short_count(1'500), "1.50k");
  EXPECT_EQ(short_count(12'345), "12.3k");
  EXPECT_EQ(short_count(123'456), "123k");
  EXPECT_EQ(short_count(999'999), "1.00M");
  EXPECT_EQ(short_count(-2'500'000), "-2.50M");
  for (double value = 1; value < 1.8e19; value *= 1.7) {
    EXPECT_LE(short_count(value).size(), 6U) << value;
  }
}

TEST(ShortTime, HasTheUnitOfItsSize) {
  EXPECT_EQ(short_time(0), "0");
  EXPECT_EQ(short_time(250), "250ns");
  EXPECT_EQ(short_time(1'500), "1.50us");
  EXPECT_EQ(short_time(12'300'000), "12.3ms");
  EXPECT_EQ(short_time(2e9), "2.00s");
  EXPECT_EQ(short_time(5400e9), "1.50h");
}

TEST(ShortValue, GoesByTheEndOfTheName) {
  EXPECT_EQ(short_value("rtt_ns", 1'500), "1.50us");
  EXPECT_EQ(short_value("window_bytes", 1'500), "1.50k");
}

}  // namespace
}  // namespace uet::view
