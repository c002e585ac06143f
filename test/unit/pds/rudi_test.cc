// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RUDI (PDS section 18): requests without a PDC, and what becomes of their responses.
#include "pds/rudi.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "pds/retransmit.h"
#include "unit/pds/rudi_harness.h"

namespace uet::pds::testing {
namespace {

class RudiTest : public RudiBench {};

// ---- sending ------------------------------------------------------------------------------------

// A FEP that shares its port: the kernel tells by the first bits of an id whose a response is.
TEST_F(RudiTest, Pds183_IdsBeginWithTheSlot) {
  for (const std::uint8_t slot : {0, 3, 31}) {
    Parameters parameters = test_parameters();
    parameters.id_share = {.number = slot, .bits = kSlotBits};
    build(parameters);
    rudi(20);
    std::set<std::uint32_t> ids;
    for (const wire::RudiHeader& header : headers(turn())) {
      EXPECT_EQ(header.pkt_id >> (32 - kSlotBits), slot);
      ids.insert(header.pkt_id);
    }
    EXPECT_EQ(ids.size(), 20U);
  }
}

TEST_F(RudiTest, Pds183_EveryPacketHasAnIdOfItsOwnAndNoPdc) {
  TestMessage& first = rudi(5);
  TestMessage& second = rudi(3);
  const std::vector<Sent> sent = turn();
  ASSERT_EQ(sent.size(), 8U);
  std::set<std::uint32_t> ids;
  for (const wire::RudiHeader& header : headers(sent)) {
    EXPECT_EQ(header.type, wire::PdsType::RudiReq);
    EXPECT_EQ(header.next_hdr, NextHdr::RequestStd);
    EXPECT_FALSE(header.retx);
    ids.insert(header.pkt_id);
  }
  EXPECT_EQ(ids.size(), 8U);
  EXPECT_EQ(sent[0].to, peer);
  EXPECT_EQ(sent[0].ecn, Ecn::Ect0);
  EXPECT_EQ(content(sent[0].body()), std::pair(first.id, 0U));
  EXPECT_EQ(content(sent[7].body()), std::pair(second.id, 2U));
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
}

TEST_F(RudiTest, Pds22_ResponsesInAnyOrderEndEachPacketOnce) {
  TestMessage& message = rudi(4);
  std::vector<wire::RudiHeader> sent = headers(turn());
  ASSERT_EQ(sent.size(), 4U);
  std::reverse(sent.begin(), sent.end());
  for (const wire::RudiHeader& header : sent) {
    respond(header.pkt_id);
    respond(header.pkt_id);  // a copy
  }
  EXPECT_TRUE(Node::answered_once(message));
  EXPECT_EQ(node->client.answered[0].tag, 3U);
  EXPECT_EQ(node->client.answered[0].next_hdr, NextHdr::Response);
  EXPECT_EQ(node->client.answered[0].bytes.size(), 12U);
  EXPECT_EQ(counters().stray_packets, 4U);
  expect_nothing_left();
}

TEST_F(RudiTest, Pds186_UnknownIdOrSource_ResponseIgnored) {
  TestMessage& message = rudi(1);
  const std::vector<wire::RudiHeader> sent = headers(turn());
  ASSERT_EQ(sent.size(), 1U);
  respond(sent[0].pkt_id + 1);
  respond(sent[0].pkt_id + Rudi::kOutstanding);  // the same place, another use
  respond(sent[0].pkt_id, address_of(9));
  EXPECT_EQ(message.responses, 0U);
  EXPECT_EQ(counters().stray_packets, 3U);
  respond(sent[0].pkt_id);
  EXPECT_EQ(message.responses, 1U);
}

TEST_F(RudiTest, Pds185_TimeOut_ResendsWithSameIdAndRetx) {
  TestMessage& message = rudi(1);
  const std::vector<Sent> first = turn();
  ASSERT_EQ(first.size(), 1U);
  EXPECT_TRUE(after(milliseconds(19)).empty());
  const std::vector<Sent> again = after(milliseconds(2));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(headers(again)[0].pkt_id, headers(first)[0].pkt_id);
  EXPECT_TRUE(headers(again)[0].retx);
  EXPECT_TRUE(std::ranges::equal(again[0].body(), first[0].body()));
  EXPECT_TRUE(after(milliseconds(39)).empty());  // twice as long
  EXPECT_EQ(after(milliseconds(3)).size(), 1U);
  respond(headers(first)[0].pkt_id);
  EXPECT_TRUE(Node::answered_once(message));
  EXPECT_TRUE(after(seconds(10)).empty());
  expect_nothing_left();
}

TEST_F(RudiTest, Pds185_ASilentPeerFailsEverythingToIt) {
  Parameters parameters = test_parameters();
  parameters.max_rto_retransmissions = 3;
  build(parameters);
  TestMessage& message = rudi(2);
  turn();
  TestMessage& waiting = rudi(1);
  waiting.blocked = true;
  const Time give_up = now + seconds(5);
  while (!waiting.failed && now < give_up) after(milliseconds(10));
  EXPECT_EQ(message.errors, (std::vector{PdsError::RtoExhausted, PdsError::RtoExhausted}));
  EXPECT_EQ(waiting.failed, PdsError::RtoExhausted);
  // 20 + 40 + 80 + 160 ms and the steps between.
  EXPECT_NEAR(std::chrono::duration<double>(now - kStart).count(), 0.3, 0.06);
  expect_nothing_left();
}

TEST_F(RudiTest, Pds185_DeadPeer_FailsAllToItAtOnce) {
  node->way.connection = 5;
  TestMessage& message = rudi(2);
  turn();
  TestMessage& waiting = rudi(1);
  waiting.blocked = true;
  const DeadPeer lost{.address = to_peer().address, .from = 4, .to = 5};
  DeadPeer other = lost;
  other.to = 6;
  DeadPeer succeeded = lost;
  succeeded.succeeded = true;
  for (const DeadPeer& harmless : {other, succeeded}) node->manager->on_dead_peer(harmless, now);
  EXPECT_TRUE(message.errors.empty());
  node->manager->on_dead_peer(lost, now);
  EXPECT_EQ(message.errors, (std::vector{PdsError::PeerLost, PdsError::PeerLost}));
  EXPECT_EQ(waiting.failed, PdsError::PeerLost);
  expect_nothing_left();
}

TEST_F(RudiTest, Pds185_OnePacketThatIsNeverAnsweredFailsAlone) {
  Parameters parameters = test_parameters();
  parameters.max_rto_retransmissions = 2;
  build(parameters);
  TestMessage& lost = rudi(1);
  const std::uint32_t lost_id = headers(turn()).at(0).pkt_id;
  for (int i = 0; i < 40; ++i) {
    TestMessage& lucky = rudi(1);
    for (const wire::RudiHeader& header : headers(after(milliseconds(10)))) {
      if (header.pkt_id != lost_id) respond(header.pkt_id);
    }
    EXPECT_TRUE(Node::answered_once(lucky));
  }
  EXPECT_EQ(lost.errors, std::vector{PdsError::RtoExhausted});
  expect_nothing_left();
}

// A peer that takes up some requests each second lives, however long the last of them waits.
TEST_F(RudiTest, Pds121_ASlowPeerIsWaitedFor) {
  constexpr std::uint32_t kRequests = 30;
  TestMessage& message = rudi(kRequests);
  std::vector<std::uint32_t> waiting;
  std::size_t sent = 0;
  const auto note = [&](const std::vector<Sent>& packets) {
    sent += packets.size();
    for (const wire::RudiHeader& header : headers(packets)) {
      if (!header.retx) waiting.push_back(header.pkt_id);
    }
  };
  note(turn());
  ASSERT_EQ(waiting.size(), kRequests);
  for (const std::uint32_t id : waiting) {
    for (int i = 0; i < 10; ++i) note(after(milliseconds(100)));
    respond(id);
  }
  EXPECT_TRUE(message.errors.empty());
  EXPECT_TRUE(Node::answered_once(message));
  EXPECT_LT(sent, 12U * kRequests);
}

// A dead one is given up in the time of RUD.
TEST_F(RudiTest, Pds121_ADeadPeerEndsEverythingInBoundedTime) {
  TestMessage& message = rudi(20);
  std::size_t sent = turn().size();
  const Time begin = now;
  while (message.errors.empty() && now - begin < seconds(60))
    sent += after(milliseconds(50)).size();
  EXPECT_EQ(message.errors.size(), 20U);
  EXPECT_LT(now - begin, time_to_failure(test_parameters()) + seconds(1));
  EXPECT_LT(sent, 20U * 2 + 20) << "one packet asks whether the peer lives";
}

// It never gets through, and its peer says so each time.
TEST_F(RudiTest, Pds121_APacketThatIsTrimmedEachTimeFails) {
  rudi(1);
  TestMessage& message = node->messages.back();
  std::uint32_t id = headers(turn()).at(0).pkt_id;
  std::size_t sent = 1;
  const Time begin = now;
  while (message.errors.empty() && now - begin < seconds(60)) {
    refuse(NackCode::Trimmed, id);
    sent += turn().size() + after(milliseconds(10)).size();
  }
  EXPECT_EQ(message.errors, std::vector{PdsError::RtoExhausted});
  EXPECT_GT(sent, kQuickTrims);
  EXPECT_LE(sent, test_parameters().max_rto_retransmissions + kQuickTrims + 1U);
  expect_nothing_left();
}

TEST_F(RudiTest, Pds187_ANackBringsThePacketBackLater) {
  TestMessage& message = rudi(1);
  const std::uint32_t id = headers(turn()).at(0).pkt_id;
  refuse(NackCode::NoPktBuffer, id);
  EXPECT_TRUE(turn().empty());
  const std::vector<wire::RudiHeader> again = headers(after(milliseconds(2)));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].pkt_id, id);
  EXPECT_TRUE(again[0].retx);
  refuse(NackCode::Trimmed, id);
  EXPECT_EQ(turn().size(), 1U);  // at once
  respond(id);
  EXPECT_TRUE(Node::answered_once(message));
}

