// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/sender_state.h"

#include <gtest/gtest.h>

namespace uet::tss {
namespace {

using History = SenderStart::History;

std::uint64_t next(SenderState& state) {
  const std::optional<EpochAndTsc> taken = state.take();
  EXPECT_TRUE(taken.has_value());
  return taken.value_or(EpochAndTsc{}).tsc;
}

TEST(SenderState, Tss33_TscGrowsWithEachPacket) {
  SenderState state({}, {});
  EXPECT_EQ(next(state), 1U);
  EXPECT_EQ(next(state), 2U);
  EXPECT_EQ(state.next_tsc(), 3U);
}

TEST(SenderState, Tss36_EndOfTheRangeStops) {
  SenderState state({}, {5, 7});
  EXPECT_EQ(next(state), 5U);
  EXPECT_EQ(next(state), 6U);
  EXPECT_FALSE(state.take().has_value());
  EXPECT_FALSE(state.take().has_value());
}

TEST(SenderState, Tss36_DefaultRangeEndsBelow48Bits) {
  EXPECT_TRUE(is_valid(TscRange{}));
  EXPECT_EQ(TscRange{}.end, kTscEnd - (1U << 20));
  EXPECT_FALSE(is_valid(TscRange{0, kTscEnd + 1}));
  EXPECT_FALSE(is_valid(TscRange{3, 3}));
}

// TSS-32: server and client of one SSI share no TSC.
TEST(SenderState, Tss32_ServerAndClientRangesAreDisjoint) {
  EXPECT_EQ(kClientTscs.end, kServerTscs.first);
  EXPECT_EQ(kServerTscs.first, 0x800000000000U);
  EXPECT_TRUE(is_valid(kClientTscs) && is_valid(kServerTscs));
}

TEST(SenderState, Tss37_KnownHistoryGoesOn) {
  SenderState state({History::Known, 4, 100}, {});
  const std::optional<EpochAndTsc> taken = state.take();
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->epoch, 4);
  EXPECT_EQ(taken->tsc, 100U);
}

TEST(SenderState, Tss37_UnknownHistoryWaitsForANewerEpoch) {
  SenderState state({History::Unknown, 4}, {});
  EXPECT_FALSE(state.ready());
  EXPECT_FALSE(state.take().has_value());
  EXPECT_FALSE(state.set_epoch(4).ok());
  EXPECT_FALSE(state.set_epoch(3).ok());
  ASSERT_TRUE(state.set_epoch(5).ok());
  EXPECT_TRUE(state.ready());
  EXPECT_EQ(next(state), 1U);
}

TEST(SenderState, Tss38_NewEpochStartsTheTscAgain) {
  SenderState state({}, {});
  next(state);
  ASSERT_TRUE(state.set_epoch(1).ok());
  const std::optional<EpochAndTsc> taken = state.take();
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->epoch, 1);
  EXPECT_EQ(taken->tsc, 1U);
}

// TSS-32: an epoch that came once would bring its TSCs again.
TEST(SenderState, Tss32_EpochNeverComesAgain) {
  SenderState state({History::Fresh, 10}, {});
  ASSERT_TRUE(state.set_epoch(30000).ok());
  ASSERT_TRUE(state.set_epoch(60000).ok());
  ASSERT_TRUE(state.set_epoch(9).ok());  // wraps, and was not there before
  EXPECT_FALSE(state.set_epoch(10).ok());
  EXPECT_FALSE(state.set_epoch(20000).ok());
  EXPECT_EQ(state.epoch(), 9);
}

// TSS-34: nothing is taken that the owner has not given.
TEST(SenderState, Tss34_ByBlocksTakesOnlyWhatWasAdded) {
  SenderState state({}, {5, 100}, true);
  EXPECT_TRUE(state.needs_block());
  EXPECT_FALSE(state.take().has_value());
  EXPECT_EQ(state.left(), (TscRange{5, 100}));
  state.add({10, 12});
  EXPECT_FALSE(state.needs_block());
  EXPECT_EQ(next(state), 10U);
  EXPECT_EQ(next(state), 11U);
  EXPECT_FALSE(state.take().has_value());
  EXPECT_EQ(state.left(), (TscRange{12, 100}));
  ASSERT_TRUE(state.set_epoch(1).ok());
  EXPECT_TRUE(state.needs_block());
  EXPECT_FALSE(state.take().has_value());
}

TEST(SenderState, Tss37_ByBlocksBeginsBehindAKnownHistory) {
  SenderState state({History::Known, 0, 50}, {5, 100}, true);
  EXPECT_EQ(state.left(), (TscRange{50, 100}));
  EXPECT_TRUE(state.history_told());
}

}  // namespace
}  // namespace uet::tss
