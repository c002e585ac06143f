// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pds/rx_window.h"

#include <gtest/gtest.h>

#include <vector>

namespace uet::pds {
namespace {

using Slot = RxWindow::Slot;
using Place = RxWindow::Place;

class RxWindowTest : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  static constexpr std::int32_t kRange = 128;
  RxWindowTest() { pool.reserve(1); }
  void advance() {
    window.advance([this](std::uint16_t index) { released.push_back(index); });
  }
  void finish(std::int32_t from_start) {
    window.mark(start + from_start, Slot::Finished);
    advance();
  }
  std::int32_t cack() const { return window.cack_psn() - start; }

  const Psn start{GetParam()};
  RxWindow::Pool pool{kRange, 1};
  RxWindow window{pool, start};
  std::vector<std::uint16_t> released;
};

// The second start makes PSNs wrap in every test.
INSTANTIATE_TEST_SUITE_P(Starts, RxWindowTest, ::testing::Values(333U, 0xFFFFFFFEU));

TEST_P(RxWindowTest, Pds33_CackAndClearBeginBelowStart) {
  EXPECT_EQ(cack(), -1);
  EXPECT_EQ(window.clear_psn(), start - 1);
}

TEST_P(RxWindowTest, Pds45_WindowIsAnchoredAtCack) {
  EXPECT_EQ(window.place(start), Place::New);
  EXPECT_EQ(window.place(start + kRange - 1), Place::New);
  EXPECT_EQ(window.place(start + kRange), Place::OutOfRange);
  window.mark(start + 5, Slot::Finished);  // the highest PSN seen moves nothing
  EXPECT_EQ(window.place(start + kRange), Place::OutOfRange);
  finish(0);
  EXPECT_EQ(window.place(start + kRange), Place::New);
}

TEST_P(RxWindowTest, Pds46_OneWindowBelowCackIsDuplicate) {
  for (std::int32_t i = 0; i < 2 * kRange; ++i) finish(i);
  EXPECT_EQ(cack(), 2 * kRange - 1);
  EXPECT_EQ(window.place(window.cack_psn()), Place::Duplicate);
  EXPECT_EQ(window.place(window.cack_psn() - (kRange - 1)), Place::Duplicate);
  EXPECT_EQ(window.place(window.cack_psn() - kRange), Place::OutOfRange);
  EXPECT_EQ(window.place(Psn{window.cack_psn().value + 0x80000000U}), Place::OutOfRange);
}

TEST_P(RxWindowTest, Pds201_AboveCackAndMarkedIsDuplicate) {
  window.mark(start + 3, Slot::Finished);
  EXPECT_EQ(window.place(start + 3), Place::Duplicate);
  EXPECT_EQ(window.place(start + 2), Place::New);
}

TEST_P(RxWindowTest, Pds83_Pds85_CackMovesOverFinishedPsnsWithoutGap) {
  window.mark(start + 1, Slot::Finished);
  window.mark(start + 2, Slot::Finished);
  advance();
  EXPECT_EQ(cack(), -1);
  finish(0);
  EXPECT_EQ(cack(), 2);
}

TEST_P(RxWindowTest, Pds84_BufferedPsnHoldsCack) {
  window.mark(start, Slot::Buffered, 9);
  finish(1);
  EXPECT_EQ(cack(), -1);
  EXPECT_TRUE(released.empty());
}

TEST_P(RxWindowTest, Pds86_GuaranteedPsnHoldsCackUntilCleared) {
  finish(0);
  window.mark(start + 1, Slot::Guaranteed, 7);
  finish(2);
  finish(3);
  EXPECT_EQ(cack(), 0);
  window.clear_up_to(start + 1);
  advance();
  EXPECT_EQ(cack(), 3);  // over it and over the finished ones behind it
  EXPECT_EQ(released, (std::vector<std::uint16_t>{7}));
}

TEST_P(RxWindowTest, Pds114_ClearNeverMovesBack) {
  for (std::int32_t i = 0; i < 4; ++i) {
    window.mark(start + i, Slot::Guaranteed, static_cast<std::uint16_t>(i));
  }
  window.clear_up_to(start + 2);
  window.clear_up_to(start);
  EXPECT_EQ(window.clear_psn(), start + 2);
  advance();
  EXPECT_EQ(released, (std::vector<std::uint16_t>{0, 1, 2}));
}

TEST_P(RxWindowTest, ClearOfWhatHasNotArrivedIsNotBelieved) {
  finish(0);
  window.clear_up_to(start + 1);
  EXPECT_EQ(window.clear_psn(), start - 1);
  window.mark(start + 1, Slot::Guaranteed, 1);
  advance();
  EXPECT_EQ(cack(), 0);
}

TEST_P(RxWindowTest, Pds88_BitmapShowsWhatArrived) {
  finish(0);
  window.mark(start + 2, Slot::Finished);
  window.mark(start + 4, Slot::Guaranteed, 1);
  window.mark(start + 63, Slot::Buffered, 2);
  EXPECT_EQ(window.bitmap(start + 1), (1ULL << 1) | (1ULL << 3) | (1ULL << 62));
  EXPECT_EQ(window.bitmap(start), 1ULL | (1ULL << 2) | (1ULL << 4) | (1ULL << 63));
  EXPECT_EQ(window.bitmap(start + 64), 0ULL);
}

TEST_P(RxWindowTest, Pds92_BaseIsAboveCackOrTheBlockOfTheTrigger) {
  finish(0);
  EXPECT_EQ(window.sack_base(start), start + 1);
  EXPECT_EQ(window.sack_base(start + 64), start + 1);
  EXPECT_EQ(window.sack_base(start + 65), start + 65);
  EXPECT_EQ(window.sack_base(start + 128), start + 65);
}

TEST_P(RxWindowTest, SlotsAreUsedAgainAfterAWholeRound) {
  for (std::int32_t i = 0; i < 10 * kRange; ++i) {
    ASSERT_EQ(window.place(start + i), Place::New) << i;
    if (i % 3 == 0) {
      window.mark(start + i, Slot::Guaranteed, static_cast<std::uint16_t>(i));
      window.clear_up_to(start + i);
      advance();
    } else {
      finish(i);
    }
    ASSERT_EQ(cack(), i);
    ASSERT_EQ(window.state(start + i), Slot::Finished);
  }
  EXPECT_EQ(released.size(), static_cast<std::size_t>((10 * kRange + 2) / 3));
}

TEST_P(RxWindowTest, FinishInOrderIsMarkAndAdvanceOfTheNextOne) {
  EXPECT_FALSE(window.finish_in_order(start + 1));  // a gap
  EXPECT_TRUE(window.finish_in_order(start));
  EXPECT_FALSE(window.finish_in_order(start));
  EXPECT_EQ(cack(), 0);
  EXPECT_EQ(window.highest_psn(), start);
  window.mark(start + 2, Slot::Finished);
  EXPECT_FALSE(window.finish_in_order(start + 1));  // one above it would have to follow
  finish(1);
  EXPECT_EQ(cack(), 2);
  EXPECT_TRUE(window.finish_in_order(start + 3));
}

TEST_P(RxWindowTest, NothingAboveCack_HoldsNoBlock) {
  EXPECT_EQ(pool.in_use(), 0U);
  window.mark(start + 1, Slot::Finished);
  EXPECT_EQ(pool.in_use(), 1U);
  finish(0);
  EXPECT_EQ(pool.in_use(), 0U);
  EXPECT_EQ(window.state(start + 2), Slot::Missing);
  EXPECT_EQ(window.place(start + 2), Place::New);
}

// Blocks come back as they were given: all Missing.
TEST(RxWindow, LeavesNothingBehindInItsBlock) {
  RxWindow::Pool pool(128, 1);
  pool.reserve(1);
  for (int i = 0; i < 3; ++i) {
    RxWindow window(pool, Psn{7});
    EXPECT_EQ(window.place(Psn{9}), Place::New);
    window.mark(Psn{9}, Slot::Guaranteed, 3);
    window.mark(Psn{11}, Slot::Buffered, 4);
    EXPECT_EQ(window.state(Psn{8}), Slot::Missing);
    EXPECT_EQ(window.state(Psn{10}), Slot::Missing);
  }
  EXPECT_EQ(pool.in_use(), 0U);
}

}  // namespace
}  // namespace uet::pds
