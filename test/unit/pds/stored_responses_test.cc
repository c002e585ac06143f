// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pds/stored_responses.h"

#include <gtest/gtest.h>

namespace uet::pds {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kHost = 7;
constexpr Duration kClearTime = milliseconds(1);

class StoredResponsesTest : public ::testing::Test {
 protected:
  std::uint16_t store(Duration elapsed) {
    return stored_.store(pool_, kHost, Response{}, begin_ + elapsed);
  }

  const Time begin_{seconds(10)};
  StoredResponses::Pool pool_{16, 1, 1};
  StoredResponses stored_;
};

TEST_F(StoredResponsesTest, Pds113_PdcLeavesSpaceForOthersOfItsHost) {
  std::size_t count = 0;
  while (stored_.may_store(pool_, kHost)) {
    store({});
    ++count;
  }
  EXPECT_GT(count, 0U);
  EXPECT_LT(count, 8U);
  StoredResponses other;
  EXPECT_TRUE(other.may_store(pool_, kHost));
}

TEST_F(StoredResponsesTest, ClearedResponseGoesBackToThePool) {
  const std::uint16_t first = store({});
  const std::uint16_t second = store({});
  EXPECT_EQ(pool_.held(kHost), 2U);
  stored_.cleared(pool_, kHost, first, begin_);
  stored_.drop(pool_, kHost, second);
  EXPECT_EQ(stored_.count(), 0U);
  EXPECT_EQ(pool_.in_use(), 0U);
}

TEST_F(StoredResponsesTest, WaitsSinceTheFirstOrTheLastClear) {
  EXPECT_EQ(stored_.waits_for_clear(begin_), Duration{});
  const std::uint16_t first = store({});
  store(milliseconds(5));
  EXPECT_GE(stored_.waits_for_clear(begin_ + milliseconds(9)), milliseconds(8));
  stored_.cleared(pool_, kHost, first, begin_ + milliseconds(9));
  EXPECT_LT(stored_.waits_for_clear(begin_ + milliseconds(10)), milliseconds(2));
}

TEST_F(StoredResponsesTest, Pds118_ClearIsLateOncePerTwoClearTimes) {
  store({});
  EXPECT_FALSE(stored_.clear_is_late(kClearTime, begin_ + milliseconds(1)));
  EXPECT_TRUE(stored_.clear_is_late(kClearTime, begin_ + milliseconds(3)));
  stored_.clear_asked(begin_ + milliseconds(3));
  EXPECT_FALSE(stored_.clear_is_late(kClearTime, begin_ + milliseconds(4)));
  EXPECT_GE(stored_.waits_for_clear(begin_ + milliseconds(4)), milliseconds(3)) << "still waits";
}

// Times are kept in units of 1.024 us, so that a time can be hit.
TEST_F(StoredResponsesTest, Pds118_ClearIsLateBeyondTwoClearTimes) {
  constexpr Duration kUnit = std::chrono::nanoseconds(1024);
  constexpr Duration kClear = 1000 * kUnit;
  store({});
  EXPECT_FALSE(stored_.clear_is_late(kClear, begin_ + 2 * kClear));
  EXPECT_TRUE(stored_.clear_is_late(kClear, begin_ + 2 * kClear + kUnit));
}

}  // namespace
}  // namespace uet::pds
