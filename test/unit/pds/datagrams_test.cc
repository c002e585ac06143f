// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// UUD (PDS section 19): packets without a PDC, in both directions.
#include "pds/datagrams.h"

#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

class DatagramsTest : public Bench {
 protected:
  TestMessage& datagram(std::uint32_t payload_bytes = 64) {
    return send(1, DeliveryMode::Uud, payload_bytes);
  }
  // The packets that the NIC took, and the answers to them.
  std::vector<Sent> taken() {
    std::vector<Sent> sent = turn();
    node->manager->answer_datagrams(now);
    return sent;
  }
  // A UUD packet from the peer with `bytes` behind its header.
  void arrive(wire::NextHdr next_hdr, std::size_t bytes, bool trimmed = false) {
    std::vector<std::byte> packet(sizeof(wire::PdsUud) + bytes);
    wire::UudHeader{.next_hdr = next_hdr}.encode(packet.data());
    node->receive(packet, peer, now, 50000, Ecn::Ce, trimmed);
  }
};

TEST_F(DatagramsTest, Pds191_OnePacket_NoPdcNumberNoResend) {
  TestMessage& message = datagram();
  const std::vector<Sent> sent = taken();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].type(), wire::PdsType::UudReq);
  wire::UudHeader header;
  ASSERT_TRUE(wire::UudHeader::decode(sent[0].bytes, header));
  EXPECT_EQ(header.next_hdr, NextHdr::RequestStd);
  EXPECT_EQ(sent[0].bytes.size(), sizeof(wire::PdsUud) + 8 + 64);
  EXPECT_EQ(sent[0].to, peer);
  EXPECT_EQ(content(sent[0].body()), std::pair(message.id, 0U));
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
  EXPECT_TRUE(after(seconds(30)).empty());
  EXPECT_EQ(node->packets.in_use(), 0U);
}

TEST_F(DatagramsTest, Pds12_TheyHaveATrafficClassOfTheirOwnAndNoEcn) {
  datagram();
  const std::vector<Sent> sent = taken();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].dscp, test_parameters().dscp_datagram);
  EXPECT_NE(sent[0].dscp, test_parameters().dscp_data);
  EXPECT_EQ(sent[0].ecn, Ecn::NotEct);
}

TEST_F(DatagramsTest, Pds192_NicTookPacket_AnswerComes) {
  TestMessage& message = datagram();
  node->turn(now);
  node->manager->answer_datagrams(now);
  EXPECT_EQ(message.responses, 0U);
  EXPECT_FALSE(node->manager->quiescent());
  node->drain();
  node->manager->answer_datagrams(now);
  EXPECT_TRUE(Node::answered_once(message));
  ASSERT_EQ(node->client.answered.size(), 1U);
  EXPECT_EQ(node->client.answered[0].next_hdr, NextHdr::None);
  EXPECT_TRUE(node->manager->quiescent());
  EXPECT_EQ(counters().datagrams_sent, 1U);
}

TEST_F(DatagramsTest, TheyLeaveAndAreAnsweredInOrder) {
  for (int i = 0; i < 100; ++i) datagram();
  const std::vector<Sent> sent = taken();
  ASSERT_EQ(sent.size(), 100U);
  ASSERT_EQ(node->client.answered.size(), 100U);
  for (std::uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(content(sent[i].body()).first, node->messages[i].id);
    EXPECT_EQ(node->client.answered[i].message, node->messages[i].id);
  }
}

TEST_F(DatagramsTest, RefusedPacketsWaitAndTheRestIsAnswered) {
  for (int i = 0; i < 3; ++i) datagram();
  node->turn(now);
  node->outbox.withdraw(node->outbox.data().front());  // the NIC takes one
  node->manager->answer_datagrams(now);
  EXPECT_EQ(node->client.answered.size(), 1U);
  EXPECT_EQ(node->drain().size(), 2U);
  node->manager->answer_datagrams(now);
  EXPECT_EQ(node->client.answered.size(), 3U);
}

TEST_F(DatagramsTest, AFullQueueSaysAgainAndTakesMoreLater) {
  for (std::size_t i = 0; i < Datagrams::kCapacity; ++i) datagram();
  TestMessage& late = node->message(1);
  EXPECT_EQ(node->manager->send(late, to_peer(DeliveryMode::Uud), now).error(), Error::Again);
  EXPECT_EQ(late.made, 0U);
  taken();
  EXPECT_TRUE(node->manager->send(late, to_peer(DeliveryMode::Uud), now).ok());
  EXPECT_EQ(taken().size(), 1U);
  EXPECT_TRUE(Node::answered_once(late));
}