// PDS-121: as many retransmissions go without a pause as those of a PDC. Trims are answers.
TEST_F(RudiTest, Pds187_FifthUnansweredRetransmissionWaits) {
  rudi(1);
  const std::uint32_t id = headers(turn()).at(0).pkt_id;
  for (std::uint32_t i = 0; i < kQuickTrims + kQuickRetransmissions; ++i) {
    now += microseconds(10);
    refuse(i < kQuickTrims ? NackCode::Trimmed : NackCode::RcvrInferLoss, id);
    EXPECT_EQ(turn().size(), 1U) << i;
  }
  now += microseconds(10);
  refuse(NackCode::RcvrInferLoss, id);
  EXPECT_TRUE(turn().empty());
  EXPECT_EQ(after(rto(test_parameters(), 0)).size(), 1U);
}

TEST_F(RudiTest, Pds122_EndlessNacksExhaustTheirRetries) {
  Parameters parameters = test_parameters();
  parameters.max_nack_retransmissions = 2;
  build(parameters);
  TestMessage& message = rudi(1);
  const std::uint32_t id = headers(turn()).at(0).pkt_id;
  for (int i = 0; i < 3; ++i) {
    refuse(NackCode::NoPktBuffer, id);
    after(milliseconds(2));
  }
  EXPECT_EQ(message.errors, std::vector{PdsError::NackExhausted});
  expect_nothing_left();
}

