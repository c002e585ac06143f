// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sending within the windows, message after message.
#include "pds/send_turn.h"

#include <set>

#include "pds/pdc.h"
#include "pds/retransmit.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

using wire::AckRequestCode;
using wire::CpType;

class SendTurnTest : public Bench {
 protected:
  void with_mpr(std::uint8_t mpr) {
    Parameters parameters = test_parameters();
    parameters.default_mpr = mpr;
    build(parameters);
  }
  // Requests of all that the node sends now, retransmissions apart.
  std::size_t sends_now() { return requests(turn()).size(); }
};

// ---- windows ------------------------------------------------------------------------------------

TEST_F(SendTurnTest, Pds40_Pds44_DefaultMprBeforeTheFirstAck) {
  send(1100);
  EXPECT_EQ(sends_now(), 1024U);
}

TEST_F(SendTurnTest, FirstInFlight_TheOnlyOneOutstanding) {
  const auto marked = [](const std::vector<Sent>& sent) {
    std::vector<bool> marks;
    for (const Sent& packet : sent) marks.push_back(packet.first_in_flight);
    return marks;
  };
  TestMessage& message = send(3);
  EXPECT_EQ(marked(turn()), (std::vector<bool>{true, false, false}));
  pdc = message.pdc;
  send(1);
  EXPECT_EQ(marked(turn()), (std::vector<bool>{false}));
  answer_to(ack(70003, 70003));
  send(2);
  EXPECT_EQ(marked(turn()), (std::vector<bool>{true, false}));
}

TEST_F(SendTurnTest, Pds40_WindowOf128) {
  with_mpr(1);
  TestMessage& message = send(300);
  EXPECT_EQ(sends_now(), 128U);
  pdc = message.pdc;
  wire::AckHeader moved = ack(70009, 70009);
  moved.mpr = 1;
  EXPECT_EQ(psns(requests(answer_to(moved))).size(), 10U);
  EXPECT_EQ(sends_now(), 0U);
}

TEST_F(SendTurnTest, Pds40_OwnTrackingWindowLimitsAGenerousPeer) {
  with_mpr(1);
  TestMessage& message = send(300);
  turn();
  pdc = message.pdc;
  wire::AckHeader generous = ack(69999, 70001);  // 70000 stays outstanding
  generous.mpr = 255;
  EXPECT_TRUE(requests(answer_to(generous)).empty());
  EXPECT_EQ(psns(requests(after(milliseconds(1)))), (std::vector<std::uint32_t>{70000}));
}

// Test idea 13 of the reference: mpr 8 to 1 in mid-flight.
TEST_F(SendTurnTest, Pds42_Pds127_NothingAboveAShrunkenWindowIsSentAgain) {
  TestMessage& message = send(1024);
  turn();
  pdc = message.pdc;
  wire::AckHeader shrunk = ack(70009, 70009);
  shrunk.mpr = 1;
  receive(shrunk);
  turn();
  std::set<std::uint32_t> resent;
  for (int i = 0; i < 20; ++i) {
    for (const std::uint32_t psn : psns(requests(after(milliseconds(20))))) resent.insert(psn);
  }
  ASSERT_FALSE(resent.empty());
  EXPECT_EQ(*resent.begin(), 70010U);
  EXPECT_EQ(*resent.rbegin(), 70009U + 128);
  EXPECT_EQ(resent.size(), 128U);
  // PSNs already sent stay valid: their ACK counts.
  shrunk = ack(70009, 71000);
  shrunk.mpr = 1;
  receive(shrunk);
  EXPECT_EQ(message.responses, 11U);
}

TEST_F(SendTurnTest, Pds39_Pds41_MprOfAnOlderAckIsIgnored) {
  open();
  send(2000);
  turn();
  wire::AckHeader newer = ack(70100, 70100);
  newer.mpr = 1;
  EXPECT_EQ(requests(answer_to(newer)).size(), 0U);
  EXPECT_EQ(requests(answer_to(ack(70050, 70050))).size(), 0U);  // says mpr 8
  // The same CACK again is not older.
  EXPECT_EQ(requests(answer_to(ack(70100, 70100))).size(), 100U);
}

