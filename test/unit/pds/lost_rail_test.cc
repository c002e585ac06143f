// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PDS-227: the NIC has lost a rail. Packets that left by it leave again at once, ACKs are repeated,
// and neither the window nor a retry count knows of it.
#include "pds/lost_rail.h"

#include "pds/pdc.h"
#include "pds/retransmit.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

constexpr std::uint8_t kRail = 0;  // all packets of the bench take it
constexpr std::uint8_t kOther = 1;

class LostRailTest : public Bench {
 protected:
  std::vector<Sent> lose(std::uint8_t rail) {
    node->manager->on_lost_rail({peer, rail}, now);
    return turn();
  }
  std::vector<std::uint32_t> again(const std::vector<Sent>& sent) { return psns(requests(sent)); }
};

using Psns = std::vector<std::uint32_t>;

TEST_F(LostRailTest, Pds227_WhatLeftByItLeavesAgainAtOnce) {
  outstanding(4);
  receive(ack(70001, 70003));  // 70003 is reported, 70001 acknowledged
  turn();
  const auto sent = lose(kRail);
  EXPECT_EQ(again(sent), (Psns{70002, 70004}));
  for (const wire::RequestHeader& header : requests(sent)) {
    EXPECT_TRUE(header.retx);
    EXPECT_TRUE(header.ar) << "their ACKs say what else has arrived";
  }
  EXPECT_EQ(counters().lost_rail_retransmissions, 2U);
  EXPECT_EQ(counters().rto_retransmissions, 0U);
}

TEST_F(LostRailTest, Pds227_OtherRail_PeerIsAskedForAcks) {
  outstanding(4);
  const auto sent = lose(kOther);
  EXPECT_TRUE(again(sent).empty());
  const auto asked = controls(sent);
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].ctl_type, wire::CpType::AckRequest);
  EXPECT_EQ(asked[0].psn, Psn{70004});
}

TEST_F(LostRailTest, Pds227_AnotherPeersRail_ChangesNothing) {
  outstanding(4);
  node->manager->on_lost_rail({address_of(3), kRail}, now);
  EXPECT_TRUE(turn().empty());
  node->manager->on_lost_rail({{}, kRail}, now);
  EXPECT_EQ(again(turn()).size(), 4U) << "no peer is named: it is lost to all";
}

// A process of this host: its packets have gone through memory.
TEST_F(LostRailTest, Pds227_ThroughARing_IsNotLost) {
  node->way = {5, 0};
  outstanding(4);
  EXPECT_TRUE(again(lose(kRail)).empty());
}

// A packet that waits for a turn, or until a refusal's time is over, has not left by it.
TEST_F(LostRailTest, Pds227_WhatWaitsLeavesOnce) {
  outstanding(2);
  receive(nack(NackCode::NoResource, 70001));
  turn();
  EXPECT_EQ(again(lose(kRail)), (Psns{70002}));
  node->manager->on_lost_rail({peer, kRail}, now);
  node->manager->on_lost_rail({peer, kRail}, now);
  EXPECT_EQ(again(turn()), (Psns{70002}));
}

TEST_F(LostRailTest, Pds227_NoCongestion_WindowStays) {
  cms::Parameters cms = open_window();
  cms.algorithm = cms::Algorithm::Nscc;
  build(test_parameters(), cms);
  outstanding(4);
  const auto& ccc = *node->manager->find(pdc)->ccc().ccc;
  const auto window = ccc.window_bytes();
  const auto flight = ccc.inflight_bytes();
  ASSERT_GT(flight, 0);
  EXPECT_EQ(again(lose(kRail)).size(), 4U);
  EXPECT_EQ(ccc.window_bytes(), window);
  EXPECT_EQ(ccc.inflight_bytes(), flight) << "each packet counts once";
  receive(ack(70004, 70004));
  turn();
  EXPECT_EQ(ccc.inflight_bytes(), 0);
}

// As PDS-121 counts transmissions that a living peer has left unanswered: these are not its fault.
TEST_F(LostRailTest, Pds227_SpendsNoRetry) {
  TestMessage& message = outstanding(1);
  const std::uint32_t more =
      2 * (kQuickRetransmissions + test_parameters().max_rto_retransmissions);
  for (std::uint32_t i = 0; i < more; ++i) {
    now += microseconds(100);
    receive(ack(70000, 70000));  // the peer lives
    EXPECT_EQ(again(lose(kRail)), (Psns{70001})) << i;
  }
  EXPECT_TRUE(message.errors.empty());
  receive(ack(70001, 70001));
  EXPECT_TRUE(Node::answered_once(message));
}

TEST_F(LostRailTest, Pds227_ArrivedAfterAll_IsAnsweredOnce) {
  TestMessage& message = outstanding(3);
  lose(kRail);
  receive(ack(70003, 70003));
  receive(ack(70003, 70003));
  EXPECT_TRUE(turn().empty());
  EXPECT_TRUE(Node::answered_once(message));
}

// ---- the destination ----------------------------------------------------------------------------

TEST_F(LostRailTest, Pds227_AcksAreRepeated) {
  accept(333);
  receive(request(334));
  receive(request(336));
  turn();
  const auto sent = acks(lose(kOther));
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].cack_psn, Psn{334});
  EXPECT_EQ(sent[0].sack_bitmap, 0b10U);
}

TEST_F(LostRailTest, Pds227_StoredResponses_EachAgain) {
  accept(333);
  node->client.respond = [](const Delivered&) { return guaranteed_response(); };
  receive(request(334));
  receive(request(335));
  turn();
  const auto sent = acks(lose(kOther));
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_EQ(sent[0].ack_psn(), Psn{334});
  EXPECT_EQ(sent[1].ack_psn(), Psn{335});
  EXPECT_EQ(sent[2].ack_psn(), Psn{333});
}

// Its source has asked by a time-out since.
TEST_F(LostRailTest, Pds227_NothingCameForAnRto_NoAck) {
  accept(333);
  turn();
  now += test_parameters().rto_init + milliseconds(1);
  turn();
  EXPECT_TRUE(acks(lose(kRail)).empty());
}

// All ACKs of a new PDC may be lost with the rail. Its source has proved nothing, so that the
// address may be another host's, which must not get more than one short packet.
TEST_F(LostRailTest, Pds227_UnprovedPeer_GetsOneShortAck) {
  node->client.respond = [](const Delivered&) { return guaranteed_response(); };
  receive(request(333, true));
  receive(request(334, true));
  turn();
  const auto sent = lose(kRail);
  ASSERT_EQ(acks(sent).size(), 1U);
  EXPECT_EQ(acks(sent)[0].cack_psn, acks(sent)[0].ack_psn());
  EXPECT_EQ(sent.size(), 1U);
}

}  // namespace
}  // namespace uet::pds::testing
