// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Only what differs is listed, with the time between the two updates.
#include "live_view/change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/view/view_harness.h"

namespace uet::view {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

TEST(Change, SameMomentHasNoDifference) {
  const Change change = change_between(make_domain(), make_domain());
  EXPECT_EQ(change.seconds, 0);
  EXPECT_THAT(change.counters, IsEmpty());
  EXPECT_THAT(change.peers, IsEmpty());
}

TEST(Change, ListsWhatDiffers) {
  const Domain before = make_domain();
  Domain now = before;
  now.monotonic_ns += 500'000'000;
  now.counters[0].value = 107;
  now.counters[2].value = 8'000;
  value_of(now.peers[0], "bytes_sent") = 2'500'001;
  const Change change = change_between(before, now);
  EXPECT_DOUBLE_EQ(change.seconds, 0.5);
  ASSERT_THAT(change.counters, SizeIs(2));
  EXPECT_EQ(change.counters[0].name, "pds_acks_sent");
  EXPECT_EQ(change.counters[0].change(), 100);
  EXPECT_FALSE(change.counters[0].gauge);
  EXPECT_EQ(change.counters[1].change(), -1'000);
  EXPECT_TRUE(change.counters[1].gauge);
  ASSERT_THAT(change.peers, SizeIs(1));
  EXPECT_EQ(change.peers[0].name, "10.0.0.2:4793");
  ASSERT_THAT(change.peers[0].numbers, SizeIs(1));
  EXPECT_EQ(change.peers[0].numbers[0].change(), 1);
}

TEST(Change, NewPeerAndNewCounterWereZero) {
  Domain before = make_domain();
  before.peers.clear();
  before.counters.erase(before.counters.begin());
  const Change change = change_between(before, make_domain());
  ASSERT_THAT(change.counters, SizeIs(1));
  EXPECT_EQ(change.counters[0].change(), 7);
  ASSERT_THAT(change.peers, SizeIs(1));
  EXPECT_THAT(change.peers[0].numbers, SizeIs(2));
}

}  // namespace
}  // namespace uet::view