TEST_F(SendTurnTest, Pds43_MprZeroKeepsThePreviousValue) {
  open();
  send(2000);
  EXPECT_EQ(sends_now(), 1024U);
  wire::AckHeader zero = ack(70100, 70100);
  zero.mpr = 0;
  EXPECT_EQ(requests(answer_to(zero)).size(), 100U);
}

TEST_F(SendTurnTest, Pds47_AskForAnAckAtHalfTheWindow) {
  send(1024);
  const auto headers = requests(turn());
  for (std::size_t i = 0; i < headers.size(); ++i) {
    EXPECT_EQ(headers[i].ar, i == 511 || i == 1023) << i;
  }
}

TEST_F(SendTurnTest, Pds48_UnansweredClearClosesTheWindow) {
  with_mpr(1);
  open();
  send(300);
  EXPECT_EQ(sends_now(), 128U);
  // All acknowledged one by one, but CACK is held by a guaranteed response that no CLEAR reached.
  answer_with_held_responses();
  const auto sent = turn();
  EXPECT_TRUE(requests(sent).empty());
  const auto clears = controls(sent);  // at once: more waits for it (PDS-115)
  ASSERT_EQ(clears.size(), 1U);
  EXPECT_EQ(clears[0].ctl_type, CpType::Clear);
  EXPECT_EQ(clears[0].payload, 70128U);
}

TEST_F(SendTurnTest, Pds48_ClosedWindowNothingOut_AsksForAck) {
  with_mpr(1);
  open();
  TestMessage& message = send(300);
  turn();
  for (std::uint32_t psn = 70001; psn <= 70128; ++psn) {
    wire::AckHeader held = ack(70000, psn);
    held.mpr = 1;
    receive(held);
  }
  turn();
  const auto asked = controls(after(milliseconds(20)));
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].ctl_type, CpType::AckRequest);
  EXPECT_EQ(asked[0].psn, Psn{70128});
  wire::AckHeader moved = ack(70128, 70128);
  moved.mpr = 1;
  EXPECT_EQ(requests(answer_to(moved)).size(), 128U);
  EXPECT_EQ(message.made, 256U);
}

// Nothing is outstanding there, so that only the unanswered questions show that the peer is dead.
TEST_F(SendTurnTest, Pds121_ClosedWindowOfADeadPeerFailsThePdc) {
  with_mpr(1);
  open();
  TestMessage& message = send(300);
  turn();
  for (std::uint32_t psn = 70001; psn <= 70128; ++psn) receive(ack(70000, psn));
  // The last ACKs said mpr 8; this one says 1 again.
  wire::AckHeader held = ack(70000, 70128);
  held.mpr = 1;
  receive(held);
  const Time last_ack = now;
  while (!message.failed && now < last_ack + seconds(60)) after(milliseconds(5));
  EXPECT_EQ(message.failed, PdsError::RtoExhausted);
  EXPECT_LE(now - last_ack, time_to_failure(test_parameters()) + milliseconds(40));
}

TEST_F(SendTurnTest, Pds48_ClosedWindowOfALivingPeerIsWaitedFor) {
  with_mpr(1);
  open();
  TestMessage& message = send(300);
  turn();
  wire::AckHeader held = ack(70000, 0);
  held.mpr = 1;
  for (std::int16_t i = 1; i <= 128; ++i) {
    held.ack_psn_offset = i;
    receive(held);
  }
  int asked = 0;
  for (int i = 0; i < 6000; ++i) {  // 30 s
    for (const auto& header : controls(after(milliseconds(5)))) {
      asked += header.ctl_type == CpType::AckRequest;
      receive(held);
    }
  }
  EXPECT_GT(asked, 100);
  EXPECT_FALSE(message.failed.has_value());
  held = ack(70128, 70128);
  held.mpr = 1;
  EXPECT_EQ(requests(answer_to(held)).size(), 128U);
}

// mpr shrinks below what acknowledged but uncleared packets occupy, and the CLEAR was lost.
TEST_F(SendTurnTest, Pds127_OutstandingBeyondWindow_AskForAck) {
  open();
  send(300);
  turn();
  for (std::uint32_t psn = 70001; psn <= 70200; ++psn) {
    wire::AckHeader held = ack(70000, psn);
    held.mpr = 1;
    receive(held);
  }
  bool asked = false;
  for (int i = 0; i < 10 && !asked; ++i) {
    for (const auto& header : controls(after(milliseconds(20)))) {
      asked = asked || header.ctl_type == CpType::AckRequest;
    }
  }
  EXPECT_TRUE(asked);
  wire::AckHeader moved = ack(70200, 70200);
  moved.mpr = 1;
  receive(moved);
  EXPECT_FALSE(requests(after(milliseconds(40))).empty());
}

