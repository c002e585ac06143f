// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pds/window_wait.h"

#include "pds/pdc.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

class WindowWaitTest : public Bench {
 protected:
  WindowWaitTest() : core_(open()) { turn(); }
  bool in_line() const { return core_.ListNode<WaitingForCccTag>::linked(); }

  Pdc& core_;
  WindowWait wait_;
};

TEST_F(WindowWaitTest, CountsTheTimeAtThePeersWindow) {
  wait_.begin_for_peer(now);
  wait_.begin_for_peer(now + microseconds(30));  // it waits already
  wait_.data_left(core_, now + microseconds(50));
  EXPECT_EQ(counters().blocked_by_peer_window_ns, 50'000U);
  wait_.data_left(core_, now + microseconds(90));
  EXPECT_EQ(counters().blocked_by_peer_window_ns, 50'000U);
  EXPECT_EQ(counters().blocked_by_window_ns, 0U);
}

TEST_F(WindowWaitTest, CountsTheTimeAtTheCongestionWindow) {
  wait_.begin_for_ccc(core_, now);
  wait_.begin_for_ccc(core_, now + microseconds(30));
  EXPECT_TRUE(in_line());
  wait_.data_left(core_, now + microseconds(70));
  EXPECT_EQ(counters().blocked_by_window_ns, 70'000U);
  EXPECT_TRUE(in_line());  // until the packet is on its way
  WindowWait::leave_line(core_);
  EXPECT_FALSE(in_line());
}

TEST_F(WindowWaitTest, CancelledDataLeavesTheLine) {
  wait_.nothing_waits(core_, now);  // it was not in line
  wait_.begin_for_ccc(core_, now);
  wait_.nothing_waits(core_, now + microseconds(20));
  EXPECT_FALSE(in_line());
  EXPECT_EQ(counters().blocked_by_window_ns, 20'000U);
}

TEST_F(WindowWaitTest, WokenPdcKeepsItsPlace) {
  wait_.begin_for_ccc(core_, now);
  ASSERT_FALSE(core_.ListNode<ReadyTag>::linked());
  wake_waiters(core_.ccc());
  EXPECT_TRUE(core_.ListNode<ReadyTag>::linked());
  EXPECT_TRUE(in_line());
  wait_.nothing_waits(core_, now);
}

}  // namespace
}  // namespace uet::pds::testing
