// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The return direction of a PDC (PDS section 20): the target as a source, in PSNs, a window and
// time-outs of its own, and the initiator that acknowledges it.
#include "pds/pdc.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

class ReturnDirection : public Bench {
 protected:
  // Data of `packets` packets for the initiator of the PDC.
  TestMessage& answer(std::uint32_t packets) {
    TestMessage& data = node->message(packets);
    EXPECT_TRUE(node->manager->send_on(pdc, data, now).ok());
    return data;
  }
};

TEST_F(ReturnDirection, Pds32_Pds33_BothDirectionsBeginAtStartPsn) {
  accept(333);
  answer(2);
  const auto headers = requests(turn());
  ASSERT_EQ(psns(headers), (std::vector<std::uint32_t>{333, 334}));
  EXPECT_EQ(headers[0].clear_psn(), Psn{332});
  // The directions know nothing of each other: forward PSNs go on as before.
  receive(request(334));
  EXPECT_EQ(delivered_psns(), (std::vector<std::uint32_t>{333, 334}));
}

TEST_F(ReturnDirection, Pds200_ReturnPacketsCarryNoSyn) {
  accept(333);
  answer(1);
  const auto header = requests(turn()).at(0);
  EXPECT_FALSE(header.syn);
  EXPECT_EQ(header.dpdcid, kPeerPdc);
}

TEST_F(ReturnDirection, Pds196_ReturnPacketsHaveTheirOwnTimeOut) {
  accept(333);
  TestMessage& data = answer(1);
  turn();
  const auto again = requests(after(milliseconds(20)));
  ASSERT_EQ(psns(again), (std::vector<std::uint32_t>{333}));
  EXPECT_TRUE(again[0].retx);
  receive(ack(333, 333));
  EXPECT_TRUE(Node::answered_once(data));
}

TEST_F(ReturnDirection, Pds199_ReturnDataMayOvertakeTheFirstAck) {
  TestMessage& message = send(1);
  turn();
  pdc = message.pdc;
  peer_start = 70000;
  receive(request(70000));
  EXPECT_EQ(delivered_psns(), (std::vector<std::uint32_t>{70000}));
  EXPECT_EQ(node->manager->find(pdc)->peer_id(), kPeerPdc);
  receive(ack(70000, 70000));
  EXPECT_TRUE(Node::answered_once(message));
}

TEST_F(ReturnDirection, Pds197_AckOfReturnDataAsksNoClear) {
  open();
  peer_start = 70000;
  wire::RequestHeader asking = request(70000);
  asking.ar = true;
  const auto answers = acks(answer_to(asking));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].req, wire::AckRequestCode::None);
  EXPECT_EQ(answers[0].cack_psn, Psn{70000});
}

// The window is the one that the initiator's ACKs tell, whatever window it has been given.
TEST_F(ReturnDirection, Pds196_TheInitiatorsMprIsTheWindow) {
  accept(333);
  answer(300);
  EXPECT_EQ(requests(turn()).size(), 300U);
  answer(300);
  wire::AckHeader narrow = ack(333 + 299, 333 + 299);
  narrow.mpr = 1;
  EXPECT_EQ(requests(answer_to(narrow)).size(), 128U);
}

// A reply that is sent in the same turn delays no ACK (docs/decisions/024).
TEST_F(ReturnDirection, Turn_AckAndReply_AckLeavesFirst) {
  accept(333);
  wire::RequestHeader asking = request(334);
  asking.ar = true;
  receive(asking);
  answer(1);
  const std::vector<Sent> sent = turn();
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_TRUE(sent[0].ack().has_value());
  EXPECT_TRUE(sent[1].request().has_value());
}

// PDS-34 to PDS-36 of the return direction, whatever the requests of the other one clear.
TEST_F(ReturnDirection, Pds196_ItHasAClearPsnOfItsOwn) {
  accept(333);
  TestMessage& first = answer(3);
  EXPECT_EQ(requests(turn()).at(2).clear_psn(), Psn{332});
  wire::RequestHeader forward = request(334);
  forward.clear_psn_offset = -1;
  receive(forward);
  receive(ack(334, 334));
  answer(1);
  const auto next = requests(turn());
  ASSERT_EQ(psns(next), (std::vector<std::uint32_t>{336}));
  EXPECT_EQ(next[0].clear_psn(), Psn{334});
  receive(ack(336, 336));
  EXPECT_TRUE(Node::answered_once(first));
}

// PDS-3, PDS-2: the data are requests, which carry what SES wrote and wait for congestion control.
// CMS-3: the target has a congestion context of its own.
TEST_F(ReturnDirection, Pds3_ReadDataWaitForTheCongestionWindow) {
  cms::Parameters narrow = open_window();
  narrow.fixed_window_bytes = narrow.mtu_bytes = 4096;
  build(test_parameters(), narrow);
  accept(333);
  node->client.next_hdr = NextHdr::ResponseData;
  answer(3);
  const auto sent = requests(turn());
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].next_hdr, NextHdr::ResponseData);
  EXPECT_EQ(requests(answer_to(ack(333, 333))).size(), 1U);
}

// Read responses leave in the order of their requests, whole.
TEST_F(ReturnDirection, Pds167_ReadResponsesLeaveInRequestOrder) {
  accept(333, DeliveryMode::Rod);
  const std::uint32_t first = answer(3).id;
  answer(2);
  answer(1);
  std::vector<std::uint32_t> order;
  for (const Sent& packet : turn()) {
    if (packet.request()) order.push_back(content(packet.body()).first - first);
  }
  EXPECT_EQ(order, (std::vector<std::uint32_t>{0, 0, 0, 1, 1, 2}));
}

}  // namespace
}  // namespace uet::pds::testing