TEST_F(RudiTest, AFatalNackFailsThePacketAndForeignOnesDoNot) {
  TestMessage& message = rudi(2);
  const std::vector<wire::RudiHeader> sent = headers(turn());
  refuse(NackCode::UnexpEvent, sent[0].pkt_id + Rudi::kOutstanding);
  refuse(NackCode::Reserved, sent[0].pkt_id);
  EXPECT_TRUE(message.errors.empty());
  EXPECT_EQ(counters().nacks_ignored, 2U);
  refuse(NackCode::UnexpEvent, sent[0].pkt_id);
  EXPECT_EQ(message.errors, std::vector{PdsError::ProtocolError});
  respond(sent[1].pkt_id);
  EXPECT_EQ(message.responses, 1U);
}

TEST_F(RudiTest, Cms4_TheCongestionWindowLimitsThemToo) {
  cms::Parameters cms = open_window();
  cms.fixed_window_bytes = 4 * cms.mtu_bytes;
  build(test_parameters(), cms);
  TestMessage& message = node->message(100, 4000);
  ASSERT_TRUE(node->manager->send(message, to_peer(DeliveryMode::Rudi), now).ok());
  std::size_t answered = 0;
  for (int round = 0; round < 100 && answered < 100; ++round) {
    const std::vector<wire::RudiHeader> sent = headers(turn());
    EXPECT_LE(sent.size(), 5U);
    EXPECT_GT(sent.size(), 0U);
    for (const wire::RudiHeader& header : sent) respond(header.pkt_id);
    answered += sent.size();
  }
  EXPECT_TRUE(Node::answered_once(message));
  expect_nothing_left();
}

