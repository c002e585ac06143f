// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What SES asks of PDS, passed on to PDCs.
#include "pds/manager.h"

#include <vector>

#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

class ManagerTest : public Bench {};

// A class that names a DSCP gives it to data, and to data only.
TEST_F(ManagerTest, Ses130_TheClassChoosesTheDscpOfData) {
  Destination named = to_peer();
  named.traffic_class = class_of_dscp(18);
  node->send(named, 1, now);
  const auto sent = turn();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].dscp, 18);
  EXPECT_EQ(dscp_of_class(class_of_dscp(0), 63), 0);
  EXPECT_EQ(dscp_of_class(0, 63), 63);
  for (const DeliveryMode mode : {DeliveryMode::Rudi, DeliveryMode::Uud}) {
    named.mode = mode;
    node->send(named, 1, now);
    const auto other = turn();
    ASSERT_EQ(other.size(), 1U);
    EXPECT_EQ(other[0].dscp, 18);
  }
}

// Another traffic class is how a short message gets past a long one.
TEST_F(ManagerTest, Pds6_Pds9_SeveralPdcsToOnePeerTakeTurns) {
  Destination other = to_peer();
  other.traffic_class = 1;
  TestMessage& long_one = send(900);
  TestMessage& short_one = node->send(other, 2, now);
  node->manager->pump(now);  // one pass
  EXPECT_EQ(short_one.made, 2U);
  EXPECT_LT(long_one.made, 900U);
  turn();
  EXPECT_EQ(long_one.made, 900U);
}

TEST_F(ManagerTest, SendOnAnUnknownPdcIsNotFound) {
  TestMessage& message = node->message(1);
  EXPECT_EQ(node->manager->send_on(PdcId{77}, message, now).error(), Error::NotFound);
  EXPECT_EQ(node->manager->send_on(PdcId{0}, message, now).error(), Error::NotFound);
}

TEST_F(ManagerTest, CancelTakesAMessageOutOfTheBacklog) {
  open();
  TestMessage& first = node->message(1);
  first.blocked = true;
  ASSERT_TRUE(node->manager->send(first, to_peer(), now).ok());
  TestMessage& second = send(1);
  EXPECT_TRUE(node->manager->cancel(first));
  EXPECT_FALSE(node->manager->cancel(first));
  EXPECT_EQ(requests(turn()).size(), 1U);
  EXPECT_EQ(second.made, 1U);
  EXPECT_EQ(first.made, 0U);
  EXPECT_FALSE(node->manager->cancel(second));
}

TEST_F(ManagerTest, QuiescentMeansNothingOutstanding) {
  EXPECT_TRUE(node->manager->quiescent());
  open();
  EXPECT_TRUE(node->manager->quiescent());
  send(1);
  EXPECT_FALSE(node->manager->quiescent());
  turn();
  EXPECT_FALSE(node->manager->quiescent());
  receive(ack(70001, 70001));
  EXPECT_TRUE(node->manager->quiescent());
  node->manager->lock(pdc);
  EXPECT_FALSE(node->manager->quiescent());
  node->manager->unlock(pdc);
}

TEST_F(ManagerTest, DestructionGivesEverythingBack) {
  open();
  send(50);
  turn();
  send(5);
  TestMessage& queued = node->messages.back();
  node->manager.reset();
  EXPECT_FALSE(queued.linked());
  node->drain();
  EXPECT_EQ(node->packets.in_use(), 0U);
}

}  // namespace
}  // namespace uet::pds::testing
