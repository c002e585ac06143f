// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What an ACK does to packets that were sent, and what it says of their paths.
#include "pds/ack_intake.h"

#include <map>
#include <set>

#include "pds/manager.h"
#include "pds/pdc.h"
#include "pds/retransmit.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

using wire::AckRequestCode;
using wire::CpType;

class AckIntakeTest : public Bench {
 protected:
  wire::AckHeader sack(std::uint32_t cack, std::uint32_t ack_psn, std::uint64_t bitmap) const {
    wire::AckHeader header = ack(cack, ack_psn);
    header.sack_bitmap = bitmap;  // from cack + 1 on
    return header;
  }
};

// ---- ACK ----------------------------------------------------------------------------------------

TEST_F(AckIntakeTest, Pds22_Pds87_CackCompletesWithoutExplicitResponse) {
  TestMessage& message = outstanding(5);
  receive(ack(70004, 70004));
  EXPECT_EQ(message.responses, 4U);
  ASSERT_EQ(node->client.answered.size(), 4U);
  // The response of ACK_PSN came explicitly, here as a bare ACK; the others are implied.
  for (const Answer& answer : node->client.answered) EXPECT_EQ(answer.next_hdr, NextHdr::None);
  receive(ack(70005, 70005));
  EXPECT_TRUE(Node::answered_once(message));
  EXPECT_EQ(node->packets.in_use(), 0U);
}

TEST_F(AckIntakeTest, Pds102_Pds109_ExplicitErrorWinsOverWhatCackImplies) {
  outstanding(3);
  wire::AckHeader header = ack(70003, 70002);
  header.next_hdr = NextHdr::Response;
  const std::vector<std::byte> error(12, std::byte{0xEE});
  receive(header, error);
  std::map<std::uint32_t, Answer> by_psn;
  for (const Answer& answer : node->client.answered) by_psn[answer.psn.value] = answer;
  ASSERT_EQ(node->client.answered.size(), 3U);
  EXPECT_EQ(by_psn[70001].next_hdr, NextHdr::None);
  EXPECT_EQ(by_psn[70002].next_hdr, NextHdr::Response);
  EXPECT_EQ(by_psn[70002].bytes, error);
  EXPECT_EQ(by_psn[70003].next_hdr, NextHdr::None);
}

TEST_F(AckIntakeTest, Pds37_AckPsnAndCackAreTwoThings) {
  TestMessage& message = outstanding(3);
  receive(ack(70000, 70002));  // offset +2
  EXPECT_EQ(message.answers, (std::vector<int>{0, 1, 0}));
  receive(ack(70003, 70002));  // offset -1
  EXPECT_EQ(message.answers, (std::vector<int>{1, 1, 1}));
}

TEST_F(AckIntakeTest, Pds108_ResponseIsDeliveredOnce) {
  TestMessage& message = outstanding(3);
  for (int i = 0; i < 3; ++i) receive(ack(70000, 70002));
  EXPECT_EQ(message.answers, (std::vector<int>{0, 1, 0}));
  // Steps 7 to 10 still run for the repeated ACK_PSN.
  receive(ack(70001, 70002));
  EXPECT_EQ(message.answers, (std::vector<int>{1, 1, 0}));
}

TEST_F(AckIntakeTest, Pds108_Step2_ForeignSpdcidIsDropped) {
  TestMessage& message = outstanding(3);
  wire::AckHeader foreign = ack(70003, 70003);
  foreign.spdcid = PdcId{901};
  receive(foreign);
  foreign.spdcid = PdcId{0};
  receive(foreign);
  EXPECT_EQ(message.responses, 0U);
  EXPECT_EQ(counters().acks_invalid, 2U);
}

// Test idea 7 of the reference.
TEST_F(AckIntakeTest, Pds108_Step3_CackBeyondSent_DropsWholeAck) {
  TestMessage& message = outstanding(3);
  wire::AckHeader beyond = ack(70004, 70002);
  beyond.mpr = 1;
  beyond.req = AckRequestCode::Close;
  EXPECT_TRUE(answer_to(beyond).empty());
  EXPECT_EQ(message.responses, 0U);
  EXPECT_EQ(counters().acks_invalid, 1U);
  EXPECT_EQ(node->manager->find(pdc)->state(), PdcState::Established);
}