TEST_F(RudiTest, Cms4_APdcToTheSamePeerSharesTheWindow) {
  cms::Parameters cms = open_window();
  cms.fixed_window_bytes = cms.mtu_bytes;
  build(test_parameters(), cms);
  rudi(1);
  const std::vector<Sent> sent = turn();
  ASSERT_EQ(headers(sent).size(), 1U);
  TestMessage& reliable = node->message(2, 4000);
  ASSERT_TRUE(node->manager->send(reliable, to_peer(), now).ok());
  EXPECT_EQ(turn().size(), 0U);
  respond(headers(sent)[0].pkt_id);
  EXPECT_EQ(requests(turn()).size(), 1U);
}

TEST_F(RudiTest, TooManyOutstandingWaitForResponses) {
  TestMessage& message = rudi(Rudi::kOutstanding + 10);
  const std::vector<wire::RudiHeader> sent = headers(turn());
  EXPECT_EQ(sent.size(), Rudi::kOutstanding);
  EXPECT_FALSE(node->manager->has_ready());
  for (const wire::RudiHeader& header : sent) respond(header.pkt_id);
  const std::vector<wire::RudiHeader> rest = headers(turn());
  EXPECT_EQ(rest.size(), 10U);
  for (const wire::RudiHeader& header : rest) respond(header.pkt_id);
  EXPECT_TRUE(Node::answered_once(message));
  expect_nothing_left();
}

TEST_F(RudiTest, ABlockedMessageGoesOnAfterAKick) {
  TestMessage& message = rudi(3);
  message.block_at = 1;
  const std::vector<wire::RudiHeader> first = headers(turn());
  EXPECT_EQ(first.size(), 1U);
  EXPECT_FALSE(node->manager->has_ready());
  message.block_at = 0;
  node->manager->kick(PdcId{});
  EXPECT_TRUE(node->manager->has_ready());
  EXPECT_EQ(turn().size(), 2U);
}

TEST_F(RudiTest, ACancelledMessageIsWithdrawnWhole) {
  TestMessage& begun = rudi(3);
  begun.block_at = 2;
  const std::vector<wire::RudiHeader> sent = headers(turn());
  ASSERT_EQ(sent.size(), 2U);
  TestMessage& other = rudi(1);
  EXPECT_TRUE(node->manager->cancel(begun));
  EXPECT_FALSE(node->manager->cancel(begun));
  const std::vector<wire::RudiHeader> rest = headers(turn());
  ASSERT_EQ(rest.size(), 1U);
  respond(sent[0].pkt_id);
  respond(rest[0].pkt_id);
  EXPECT_EQ(begun.responses, 0U);
  EXPECT_TRUE(Node::answered_once(other));
  EXPECT_TRUE(after(seconds(10)).empty());
  expect_nothing_left();
}

TEST_F(RudiTest, DestructionGivesEverythingBack) {
  TestMessage& message = rudi(3);
  node->manager->pump(now);
  rudi(1);
  node->manager.reset();
  EXPECT_EQ(node->packets.in_use(), 0U);
  EXPECT_FALSE(message.linked());
}

// ---- sources that may be invented (PDS-222) -----------------------------------------------------

