// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which opcode a long send to a peer with the HPC profile has: SEND where a rendezvous would say no
// more (WIRE 3.12), RENDEZVOUS_SEND to peers whose receives come late.
#include "ses/long_send_peers.h"

#include "unit/ses/rendezvous_harness.h"

namespace uet::ses::test {
namespace {

constexpr std::size_t kEager = 8 * kMtu;

Parameters long_send_parameters() {
  Parameters parameters = rendezvous_parameters();
  parameters.eager_bytes = kEager;
  return parameters;
}

class LongSend : public RendezvousTest {
 protected:
  LongSend() : RendezvousTest(long_send_parameters()) {}
  // The packets of a message that is posted now.
  std::vector<Sent> post(Bytes& memory, bool delivery_complete = false) {
    EXPECT_TRUE(send(memory, delivery_complete));
    return a.packets();
  }
  void expect_opcode(const std::vector<Sent>& packets, SesOpcode opcode) {
    EXPECT_FALSE(packets.empty());
    for (const Sent& packet : packets) EXPECT_EQ(packet.request().opcode, opcode);
  }
  void deliver_all(const std::vector<Sent>& packets) {
    for (const Sent& packet : packets) deliver(a, b, packet);
    exchange();
  }

  Bytes out = pattern(kEager);
};

TEST_F(LongSend, Wire312_ExpectedMessagesAreSends) {
  for (int i = 0; i < 3; ++i) {
    Bytes in(out.size());
    ASSERT_TRUE(b.receive({slice_of(in)}));
    const auto packets = post(out);
    expect_opcode(packets, SesOpcode::Send);
    deliver_all(packets);
    EXPECT_EQ(in, out);
  }
  EXPECT_EQ(a.sink.all.size(), 3U);
  expect_idle();
}

TEST_F(LongSend, Wire312_TaggedMessageIsATaggedSend) {
  const Peer peer = to_b();
  const IoSlice slice = slice_of(out);
  SendOp op;
  op.peer = &peer;
  op.local = {&slice, 1};
  op.tag = 7;
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op, kNow));
  for (const Sent& packet : a.packets()) {
    EXPECT_EQ(packet.request().opcode, SesOpcode::TaggedSend);
    EXPECT_EQ(packet.request().match_bits, 7U);
    a.answered(packet, {});
  }
}

TEST_F(LongSend, Ses161_OneAtATimeIsPlain) {
  const auto first = post(out);
  expect_opcode(first, SesOpcode::Send);
  const auto second = post(out);
  expect_opcode(second, SesOpcode::RendezvousSend);
  for (const Sent& packet : second) a.answered(packet, {});
  for (const Sent& packet : first) a.answered(packet, {});
  const auto third = post(out);
  expect_opcode(third, SesOpcode::Send);
  for (const Sent& packet : third) a.answered(packet, {});
}

TEST_F(LongSend, Ses161_NoReceivesAtPeer_RendezvousNext) {
  deliver_all(post(out));
  ASSERT_EQ(a.sink.all.size(), 1U) << "kept whole, nothing is read";
  for (int i = 0; i < 2; ++i) {
    const auto packets = post(out);
    expect_opcode(packets, SesOpcode::RendezvousSend);
    for (const Sent& packet : packets) a.answered(packet, {});
  }
}

TEST_F(LongSend, Ses161_MessageThatMayBeCutIsARendezvous) {
  Bytes longer = pattern(kEager + 1);
  const auto packets = post(longer);
  expect_opcode(packets, SesOpcode::RendezvousSend);
  for (const Sent& packet : packets) a.answered(packet, {});
}

TEST_F(LongSend, Ses110_DeliveryCompleteMakesItARendezvous) {
  const auto packets = post(out, true);
  expect_opcode(packets, SesOpcode::RendezvousSend);
  for (const Sent& packet : packets) a.answered(packet, {});
}

TEST_F(LongSend, Ses161_MessageAfterAFailedStartIsPlain) {
  a.delivery.refuse = true;
  EXPECT_FALSE(send(out));
  a.delivery.refuse = false;
  const auto packets = post(out);
  expect_opcode(packets, SesOpcode::Send);
  for (const Sent& packet : packets) a.answered(packet, {});
}

// Plain sends follow a refusal until one of them tells whether the opcode was the reason.
TEST(LongSendPeers, Wire312_RefusalCountsUntilAPlainAnswer) {
  const FepAddress peer{.ip = {.bytes = {10, 0, 0, 1}}};
  for (const bool taken : {true, false}) {
    LongSendPeers peers;
    peers.note_refusal(peer);
    EXPECT_TRUE(peers.takes_plain_only(peer));
    peers.note_plain_answer(peer, taken);
    EXPECT_EQ(peers.takes_plain_only(peer), taken);
    peers.note_refusal(peer);
    peers.note_plain_answer(peer, false);
    EXPECT_EQ(peers.takes_plain_only(peer), taken) << "it took one before";
  }
}

TEST(LongSendPeers, LaterPeersTakeThePlacesOfEarlierOnes) {
  LongSendPeers peers;
  for (std::uint32_t i = 0; i < 4096; ++i) {
    FepAddress peer;
    peer.ip.bytes = {10, 0, static_cast<std::uint8_t>(i >> 8), static_cast<std::uint8_t>(i)};
    peer.port = 4793;
    ASSERT_TRUE(peers.begin_trial(peer));
    ASSERT_FALSE(peers.begin_trial(peer));
    peers.end_trial(peer);
    ASSERT_TRUE(peers.begin_trial(peer));
    ASSERT_FALSE(peers.takes_plain_only(peer));
    peers.note_plain_answer(peer, true);
    peers.note_unexpected(peer);
    ASSERT_TRUE(peers.takes_plain_only(peer));
  }
}

}  // namespace
}  // namespace uet::ses::test