TEST_F(AckIntakeTest, Pds108_Step3_NonsenseAck_PdcStaysCreating) {
  TestMessage& message = send(1);
  turn();
  pdc = message.pdc;
  receive(ack(70001, 70000));
  receive(ack(69998, 70000));
  EXPECT_EQ(node->manager->find(pdc)->state(), PdcState::Creating);
  EXPECT_EQ(message.responses, 0U);
}

TEST_F(AckIntakeTest, Pds110_AckPsnOutsideTheWindowIsIgnored) {
  TestMessage& message = outstanding(3);
  receive(ack(70000, 70000));  // below: a duplicate
  receive(ack(70000, 70004));  // never sent
  wire::AckHeader absurd = ack(70000, 70000);
  for (const int offset : {INT16_MIN, -1, INT16_MAX}) {
    absurd.ack_psn_offset = static_cast<std::int16_t>(offset);
    absurd.sack_psn_offset = static_cast<std::int16_t>(offset);
    absurd.sack_bitmap = ~0ULL;
    receive(absurd);
  }
  EXPECT_EQ(message.responses, 0U);
  EXPECT_TRUE(turn().empty());
}

TEST_F(AckIntakeTest, OldCackChangesNothing) {
  TestMessage& message = outstanding(10);
  receive(ack(70005, 70005));
  EXPECT_EQ(message.responses, 5U);
  receive(ack(70002, 70002));
  receive(ack(70005U + 0x80000001U, 70005));  // half the circle behind
  EXPECT_EQ(message.responses, 5U);
  receive(ack(70010, 70010));
  EXPECT_TRUE(Node::answered_once(message));
}

// A PDC may live longer than half the circle of PSNs from Start_PSN.
TEST_F(AckIntakeTest, Pds108_AcksAreBelievedFarFromStartPsn) {
  // After 2^31 packets a CACK is below Start_PSN in serial order. It is compared with what was
  // sent: to an established PDC one below Start_PSN is merely old.
  TestMessage& message = outstanding(2);
  receive(ack(69000, 70001));
  EXPECT_EQ(message.answers, (std::vector<int>{1, 0}));
  EXPECT_EQ(counters().acks_invalid, 0U);
}

TEST_F(AckIntakeTest, Pds88_Pds129_ZeroBitsProveNothing) {
  outstanding(5);
  EXPECT_TRUE(answer_to(sack(70000, 70000, 0)).empty());
  EXPECT_EQ(counters().inferred_loss_retransmissions, 0U);
}

TEST_F(AckIntakeTest, Pds89_SackedPacketStaysTracked) {
  TestMessage& message = outstanding(2);
  receive(sack(70000, 70000, 0b11));
  EXPECT_EQ(message.responses, 0U);
  EXPECT_EQ(node->packets.in_use(), 2U);
  send(1);
  EXPECT_EQ(requests(turn()).at(0).clear_psn(), Psn{70000});  // not counted in CLEAR_PSN
  receive(ack(70002, 70002));
  EXPECT_TRUE(Node::answered_once(message));
}

TEST_F(AckIntakeTest, Pds38_SackBitmapMayBeginAnywhere) {
  TestMessage& message = outstanding(4);
  wire::AckHeader header = ack(70000, 70000);
  header.sack_psn_offset = -10;           // from 69990 on
  header.sack_bitmap = (1ULL << 11) - 1;  // up to 70000
  header.sack_bitmap |= 0b1111ULL << 11;  // 70001 .. 70004
  receive(header);
  EXPECT_TRUE(requests(after(milliseconds(20))).empty());  // all are known to have arrived
  EXPECT_EQ(message.responses, 0U);
}

TEST_F(AckIntakeTest, Pds90_TimeOutOfASackedPacketAsksForItsAck) {
  TestMessage& message = outstanding(1);
  receive(sack(70000, 70000, 0b1));
  const auto sent = after(milliseconds(20));
  ASSERT_EQ(sent.size(), 1U);
  ASSERT_TRUE(sent[0].control());
  EXPECT_EQ(sent[0].control()->ctl_type, CpType::AckRequest);
  EXPECT_EQ(sent[0].control()->psn, Psn{70001});
  EXPECT_TRUE(sent[0].control()->ar);
  receive(ack(70001, 70001));
  EXPECT_TRUE(Node::answered_once(message));
}