// The initiator of refused reads shows by a packet with the target's PDC id that it hears it.
TEST_F(RudiTest, Pds222_RefusedReadOpensAPdcAsProof) {
  rudi(2);
  const std::vector<wire::RudiHeader> sent = headers(turn());
  ASSERT_EQ(sent.size(), 2U);
  for (const wire::RudiHeader& header : sent) refuse(NackCode::NoResource, header.pkt_id);
  const auto opening = controls(turn());
  ASSERT_EQ(opening.size(), 1U) << "one for both";
  EXPECT_EQ(opening[0].ctl_type, wire::CpType::Noop);
  EXPECT_TRUE(opening[0].syn);
  pdc = opening[0].spdcid;
  receive(ack(opening[0].psn.value, opening[0].psn.value));
  EXPECT_TRUE(controls(turn()).empty());
  refuse(NackCode::NoResource, sent[0].pkt_id);
  const auto proof = controls(turn());
  ASSERT_EQ(proof.size(), 1U);
  EXPECT_EQ(proof[0].ctl_type, wire::CpType::Noop);
  EXPECT_FALSE(proof[0].syn);
  EXPECT_EQ(proof[0].dpdcid, kPeerPdc);
  receive(ack(proof[0].psn.value, proof[0].psn.value));
  refuse(NackCode::NoResource, sent[1].pkt_id);
  EXPECT_TRUE(controls(turn()).empty()) << "once for each PDC";
}

// The reads that need the proof hold the last context that an ordinary PDC may take, as credit has
// contexts of its own (CMS-204).
TEST_F(RudiTest, Pds222_ProofTakesTheReservedPoolInAShortage) {
  Parameters parameters = test_parameters();
  parameters.ccc_count = 4;
  parameters.reserved_target_pdcs = 2;
  parameters.reserved_pool_pdcs = 1;
  cms::Parameters credit = open_window();
  credit.algorithm = cms::Algorithm::Rccc;
  build(parameters, credit);
  rudi(1);
  refuse(NackCode::NoResource, headers(turn()).at(0).pkt_id);
  const auto opening = controls(turn());
  ASSERT_EQ(opening.size(), 1U);
  EXPECT_TRUE(opening[0].syn);
  EXPECT_TRUE(wire::wants_reserved_pool(opening[0].pdc_info));
}

// A peer that knows no NOOP (PDS-221) has its budget.
TEST_F(RudiTest, Pds222_PeerWithoutNoopIsSentNone) {
  Pdc& open = RudiTest::open();
  ASSERT_TRUE(open.send_side().send_control(wire::CpType::Noop, now));
  const auto noop = controls(turn());
  ASSERT_EQ(noop.size(), 1U);
  receive(nack(NackCode::UnexpEvent, noop[0].psn.value));
  node->manager->abort(pdc, now);
  turn();
  rudi(1);
  refuse(NackCode::NoResource, headers(turn()).at(0).pkt_id);
  EXPECT_TRUE(controls(turn()).empty());
  EXPECT_EQ(counters().pdcs_opened, 1U) << "nor is a PDC opened for it";
}

class RudiReads : public Pair {};

TEST_F(RudiReads, Pds222_OfALivingInitiatorAllSucceed) {
  constexpr std::uint32_t kReads = 300;
  b->client.respond = [this](const Delivered&) {
    TestMessage& data = b->message(1, 4096);
    data.backlog_bytes = 4096;
    const bool taken = b->manager->respond(data, now).ok();
    b->manager->answer_datagrams(now);
    return taken ? default_response() : refusal(NackCode::NoResource);
  };
  TestMessage& reads = send(kReads, DeliveryMode::Rudi);
  const Time begin = now;
  ASSERT_TRUE(run_while_not([&] { return Node::answered_once(reads); }));
  EXPECT_GT(b->manager->counters().rudi_unproved_refused, 0U);
  EXPECT_EQ(a->manager->counters().pdcs_opened, 1U);
  EXPECT_LT(now - begin, milliseconds(100)) << "the budget alone would take more than a second";
}

// Step 11 of TSS section 6 for packets without a PDC.
TEST_F(RudiTest, Tss11_OtherSdi_AnswersCountedAndDropped) {
  Parameters parameters = test_parameters();
  parameters.secured = true;
  build(parameters);
  TestMessage& message = rudi(1);
  const std::vector<wire::RudiHeader> sent = headers(turn());
  ASSERT_EQ(sent.size(), 1U);
  FepAddress other = peer;
  other.sdi = 6;
  respond(sent[0].pkt_id, other);
  EXPECT_EQ(message.responses, 0U);
  EXPECT_EQ(counters().binding_failures, 1U);
  EXPECT_EQ(counters().stray_packets, 0U);
  respond(sent[0].pkt_id);
  EXPECT_EQ(message.responses, 1U);
}

}  // namespace
}  // namespace uet::pds::testing
