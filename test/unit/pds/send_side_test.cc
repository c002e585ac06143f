// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Opening with SYN, and the CLEAR that is owed.
#include "pds/send_side.h"

#include <set>

#include "pds/pdc.h"
#include "pds/retransmit.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

using wire::AckRequestCode;
using wire::CpType;

class SendSideTest : public Bench {
 protected:
  void with_mpr(std::uint8_t mpr) {
    Parameters parameters = test_parameters();
    parameters.default_mpr = mpr;
    build(parameters);
  }
  // Requests of all that the node sends now, retransmissions apart.
  std::size_t sends_now() { return requests(turn()).size(); }
};

// ---- opening ------------------------------------------------------------------------------------

// With a window larger than 12 bits of psn_offset only PDS-52 is in the way.
TEST_F(SendSideTest, Pds52_AtMost4096PsnsBeforeEstablishment) {
  with_mpr(64);
  send(5000);
  const auto first = requests(turn());
  ASSERT_EQ(first.size(), 4096U);
  EXPECT_EQ(first.back().psn_offset, 4095);
  EXPECT_EQ(sends_now(), 0U);
}

TEST_F(SendSideTest, Pds52_RestFollowsOnceEstablished) {
  with_mpr(32);
  TestMessage& message = send(4100);
  turn();
  pdc = message.pdc;
  wire::AckHeader first = ack(70000, 70000);
  first.mpr = 32;
  const auto rest = requests(answer_to(first));
  ASSERT_EQ(psns(rest), (std::vector<std::uint32_t>{74096}));
  EXPECT_FALSE(rest[0].syn);
}

TEST_F(SendSideTest, Pds55_NackOfAnExistingPdcTellsTheTargetsId) {
  TestMessage& message = send(1);
  turn();
  pdc = message.pdc;
  const auto again = requests(answer_to(nack(NackCode::RcvrInferLoss, 70000)));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_FALSE(again[0].syn);
  EXPECT_EQ(again[0].dpdcid, kPeerPdc);
}

TEST_F(SendSideTest, Pds55_NackWithoutPdcLeavesSynSet) {
  TestMessage& message = send(1);
  turn();
  pdc = message.pdc;
  wire::NackHeader refused = nack(NackCode::NoPdcAvail, 70000);
  refused.spdcid = {};
  receive(refused);
  const auto again = requests(after(milliseconds(1) + TimerWheel::kTick));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_TRUE(again[0].syn);
  EXPECT_TRUE(again[0].retx);
}

// ---- CLEAR --------------------------------------------------------------------------------------

TEST_F(SendSideTest, Pds115_Pds116_NothingElseLeaves_ClearIsCommand) {
  open();
  send(1);
  turn();
  wire::AckHeader held = ack(70000, 70001);
  held.req = AckRequestCode::Clear;
  EXPECT_TRUE(answer_to(held).empty());
  const auto clears = controls(after_clear_time());
  ASSERT_EQ(clears.size(), 1U);
  EXPECT_EQ(clears[0].ctl_type, CpType::Clear);
  EXPECT_EQ(clears[0].payload, 70001U);
  EXPECT_EQ(clears[0].psn, Psn{0});
  EXPECT_FALSE(clears[0].ar);
  EXPECT_EQ(node->packets.in_use(), 0U);  // not tracked
  EXPECT_TRUE(turn().empty());
  send(1);
  EXPECT_EQ(requests(turn()).at(0).psn, Psn{70002});  // no PSN was consumed
}

TEST_F(SendSideTest, Pds115_OwedClearRidesInTheNextRequest) {
  open();
  send(1);
  turn();
  wire::AckHeader held = ack(70000, 70001);
  held.req = AckRequestCode::Clear;
  EXPECT_TRUE(answer_to(held).empty());
  send(1);
  const auto sent = turn();
  EXPECT_TRUE(controls(sent).empty());
  EXPECT_EQ(requests(sent).at(0).clear_psn(), Psn{70001});
  EXPECT_TRUE(after_clear_time().empty());  // it has been said
}

// CLEAR was asked for while an older packet was missing: it is owed until CLEAR_PSN gets there.
TEST_F(SendSideTest, Pds115_GapCloses_HeldBackClearFollows) {
  open();
  send(2);
  turn();
  wire::AckHeader held = ack(70000, 70002);
  held.req = AckRequestCode::Clear;
  EXPECT_TRUE(answer_to(held).empty());
  EXPECT_EQ(requests(after_clear_time()).at(0).clear_psn(), Psn{70000});  // taken for lost
  EXPECT_TRUE(answer_to(ack(70001, 70001)).empty());
  const auto clears = controls(after_clear_time());
  ASSERT_EQ(clears.size(), 1U);
  EXPECT_EQ(clears[0].ctl_type, CpType::Clear);
  EXPECT_EQ(clears[0].payload, 70002U);
  EXPECT_TRUE(turn().empty());
}

TEST_F(SendSideTest, Pds117_ClearRequestIsAnswered) {
  open();
  const auto sent = answer_to(control(CpType::ClearRequest, 0));
  ASSERT_EQ(controls(sent).size(), 1U);
  EXPECT_EQ(controls(sent)[0].ctl_type, CpType::Clear);
  EXPECT_EQ(controls(sent)[0].payload, 70000U);
}

}  // namespace
}  // namespace uet::pds::testing
