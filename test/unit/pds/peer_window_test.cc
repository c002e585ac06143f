// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pds/peer_window.h"

#include <gtest/gtest.h>

namespace uet::pds {
namespace {

constexpr Psn kStart{1000};

TEST(PeerWindow, Pds40_AllowsMpRangeAboveCack) {
  PeerWindow window(kStart, 128);
  EXPECT_TRUE(window.allows(kStart + 127));
  EXPECT_FALSE(window.allows(kStart + 128));
  EXPECT_TRUE(window.move_cack(kStart));
  EXPECT_FALSE(window.move_cack(kStart));
  EXPECT_TRUE(window.allows(kStart + 128));
}

TEST(PeerWindow, Pds41_OlderAckIsNotNewest) {
  PeerWindow window(kStart, 128);
  EXPECT_TRUE(window.is_newest(kStart + 5));
  EXPECT_FALSE(window.is_newest(kStart + 4));
  EXPECT_TRUE(window.is_newest(kStart + 5));
}

TEST(PeerWindow, Pds220_HalvesOnlyAnAssumedRange) {
  PeerWindow window(kStart, 512);
  EXPECT_FALSE(window.halve(kStart + 600, 128)) << "it was outside anyway";
  EXPECT_TRUE(window.halve(kStart + 400, 128));
  EXPECT_EQ(window.range(), 256);
  EXPECT_TRUE(window.halve(kStart + 200, 200));
  EXPECT_EQ(window.range(), 200);
  EXPECT_TRUE(window.set_range(1024));
  EXPECT_FALSE(window.set_range(1024)) << "said before";
  EXPECT_FALSE(window.halve(kStart + 400, 128));
}

TEST(PeerWindow, Pds77_RebaseMovesTheWindow) {
  PeerWindow window(kStart, 128);
  window.is_newest(kStart + 50);
  window.rebase(kStart - 500);
  EXPECT_EQ(window.cack(), kStart - 501);
  EXPECT_TRUE(window.is_newest(kStart - 501));
}

TEST(PeerWindow, ClosedWindowIsAskedForEverMoreRarely) {
  Parameters parameters;
  parameters.max_rto_retransmissions = 2;
  PeerWindow window(kStart, 128);
  const Time now{std::chrono::seconds(1)};
  EXPECT_FALSE(window.ack_heard());
  window.asked(parameters, now);
  EXPECT_EQ(window.ask_due(), now + rto(parameters, 1));
  EXPECT_FALSE(window.exhausted(parameters));
  window.asked(parameters, now);
  EXPECT_EQ(window.ask_due(), now + rto(parameters, 2));
  EXPECT_TRUE(window.exhausted(parameters));
  window.heard();
  EXPECT_FALSE(window.exhausted(parameters));
  EXPECT_TRUE(window.ack_heard());
  EXPECT_FALSE(window.ack_heard());
}

}  // namespace
}  // namespace uet::pds
