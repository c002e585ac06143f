// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What PDS does for congestion management: trimmed packets (CMS section 6), entropy values of
// answers (CMS-402), refusals that are no congestion (CMS-311), credit after a trim (CMS-224).
#include "uet/pds/pdc.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

class CongestionRules : public Bench {
 protected:
  static cms::Parameters nscc() {
    cms::Parameters cms;
    cms.mtu_bytes = 1024 + 128;
    cms.base_rtt = microseconds(100);
    return cms;
  }
  std::uint64_t window() { return node->manager->find(pdc)->ccc().ccc->window_bytes(); }
};

TEST_F(CongestionRules, Cms402_AnAckTakesTheEntropyOfItsPacket) {
  accept(333);
  turn();
  for (const std::uint16_t entropy : {50123, 61000}) {
    rx_entropy = entropy;
    wire::RequestHeader next = request(334U + (entropy == 61000 ? 1 : 0));
    next.ar = true;
    receive(next);
    const auto sent = turn();
    ASSERT_EQ(acks(sent).size(), 1U);
    EXPECT_EQ(sent[0].entropy, entropy);
  }
}

TEST_F(CongestionRules, Cms503_ATrimmedPacketIsRefusedAtOnceAlongItsPath) {
  accept(333);
  turn();
  rx_entropy = 50123;
  rx_ecn = Ecn::Ce;
  rx_trimmed = true;
  receive(request(334));
  receive(retransmission(335));
  const auto sent = turn();
  ASSERT_EQ(nacks(sent).size(), 2U);  // no coalescing
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(nacks(sent)[i].nack_code, NackCode::Trimmed);
    EXPECT_TRUE(nacks(sent)[i].m);
    EXPECT_EQ(nacks(sent)[i].retx, i == 1);
  }
  for (const Sent& packet : sent) EXPECT_EQ(packet.entropy, 50123);
}

TEST_F(CongestionRules, Cms506_ATrimmedAckIsDroppedWithoutANack) {
  open();
  TestMessage& message = send(1);
  turn();
  rx_trimmed = true;
  EXPECT_TRUE(answer_to(ack(70001, 70001)).empty());
  EXPECT_EQ(message.responses, 0U);
  EXPECT_EQ(counters().trimmed_received, 1U);
}

TEST_F(CongestionRules, Cms131_Cms311_ARefusalForWantOfMemoryIsNoCongestion) {
  build(test_parameters(), nscc());
  open();
  send(4, DeliveryMode::Rud, 1024);
  turn();
  const std::uint64_t before = window();
  receive(nack(NackCode::NoPktBuffer, 70001));
  EXPECT_EQ(window(), before);
}

// CMS-504: the packet follows at once; the window has become smaller by it (CMS-130).
TEST_F(CongestionRules, Cms509_ATrimmedNackIsHonouredWhereTrimmingIsNotExpected) {
  build(test_parameters(), nscc());
  ASSERT_FALSE(nscc().trimming);
  open();
  send(4, DeliveryMode::Rud, 1024);
  turn();
  const std::uint64_t before = window();
  EXPECT_EQ(psns(requests(answer_to(nack(NackCode::Trimmed, 70002)))),
            (std::vector<std::uint32_t>{70002}));
  EXPECT_LT(window(), before);
}

TEST_F(CongestionRules, Cms224_Cms505_ATrimTakesNoCreditBackAndItsTargetCounts) {
  cms::Parameters cms = nscc();
  cms.algorithm = cms::Algorithm::Rccc;
  build(test_parameters(), cms);
  const auto asking = [&](std::uint32_t psn, std::uint32_t target) {
    wire::RequestHeader header = request(psn, psn == 333);
    header.type = wire::PdsType::RudCcReq;
    header.ccc_id = 5;
    header.credit_target = target;
    return header;
  };
  peer_start = 333;
  receive(asking(333, 10));
  pdc = node->client.delivered.back().pdc;
  EXPECT_EQ(acks(turn()).at(0).credit, 10U);
  rx_trimmed = true;
  receive(asking(334, 10));
  EXPECT_TRUE(controls(turn()).empty()) << "what was granted stays granted, and is no more";
  after(microseconds(10));
  receive(asking(335, 15));
  const auto granted = controls(after(microseconds(10)));
  ASSERT_EQ(granted.size(), 1U);
  EXPECT_EQ(granted[0].ctl_type, wire::CpType::Credit);
  EXPECT_EQ(granted[0].payload, 15U);
}

}  // namespace
}  // namespace uet::pds::testing
