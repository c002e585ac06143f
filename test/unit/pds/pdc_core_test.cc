// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pds/pdc_core.h"

#include <gtest/gtest.h>

#include "pds/pdc.h"
#include "pds_harness.h"

namespace uet::pds::testing {
namespace {

class PdcCoreTest : public Bench {
 protected:
  // A target PDC whose peer has only sent its SYN.
  PdcCore& unproved() {
    receive(request(333, true));
    const auto sent = turn();
    PdcCore* core = node->manager->find(acks(sent).at(0).spdcid);
    EXPECT_NE(core, nullptr);
    return *core;
  }
};

TEST_F(PdcCoreTest, TimerHoldsTheEarliestDeadline) {
  PdcCore& core = open();
  const Time idle = core.deadline_of(PdcCore::kIdle);
  core.set_deadline(PdcCore::kClose, now + microseconds(100));
  EXPECT_EQ(core.deadline(), now + microseconds(100));
  core.set_deadline(PdcCore::kClose, kNever);
  EXPECT_LE(core.deadline(), idle);
  EXPECT_GT(core.deadline(), now + microseconds(100));
}

TEST_F(PdcCoreTest, UnprovedPeerGetsThreeTimesWhatItSends) {
  PdcCore& core = unproved();
  ASSERT_FALSE(core.proved());
  core.charge(1000000);
  EXPECT_FALSE(core.may_send(64));
  core.allow_answers(400000);  // 1,200,000, less what was sent before
  EXPECT_TRUE(core.may_send(64));
  core.charge(201000);
  EXPECT_FALSE(core.may_send(64));
}

TEST_F(PdcCoreTest, UnprovedPeersAreChargedToOneHost) {
  PdcCore& core = unproved();
  EXPECT_EQ(core.host(), Shares::kUnknownHost);
  core.note_proved();
  EXPECT_EQ(core.host(), host_hash(peer.ip));
}

TEST_F(PdcCoreTest, Pds172_WantedCloseGetsATurn) {
  Pdc& core = open();
  turn();
  ASSERT_FALSE(core.ListNode<ReadyTag>::linked());
  core.want_close();
  EXPECT_TRUE(core.ListNode<ReadyTag>::linked());
}

}  // namespace
}  // namespace uet::pds::testing
