// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copying into a ring: both ways write the same, and the one that is worth it is found again
// whenever the processors' distance has changed.
#include "uet/nic/ring_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace uet::nic {
namespace {

constexpr std::size_t kBytes = 8192;

struct Choice : ::testing::Test {
  // Copies at these costs; returns how many streamed.
  int copies(int count, Duration stored, Duration streamed) {
    int streaming = 0;
    for (int i = 0; i < count; ++i) {
      const CopyChoice::Turn turn = choice.next();
      streaming += turn.streams ? 1 : 0;
      timed += turn.timed ? 1 : 0;
      if (turn.timed) choice.took(turn, turn.streams ? streamed : stored, kBytes);
    }
    return streaming;
  }
  int far(int count) { return copies(count, Duration(3500), Duration(500)); }
  int near(int count) { return copies(count, Duration(450), Duration(500)); }

  CopyChoice choice;
  int timed = 0;
};

TEST_F(Choice, StoresUntilSomethingIsKnown) { EXPECT_EQ(far(15), 0); }

TEST_F(Choice, StreamsToAProcessorWithOtherCaches) {
  far(256);
  EXPECT_EQ(far(2560), 2550) << "and stores one in 256";
}

TEST_F(Choice, StoresWhereTheCachesAreShared) {
  near(256);
  EXPECT_EQ(near(2560), 10);
}

TEST_F(Choice, StreamingMustBeWorthTheReadersTrip) {
  copies(512, Duration(900), Duration(500));
  EXPECT_EQ(copies(2560, Duration(900), Duration(500)), 10);
}

TEST_F(Choice, FollowsTheProcessors) {
  for (int move = 0; move < 3; ++move) {
    near(512);
    EXPECT_EQ(near(256), 1);
    far(512);
    EXPECT_EQ(far(256), 255);
  }
}

TEST_F(Choice, APauseInACopyChangesNothing) {
  near(1024);
  copies(16, std::chrono::milliseconds(4), Duration(500));
  EXPECT_EQ(near(2560), 10);
}

TEST_F(Choice, FewCopiesAreTimed) {
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

}  // namespace
}  // namespace uet::nic
