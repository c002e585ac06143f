// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "nic/ring_patience.h"

#include <gtest/gtest.h>

namespace uet::nic {
namespace {

constexpr Time kNow{std::chrono::seconds(1)};
constexpr Duration kTick{1};
constexpr Duration kReads = RingPatience::kReads;

TEST(RingPatience, PacketsWaitForAPeerThatReads) {
  RingPatience patience;
  EXPECT_TRUE(patience.waits_when_full(kNow));
  EXPECT_TRUE(patience.waits_when_full(kNow + kReads - kTick));
  EXPECT_FALSE(patience.passes_over());
}

TEST(RingPatience, RingThatStaysFullIsPassedOver) {
  RingPatience patience;
  EXPECT_TRUE(patience.waits_when_full(kNow));
  EXPECT_FALSE(patience.waits_when_full(kNow + kReads));
  EXPECT_TRUE(patience.passes_over());
  patience.try_again();
  EXPECT_FALSE(patience.passes_over());
}

TEST(RingPatience, PacketThatFitsEndsTheWait) {
  RingPatience patience;
  EXPECT_TRUE(patience.waits_when_full(kNow));
  patience.fitted(kNow + kReads - kTick);
  EXPECT_TRUE(patience.waits_when_full(kNow + kReads)) << "it has been full since now";
}

TEST(RingPatience, SenderThatComesBackLateDoesNotWait) {
  RingPatience patience;
  EXPECT_TRUE(patience.waits_when_full(kNow));
  const Time back = kNow + kReads;
  patience.fitted(back);
  EXPECT_FALSE(patience.waits_when_full(back + RingPatience::kVisit - kTick));
}

TEST(RingPatience, SenderThatStaysWaitsAgain) {
  RingPatience patience;
  EXPECT_TRUE(patience.waits_when_full(kNow));
  const Time back = kNow + kReads;
  patience.fitted(back);
  EXPECT_TRUE(patience.waits_when_full(back + RingPatience::kVisit));
}

}  // namespace
}  // namespace uet::nic
