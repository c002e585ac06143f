// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Hosts that take packets up late: what that does to time-outs and to what the peer is told.
#include "pds/answer_time.h"

#include "pds/pdc.h"
#include "pds/retransmit.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

using std::chrono::milliseconds;

TEST(AnswerTime, LimitIsMeanAndFourDeviations) {
  AnswerTime time;
  EXPECT_EQ(time.limit(), Duration::zero());
  time.add(milliseconds(40));
  EXPECT_EQ(time.limit(), milliseconds(120));
  for (int i = 0; i < 100; ++i) time.add(milliseconds(40));
  EXPECT_LT(time.limit(), milliseconds(41));
  EXPECT_GE(time.limit(), milliseconds(40));
  time.add(milliseconds(80));  // mean 45, deviation 10
  EXPECT_NEAR(to_us(time.limit()), 85'000, 200);
}

TEST(Rto, Pds120_SlowAnswersRaiseTheTimeOutAndItsCap) {
  Parameters parameters;
  parameters.rto_init = milliseconds(20);
  parameters.rto_cap = milliseconds(1000);
  EXPECT_EQ(rto(parameters, 0, milliseconds(5)), milliseconds(20));
  EXPECT_EQ(rto(parameters, 0, milliseconds(90)), milliseconds(90));
  EXPECT_EQ(rto(parameters, 2, milliseconds(90)), milliseconds(360));
  EXPECT_EQ(rto(parameters, 9, milliseconds(90)), milliseconds(1000));
  EXPECT_EQ(rto(parameters, 0, milliseconds(1500)), milliseconds(1500));
  EXPECT_EQ(rto(parameters, 1, milliseconds(3000)), milliseconds(3000));
  EXPECT_EQ(rto(parameters, 0, milliseconds(9000)), milliseconds(4000));
}

class SlowPeer : public Bench {
 protected:
  // Each packet is acknowledged 60 ms after it was sent, three RTO_Init_Time.
  void answer_slowly(std::uint32_t packets) {
    open();
    for (std::uint32_t i = 1; i <= packets; ++i) {
      send(1);
      turn();
      after(milliseconds(60));
      receive(ack(70000 + i, 70000 + i));
      turn();
    }
  }
};

TEST_F(SlowPeer, Pds120_SlowAnsweringPeer_NothingSentTwice) {
  answer_slowly(2);
  const std::uint64_t before = counters().rto_retransmissions;
  for (std::uint32_t i = 3; i <= 12; ++i) {
    send(1);
    turn();
    EXPECT_TRUE(requests(after(milliseconds(60))).empty());
    receive(ack(70000 + i, 70000 + i));
  }
  EXPECT_EQ(counters().rto_retransmissions, before);
}

TEST_F(SlowPeer, Pds120_WhatItLosesIsStillFound) {
  answer_slowly(2);
  send(1);
  turn();
  EXPECT_EQ(requests(after(milliseconds(400))).size(), 1U);
}

// CMS-712: the time for which a packet waited unread is not the network's.
TEST_F(SlowPeer, Cms712_ServiceTimeBeginsWhenThePacketCame) {
  accept(333);
  wire::RequestHeader asking = request(334);
  asking.ar = true;
  node->arrived = now - milliseconds(2);
  const auto answers = acks(answer_to(asking));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].service_time, 2'000'000 / 128);
  // After the pass began: as good as no time at all.
  asking = request(335);
  asking.ar = true;
  node->arrived = now + milliseconds(1);
  const auto early = acks(answer_to(asking));
  ASSERT_EQ(early.size(), 1U);
  EXPECT_EQ(early[0].service_time, 1);
}

}  // namespace
}  // namespace uet::pds::testing
