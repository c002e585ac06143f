// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Both ways of copying write the same, and the one that is worth it is found again whenever the
// processors' distance has changed.
#include "nic/adaptive_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace uet::nic {
namespace {

constexpr std::size_t kBytes = 8192;

struct IntoARing : ::testing::Test {
  // Copies at these costs; returns how many used non-temporal stores.
  int copies(int count, Duration stored, Duration streamed) {
    int streaming = 0;
    for (int i = 0; i < count; ++i) {
      const CopyTurn turn = choice.next();
      streaming += turn.streams ? 1 : 0;
      timed += turn.timed ? 1 : 0;
      if (turn.timed) choice.took(turn, turn.streams ? streamed : stored, kBytes);
    }
    return streaming;
  }
  int far(int count) { return copies(count, Duration(3500), Duration(500)); }
  int near(int count) { return copies(count, Duration(450), Duration(500)); }

  RingChoice choice;
  int timed = 0;
};

TEST_F(IntoARing, StoresUntilSomethingIsKnown) { EXPECT_EQ(far(15), 0); }

TEST_F(IntoARing, StreamsToAProcessorWithOtherCaches) {
  far(256);
  EXPECT_EQ(far(2560), 2550) << "and stores one in 256";
}

TEST_F(IntoARing, StoresWhereTheCachesAreShared) {
  near(256);
  EXPECT_EQ(near(2560), 10);
}

TEST_F(IntoARing, StreamingMustBeWorthTheReadersTrip) {
  copies(512, Duration(900), Duration(500));
  EXPECT_EQ(copies(2560, Duration(900), Duration(500)), 10);
}

TEST_F(IntoARing, FollowsTheProcessors) {
  for (int move = 0; move < 3; ++move) {
    near(512);
    EXPECT_EQ(near(256), 1);
    far(512);
    EXPECT_EQ(far(256), 255);
  }
}

TEST_F(IntoARing, APauseInACopyChangesNothing) {
  near(1024);
  copies(16, std::chrono::milliseconds(4), Duration(500));
  EXPECT_EQ(near(2560), 10);
}

TEST_F(IntoARing, FewCopiesAreTimed) {
  near(2560);
  EXPECT_EQ(timed, 160);
}

TEST(RingCopy, BothWaysWriteWhatIsThereAndNothingBeside) {
  constexpr std::byte kUntouched{0xEE};
  std::vector<std::byte> from(3 * 4096);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + i / 256);
  std::vector<std::byte> to(from.size() + 256);
  for (const std::uint32_t length : {0, 1, 2047, 2048, 2049, 2111, 4096, 8192, 12288}) {
    for (const std::size_t offset : {0, 1, 8, 63, 64}) {
      RingCopy copy;
      for (int turn = 0; turn < 512; ++turn) {  // two go the other way, whichever is the better one
        std::fill(to.begin(), to.end(), kUntouched);
        std::byte* begin = to.data() + offset;
        ASSERT_EQ(copy.write(begin, {from.data(), length}), begin + length);
        copy.finish();
        ASSERT_TRUE(std::equal(begin, begin + length, from.data())) << length << " at " << offset;
        ASSERT_EQ(std::count(to.data(), begin, kUntouched), static_cast<std::ptrdiff_t>(offset));
        ASSERT_EQ(std::count(begin + length, to.data() + to.size(), kUntouched),
                  to.data() + to.size() - (begin + length));
      }
    }
  }
}

struct IntoMemory : ::testing::Test {
  // Copies with the times of both kinds of store that were measured here; returns how many used
  // non-temporal stores. Their destinations stay uncached for `working_set` copies.
  int copies(int count, int working_set) {
    int streaming = 0;
    for (int i = 0; i < count; ++i) {
      const CopyTurn turn = choice.next();
      const bool hit = working_set < kCacheCopies && cached >= working_set;
      cached = turn.streams ? 0 : cached + 1;
      const Duration time(turn.streams ? (hit ? 900 : 350) : (hit ? 250 : 700));
      if (turn.timed) choice.took(turn, time, kBytes);
      streaming += turn.streams ? 1 : 0;
    }
    return streaming;
  }
  static constexpr int kCacheCopies = 2048;
  static constexpr int kDecided = PlacingChoice::kAgreeing * PlacingChoice::kStoredRound;
  static constexpr int kStreamedRound = PlacingChoice::kBetweenTrials + PlacingChoice::kTrial;
  PlacingChoice choice;
  int cached = 0;  // copies with cached stores since the last non-temporal one
};

TEST_F(IntoMemory, StreamsWhereMoreIsUnderWayThanCachesHold) {
  EXPECT_EQ(copies(kDecided, 4096), 16) << "one in 256 until it is decided";
  EXPECT_EQ(copies(10 * kStreamedRound, 4096), 10 * int{PlacingChoice::kBetweenTrials});
}

TEST_F(IntoMemory, StoresWhereMemoryIsUsedAgain) {
  EXPECT_EQ(copies(10 * kDecided, 64), 160) << "and streams one in 256";
}

TEST_F(IntoMemory, ATrialFindsThatStoringIsRightAgain) {
  copies(kDecided, 4096);
  ASSERT_EQ(copies(64, 4096), 64);
  copies(kStreamedRound, 500);
  EXPECT_EQ(copies(2560, 64), 10);
}

TEST_F(IntoMemory, OneDecisionIsNotEnough) {
  for (int round = 0; round < 5; ++round) {
    copies(kDecided - PlacingChoice::kStoredRound, 4096);
    EXPECT_EQ(copies(PlacingChoice::kStoredRound, 64), 8);
  }
}

TEST_F(IntoMemory, PausesInCopiesChangeNothing) {
  const CopyTurn turn{.streams = false, .timed = true};
  for (int i = 0; i < 3; ++i) choice.took(turn, std::chrono::milliseconds(4), kBytes);
  EXPECT_EQ(copies(2 * PlacingChoice::kStoredRound, 64), 16);
}

TEST(PlacingCopy, WritesWhatIsThere) {
  std::vector<std::byte> from(8192);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 5 + i / 256);
  MemoryRanges ring;
  ring.add(from);
  PlacingCopy placing;
  placing.adapt_to(&ring);
  for (int turn = 0; turn < 512; ++turn) {
    std::vector<std::byte> to(from.size());
    placing.copy(to.data(), from);
    ASSERT_EQ(to, from);
  }
}

}  // namespace
}  // namespace uet::nic
