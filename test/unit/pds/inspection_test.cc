// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What is said of a PDC that waits.
#include "pds/inspection.h"

#include "pds/pdc.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

class InspectionTest : public Bench {
 protected:
  std::vector<WaitingPdc> waiting() const {
    std::vector<WaitingPdc> out;
    node->manager->inspect().list_waiting(out);
    return out;
  }
};

TEST_F(InspectionTest, Idle_IsNotListed) {
  open();
  EXPECT_TRUE(waiting().empty());
}

TEST_F(InspectionTest, Outstanding_IsListedWithItsOldestPacket) {
  const Time sent = now;
  outstanding(3).id_in_trace = 17;
  now += milliseconds(1);
  const auto all = waiting();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].id, pdc);
  EXPECT_EQ(all[0].peer, peer);
  EXPECT_EQ(all[0].state, PdcState::Established);
  EXPECT_FALSE(all[0].target);
  EXPECT_EQ(all[0].packets_outstanding, 3U);
  EXPECT_EQ(all[0].oldest_psn, Psn{70001});
  EXPECT_EQ(all[0].oldest_transmissions, 1);
  EXPECT_EQ(all[0].oldest_message, 17);
  EXPECT_FALSE(all[0].oldest_sacked);
  EXPECT_GE(all[0].oldest_first_sent, sent);
  EXPECT_LE(all[0].oldest_first_sent, now);
  EXPECT_EQ(all[0].wait, trace::Wait::Nothing);
  EXPECT_NE(all[0].peer_heard, Time{});
}

TEST_F(InspectionTest, PacketPool_IsNamedIfDataIsQueued) {
  outstanding(1);
  send(1);
  const WaitingPdc out = waiting_pdc(*node->manager->find(pdc), now);
  EXPECT_EQ(out.messages_queued, 1U);
  EXPECT_EQ(out.wait, trace::Wait::Packets);
  EXPECT_EQ(out.wait_since, now);
  turn();
  EXPECT_EQ(waiting_pdc(*node->manager->find(pdc), now).wait, trace::Wait::Nothing);
}

}  // namespace
}  // namespace uet::pds::testing