TEST_F(AckIntakeTest, Pds90_PktNotRcvdBringsTheDataBack) {
  outstanding(1);
  receive(sack(70000, 70000, 0b1));
  after(milliseconds(20));
  EXPECT_EQ(psns(requests(answer_to(nack(NackCode::PktNotRcvd, 70001)))),
            (std::vector<std::uint32_t>{70001}));
}

TEST_F(AckIntakeTest, AckOfAProbeNamesNoPacket) {
  TestMessage& message = outstanding(2);
  wire::AckHeader probe = ack(70000, 70000);
  probe.p = true;
  probe.probe_opaque = 2;  // would be ack_psn 70002
  receive(probe);
  EXPECT_EQ(message.responses, 0U);
}

// ---- paths (CMS-20, CMS-418) --------------------------------------------------------------------

class PdcPaths : public AckIntakeTest {
 protected:
  PdcPaths() {
    cms::Parameters cms = open_window();
    cms.paths = cms::PathPolicy::Mixed;
    cms.path_count = 64;
    build(test_parameters(), cms);
  }
  // The entropy values of the next `count` packets.
  std::vector<std::uint16_t> send_on(std::uint32_t count) {
    send(count);
    std::vector<std::uint16_t> values;
    for (const Sent& sent : turn()) {
      if (sent.request()) values.push_back(sent.entropy);
    }
    return values;
  }
};

TEST_F(PdcPaths, Cms418_UnmarkedAck_ClearsAllNewlyReported) {
  open();
  const auto v = send_on(8);  // 70001 to 70008
  ASSERT_EQ(v.size(), 8U);
  wire::AckHeader header = sack(70002, 70002, 0b10);  // and 70004
  receive(header);
  receive(header);  // reports nothing newly
  const auto next = send_on(4);
  EXPECT_EQ((std::vector<std::uint16_t>{next.begin() + 0, next.begin() + 3}),
            (std::vector<std::uint16_t>{v[1], v[0], v[3]}));
  EXPECT_EQ(std::count(v.begin(), v.end(), next[3]), 0) << "the next of the walk";
}

TEST_F(PdcPaths, Cms114_Cms418_AMarkedAckVouchesForNone) {
  open();
  const auto v = send_on(8);
  wire::AckHeader header = ack(70003, 70003);
  header.ce = true;
  receive(header);
  for (const auto value : send_on(4)) EXPECT_EQ(std::count(v.begin(), v.end(), value), 0);
}

TEST_F(PdcPaths, Cms21_ATrimAtTheLastHopIsNotThePathsFault) {
  open();
  const auto v = send_on(2);
  const auto resent = answer_to(nack(NackCode::TrimmedLastHop, 70001));
  ASSERT_EQ(requests(resent).size(), 1U);
  EXPECT_EQ(resent[0].entropy, v[0]);
  const auto other = answer_to(nack(NackCode::Trimmed, 70002));
  ASSERT_EQ(requests(other).size(), 1U);
  EXPECT_NE(other[0].entropy, v[1]);
}

// A path that works there may swallow every ACK that comes back by it: only one whose own ACK came
// is known to work both ways.
TEST_F(PdcPaths, Cms402_TimeOut_OddRetriesTakePathOfLastAck) {
  open();
  const auto v = send_on(6);          // 70001 to 70006
  receive(sack(70002, 70002, 0b10));  // by the path of 70002; reports 70001 and 70004, too
  const auto timed_out = [&] {
    std::set<std::uint16_t> values;
    while (values.empty()) {
      now = std::max(now, node->manager->next_deadline());
      for (const Sent& sent : turn()) {
        if (sent.request()) values.insert(sent.entropy);
      }
    }
    return values;
  };
  EXPECT_THAT(timed_out(), ::testing::ElementsAre(v[1]));
  now += microseconds(100);
  receive(sack(70002, 70004, 0b10));  // was asked for, by whatever path
  EXPECT_THAT(timed_out(), ::testing::Not(::testing::Contains(v[1])));
  EXPECT_THAT(timed_out(), ::testing::ElementsAre(v[1]));
}

}  // namespace
}  // namespace uet::pds::testing