TEST_F(DatagramsTest, TheyLeavePacketsToAcksAndControl) {
  build(test_parameters(), open_window(), 64);
  std::size_t accepted = 0;
  while (node->manager->send(node->message(1), to_peer(DeliveryMode::Uud), now).ok()) ++accepted;
  EXPECT_EQ(accepted, 48U);
  EXPECT_EQ(node->packets.available(), 16U);
}

TEST_F(DatagramsTest, TheySharePassesWithPdcs) {
  for (int i = 0; i < 200; ++i) datagram();
  TestMessage& reliable = send(4);
  EXPECT_TRUE(node->manager->has_ready());
  EXPECT_TRUE(node->manager->pump(now));
  EXPECT_EQ(reliable.made, 4U);
  const std::size_t datagrams = node->drain().size() - 4;
  EXPECT_GT(datagrams, 0U);
  EXPECT_LT(datagrams, 200U);
  EXPECT_TRUE(node->manager->has_ready());
}

TEST_F(DatagramsTest, AnyThatTheNicHasNotTakenCanBeWithdrawn) {
  TestMessage& queued = datagram();
  node->turn(now);  // it is in the outbox
  TestMessage& waiting = datagram();
  TestMessage& kept = datagram();
  EXPECT_TRUE(node->manager->cancel(queued));
  EXPECT_TRUE(node->manager->cancel(waiting));
  EXPECT_FALSE(node->manager->cancel(waiting));
  const std::vector<Sent> sent = taken();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(content(sent[0].body()).first, kept.id);
  EXPECT_EQ(queued.responses + waiting.responses, 0U);
  EXPECT_TRUE(Node::answered_once(kept));
  EXPECT_EQ(node->packets.in_use(), 0U);
}

TEST_F(DatagramsTest, OneThatTheNicHasIsNotWithdrawnButAnswered) {
  TestMessage& message = datagram();
  turn();
  EXPECT_FALSE(node->manager->cancel(message));
  node->manager->answer_datagrams(now);
  EXPECT_TRUE(Node::answered_once(message));
}

TEST_F(DatagramsTest, DestructionGivesPacketsBackWithoutAnAnswer) {
  TestMessage& queued = datagram();
  node->turn(now);
  datagram();
  node->manager.reset();
  EXPECT_EQ(node->packets.in_use(), 0U);
  EXPECT_TRUE(node->outbox.empty());
  EXPECT_EQ(queued.responses, 0U);
}

// ---- receiving ----------------------------------------------------------------------------------

TEST_F(DatagramsTest, EachArrival_IsDeliveredAndOpensNoPdc) {
  arrive(NextHdr::RequestStd, 72);
  arrive(NextHdr::RequestStd, 72);  // a copy is delivered again: the target keeps no record
  ASSERT_EQ(node->client.delivered.size(), 2U);
  const Delivered& first = node->client.delivered[0];
  EXPECT_EQ(first.mode, DeliveryMode::Uud);
  EXPECT_EQ(first.source, peer);
  EXPECT_EQ(first.pdc, PdcId{});
  EXPECT_EQ(first.bytes, 72U);
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
  EXPECT_EQ(counters().datagrams_received, 2U);
}

TEST_F(DatagramsTest, Pds213_AnySesAnswer_SendsNothing) {
  const std::vector<Response> responses = {default_response(), guaranteed_response(),
                                           refusal(NackCode::NoResource)};
  for (const Response& response : responses) {
    node->client.respond = [&](const Delivered&) { return response; };
    arrive(NextHdr::RequestStd, 72);
    EXPECT_TRUE(turn().empty());
  }
  EXPECT_TRUE(after(seconds(30)).empty());
}

TEST_F(DatagramsTest, Pds193_MalformedOnesAreDroppedAndCounted) {
  arrive(NextHdr::None, 72);
  arrive(NextHdr::Response, 72);
  const std::vector<std::byte> cut{std::byte{0x31}, std::byte{0x80}, std::byte{0}};
  node->receive(cut, peer, now);
  EXPECT_EQ(counters().malformed, 3U);
  arrive(NextHdr::RequestStd, 72, true);
  EXPECT_EQ(counters().datagrams_trimmed, 1U);
  EXPECT_TRUE(node->client.delivered.empty());
  EXPECT_TRUE(turn().empty());
}

}  // namespace
}  // namespace uet::pds::testing
