// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What becomes of a PDC that fails, and of what it had to send.
#include "pds/pdc.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

using wire::CpType;

class PdcFailure : public Bench {};

TEST_F(PdcFailure, Pds20_Pds134_Failure_ReportsEachUnackedPacketOnce) {
  TestMessage& message = outstanding(10);
  receive(ack(70003, 70003));
  wire::AckHeader reported = ack(70003, 70005);
  reported.sack_bitmap = 0b1010;  // from 70004 on
  receive(reported);
  node->manager->abort(pdc, now);
  turn();
  EXPECT_EQ(message.responses, 4U);
  EXPECT_EQ(message.errors, std::vector(6, PdsError::LocalClose));
  EXPECT_TRUE(Node::answered_once(message));
  EXPECT_EQ(node->packets.in_use(), 0U);
}

TEST_F(PdcFailure, Pds134_OtherPdcsAreNotTouched) {
  TestMessage& failing = outstanding(2);
  TestMessage& other = send(2, DeliveryMode::Rod);
  turn();
  node->manager->abort(pdc, now);
  turn();
  EXPECT_EQ(failing.errors.size(), 2U);
  EXPECT_TRUE(other.errors.empty());
  EXPECT_EQ(node->manager->open_pdcs(), 1U);
}

// The peer may live and hear this, though none of its answers comes through.
TEST_F(PdcFailure, Pds135_APdcThatRanOutOfRetriesSaysClose) {
  TestMessage& message = outstanding(2);
  std::vector<Sent> last;
  while (message.errors.empty()) last = after(milliseconds(20));
  ASSERT_EQ(controls(last).size(), 1U);
  EXPECT_EQ(controls(last)[0].ctl_type, CpType::Close);
  EXPECT_EQ(controls(last)[0].psn, Psn{70003});
  EXPECT_TRUE(after(seconds(10)).empty());  // once
}

TEST_F(PdcFailure, Pds136_LateAcksOfAFailedPdcAreSwallowed) {
  outstanding(2);
  node->manager->abort(pdc, now);
  turn();
  peer_start = 70000;
  EXPECT_TRUE(answer_to(request(70000)).empty());  // and so are late data
  EXPECT_TRUE(answer_to(request(70010)).empty());
  EXPECT_TRUE(answer_to(control(CpType::CloseRequest, 70001)).empty());
  const std::uint64_t invalid = counters().acks_invalid;
  EXPECT_TRUE(answer_to(ack(70002, 70002)).empty());
  EXPECT_TRUE(answer_to(nack(NackCode::NoResource, 70002)).empty());
  EXPECT_EQ(counters().acks_invalid, invalid + 1);
}

TEST_F(PdcFailure, Pds139_QueuedRequestsFail_NextTriesFreshPdc) {
  TestMessage& message = outstanding(1100 - 76);  // the whole window
  TestMessage& queued = send(1);
  turn();
  for (int i = 0; i < 20 && message.errors.empty(); ++i) after(seconds(1));
  EXPECT_EQ(queued.failed, PdsError::RtoExhausted);
  EXPECT_EQ(queued.made, 0U);
  TestMessage& next = send(1);
  const auto sent = requests(turn());
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_TRUE(sent[0].syn);
  EXPECT_NE(next.pdc, pdc);
}

// SES may send while PDS reports a failure to it.
TEST_F(PdcFailure, ClientMaySendWhileAFailureIsReported) {
  outstanding(3);
  TestMessage* again = nullptr;
  node->client.on_error = [&](TestMessage&) {
    if (again == nullptr) again = &send(1);
  };
  node->manager->abort(pdc, now);
  const auto sent = requests(turn());
  ASSERT_NE(again, nullptr);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_TRUE(sent[0].syn);
  EXPECT_NE(again->pdc, pdc);
}

TEST_F(PdcFailure, ClientMayAbortThePdcWhileAnAnswerIsReported) {
  TestMessage& message = outstanding(10);
  node->client.on_answer = [&](const Answer& answer) {
    if (answer.psn == Psn{70003}) node->manager->abort(pdc, now);
  };
  receive(ack(70010, 70010));
  turn();
  EXPECT_TRUE(Node::answered_once(message));
  EXPECT_EQ(node->packets.in_use(), 0U);
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
}

}  // namespace
}  // namespace uet::pds::testing