// ---- messages -----------------------------------------------------------------------------------

// SES-34 asks for the same.
TEST_F(SendTurnTest, Pds7_Pds8_Pds30_MessagesFollowEachOtherOnOnePdc) {
  open();
  for (int i = 0; i < 3; ++i) send(50);
  const auto sent = turn();
  std::vector<std::pair<std::uint32_t, std::uint32_t>> order;
  for (const Sent& packet : sent) order.push_back(content(packet.body()));
  ASSERT_EQ(order.size(), 150U);
  for (std::uint32_t i = 0; i < 150; ++i) {
    EXPECT_EQ(order[i], (std::pair{2 + i / 50, i % 50}));
    EXPECT_EQ(sent[i].request()->spdcid, pdc);
  }
}

TEST_F(SendTurnTest, NotNowWaitsForTheKick) {
  open();
  TestMessage& waiting = node->message(2);
  waiting.blocked = true;
  ASSERT_TRUE(node->manager->send(waiting, to_peer(), now).ok());
  TestMessage& behind = send(1);
  EXPECT_EQ(sends_now(), 0U);
  EXPECT_EQ(node->packets.in_use(), 0U);
  waiting.blocked = false;
  EXPECT_EQ(sends_now(), 0U);
  node->manager->kick(pdc);
  EXPECT_EQ(sends_now(), 3U);
  EXPECT_EQ(behind.made, 1U);
}

TEST_F(SendTurnTest, Pds101_LastPacketOfAMessageAsksForAnAck) {
  open();
  send(3);
  send(2);
  const auto headers = requests(turn());
  for (const std::size_t i : {0, 1, 3}) EXPECT_FALSE(headers.at(i).ar);
  for (const std::size_t i : {2, 4}) EXPECT_TRUE(headers.at(i).ar);
}

TEST_F(SendTurnTest, Pds100_PerPacketModeAsksWithEveryPacket) {
  Parameters parameters = test_parameters();
  parameters.ack_per_packet = true;
  build(parameters);
  send(5);
  for (const auto& header : requests(turn())) EXPECT_TRUE(header.ar);
}

TEST_F(SendTurnTest, Pds1_PayloadPassesUntouched) {
  send(1, DeliveryMode::Rud, 1000);
  const auto sent = turn();
  ASSERT_EQ(sent.at(0).body().size(), 1008U);
  for (std::size_t i = 8; i < 1008; ++i) ASSERT_EQ(sent[0].body()[i], std::byte{0x5A});
}

TEST_F(SendTurnTest, Pds3_ClosedWindow_HoldsRequestsNotAcks) {
  cms::Parameters narrow = open_window();
  narrow.fixed_window_bytes = narrow.mtu_bytes = 4096;
  build(test_parameters(), narrow);
  TestMessage& message = send(40, DeliveryMode::Rud, 1000);
  EXPECT_EQ(sends_now(), 1U);  // a full-sized packet must fit before the next one is made
  pdc = message.pdc;
  peer_start = 333;
  wire::RequestHeader incoming = request(333, true);
  incoming.ar = true;
  EXPECT_EQ(acks(answer_to(incoming)).size(), 1U);
  // A NOOP of its own, kept back by nothing but PSN windows, is in the keep-alive test.
  EXPECT_EQ(requests(answer_to(ack(70000, 70000))).size(), 1U);
}

// ---- few packets
// ----------------------------------------------------------------------------------

TEST_F(SendTurnTest, FewBuffers_DataLeaveSomeForAcks) {
  build(test_parameters(), open_window(), 64);
  TestMessage& message = send(100);
  EXPECT_EQ(sends_now(), 48U);  // a quarter is kept
  pdc = message.pdc;
  std::uint32_t cack = 70000;
  for (int i = 0; i < 100 && message.responses < 100; ++i) {
    cack = 69999 + message.made;
    receive(ack(cack, cack));
    turn();
  }
  EXPECT_TRUE(Node::answered_once(message));
}

}  // namespace
}  // namespace uet::pds::testing
