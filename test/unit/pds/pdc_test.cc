// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Opening with SYN, sending in windows, closing with a handshake.
#include "uet/pds/pdc.h"

#include <set>

#include "uet/pds/retransmit.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

using wire::AckRequestCode;
using wire::CpType;

class PdcTest : public Bench {
 protected:
  void with_mpr(std::uint8_t mpr) {
    Parameters parameters = test_parameters();
    parameters.default_mpr = mpr;
    build(parameters);
  }
  // Requests of all that the node sends now, retransmissions apart.
  std::size_t sends_now() { return requests(turn()).size(); }
  // Answers the Close Command in `sent`, so that the PDC closes.
  void let_close(const std::vector<Sent>& sent) {
    const auto closes = controls(sent);
    ASSERT_EQ(closes.size(), 1U);
    ASSERT_EQ(closes[0].ctl_type, CpType::Close);
    const std::uint32_t psn = closes[0].psn.value;
    receive(ack(psn, psn));
    turn();
  }
};

// ---- opening ------------------------------------------------------------------------------------

TEST_F(PdcTest, Pds49_Pds50_FirstPacketsCarryDataSynAndTheirOffset) {
  send(3);
  const auto sent = turn();
  const auto headers = requests(sent);
  ASSERT_EQ(psns(headers), (std::vector<std::uint32_t>{70000, 70001, 70002}));
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(headers[i].syn);
    EXPECT_EQ(headers[i].psn_offset, i);
    EXPECT_EQ(headers[i].start_psn(), Psn{70000});
    EXPECT_EQ(headers[i].pdc_info, 0);
    EXPECT_EQ(headers[i].spdcid, PdcId{10});
    EXPECT_EQ(content(sent[i].body()), (std::pair{1U, i}));
    EXPECT_EQ(sent[i].body().size(), 72U);
  }
}

TEST_F(PdcTest, Pds2_ForwardRequestsCarryTheHeaderThatSesWrote) {
  node->client.next_hdr = NextHdr::RequestMedium;
  send(1);
  EXPECT_EQ(requests(turn()).at(0).next_hdr, NextHdr::RequestMedium);
}

TEST_F(PdcTest, Pds51_SynUntilTheFirstValidAckTellsTheTargetsId) {
  TestMessage& message = send(1);
  EXPECT_TRUE(requests(turn()).at(0).syn);
  pdc = message.pdc;
  send(1);
  EXPECT_TRUE(requests(turn()).at(0).syn);
  receive(ack(69999, 70001));
  send(1);
  const auto established = requests(turn()).at(0);
  EXPECT_FALSE(established.syn);
  EXPECT_EQ(established.dpdcid, kPeerPdc);
}

// With a window larger than 12 bits of psn_offset only PDS-52 is in the way.
TEST_F(PdcTest, Pds52_AtMost4096PsnsBeforeEstablishment) {
  with_mpr(64);
  send(5000);
  const auto first = requests(turn());
  ASSERT_EQ(first.size(), 4096U);
  EXPECT_EQ(first.back().psn_offset, 4095);
  EXPECT_EQ(sends_now(), 0U);
}

TEST_F(PdcTest, Pds52_RestFollowsOnceEstablished) {
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

TEST_F(PdcTest, Pds33_FirstRequestSaysClearBelowStart) {
  send(1);
  const auto header = requests(turn()).at(0);
  EXPECT_EQ(header.psn, Psn{70000});
  EXPECT_EQ(header.clear_psn(), Psn{69999});
}

TEST_F(PdcTest, Pds54_RetransmissionAfterEstablishmentHasNoSyn) {
  TestMessage& message = send(2);
  turn();
  pdc = message.pdc;
  receive(ack(69999, 70001));
  const auto again = requests(after(milliseconds(1)));  // CMS-421
  ASSERT_EQ(psns(again), (std::vector<std::uint32_t>{70000}));
  EXPECT_FALSE(again[0].syn);
  EXPECT_EQ(again[0].dpdcid, kPeerPdc);
  EXPECT_TRUE(again[0].retx);
}

TEST_F(PdcTest, Pds55_NackOfAnExistingPdcTellsTheTargetsId) {
  TestMessage& message = send(1);
  turn();
  pdc = message.pdc;
  const auto again = requests(answer_to(nack(NackCode::RcvrInferLoss, 70000)));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_FALSE(again[0].syn);
  EXPECT_EQ(again[0].dpdcid, kPeerPdc);
}

TEST_F(PdcTest, Pds55_NackWithoutPdcLeavesSynSet) {
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

// ---- windows ------------------------------------------------------------------------------------

TEST_F(PdcTest, Pds40_Pds44_DefaultMprBeforeTheFirstAck) {
  send(1100);
  EXPECT_EQ(sends_now(), 1024U);
}

TEST_F(PdcTest, Pds40_WindowOf128) {
  with_mpr(1);
  TestMessage& message = send(300);
  EXPECT_EQ(sends_now(), 128U);
  pdc = message.pdc;
  wire::AckHeader moved = ack(70009, 70009);
  moved.mpr = 1;
  EXPECT_EQ(psns(requests(answer_to(moved))).size(), 10U);
  EXPECT_EQ(sends_now(), 0U);
}

TEST_F(PdcTest, Pds40_OwnTrackingWindowLimitsAGenerousPeer) {
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
TEST_F(PdcTest, Pds42_Pds127_NothingAboveAShrunkenWindowIsSentAgain) {
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

TEST_F(PdcTest, Pds39_Pds41_MprOfAnOlderAckIsIgnored) {
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

TEST_F(PdcTest, Pds43_MprZeroKeepsThePreviousValue) {
  open();
  send(2000);
  EXPECT_EQ(sends_now(), 1024U);
  wire::AckHeader zero = ack(70100, 70100);
  zero.mpr = 0;
  EXPECT_EQ(requests(answer_to(zero)).size(), 100U);
}

TEST_F(PdcTest, Pds34_ClearPsnIsAnOffsetFromThePsn) {
  Parameters parameters = test_parameters();
  parameters.start_psn = 335;
  build(parameters);
  open();  // 335 is acknowledged
  send(2);
  const auto headers = requests(turn());
  EXPECT_EQ(headers.at(0).psn, Psn{336});
  EXPECT_EQ(headers.at(0).clear_psn_offset, -1);
  EXPECT_EQ(headers.at(1).clear_psn_offset, -2);
}

TEST_F(PdcTest, Pds35_Pds36_RetransmissionCarriesTheCurrentClearPsn) {
  open();
  send(3);
  EXPECT_EQ(requests(turn()).at(2).clear_psn(), Psn{70000});
  receive(ack(70002, 70002));
  const auto again = requests(after(milliseconds(20)));
  ASSERT_EQ(psns(again), (std::vector<std::uint32_t>{70003}));
  EXPECT_EQ(again[0].clear_psn(), Psn{70002});
}

TEST_F(PdcTest, Pds47_AskForAnAckAtHalfTheWindow) {
  send(1024);
  const auto headers = requests(turn());
  for (std::size_t i = 0; i < headers.size(); ++i) {
    EXPECT_EQ(headers[i].ar, i == 511 || i == 1023) << i;
  }
}

TEST_F(PdcTest, Pds48_UnansweredClearClosesTheWindow) {
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

TEST_F(PdcTest, Pds48_ClosedWindowWithNothingOutstandingAsksForAnAck) {
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
TEST_F(PdcTest, Pds121_ClosedWindowOfADeadPeerFailsThePdc) {
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

TEST_F(PdcTest, Pds48_ClosedWindowOfALivingPeerIsWaitedFor) {
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
TEST_F(PdcTest, Pds127_OutstandingPacketsBeyondTheWindowAskForAnAck) {
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
TEST_F(PdcTest, Pds7_Pds8_Pds30_MessagesFollowEachOtherOnOnePdc) {
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

TEST_F(PdcTest, NotNowWaitsForTheKick) {
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

TEST_F(PdcTest, Pds101_LastPacketOfAMessageAsksForAnAck) {
  open();
  send(3);
  send(2);
  const auto headers = requests(turn());
  for (const std::size_t i : {0, 1, 3}) EXPECT_FALSE(headers.at(i).ar);
  for (const std::size_t i : {2, 4}) EXPECT_TRUE(headers.at(i).ar);
}

TEST_F(PdcTest, Pds100_PerPacketModeAsksWithEveryPacket) {
  Parameters parameters = test_parameters();
  parameters.ack_per_packet = true;
  build(parameters);
  send(5);
  for (const auto& header : requests(turn())) EXPECT_TRUE(header.ar);
}

TEST_F(PdcTest, Pds1_PayloadPassesUntouched) {
  send(1, DeliveryMode::Rud, 1000);
  const auto sent = turn();
  ASSERT_EQ(sent.at(0).body().size(), 1008U);
  for (std::size_t i = 8; i < 1008; ++i) ASSERT_EQ(sent[0].body()[i], std::byte{0x5A});
}

TEST_F(PdcTest, Pds3_RequestsWaitForTheCongestionWindowAcksAndControlDoNot) {
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

TEST_F(PdcTest, Pds3_OnlyDataIsEcnCapable) {
  Pdc& accepted = accept();
  TestMessage& answer = node->message(1);
  ASSERT_TRUE(node->manager->send_on(accepted.id(), answer, now).ok());
  wire::RequestHeader asks = request(334);
  asks.ar = true;
  for (const Sent& packet : answer_to(asks)) {
    EXPECT_EQ(packet.ecn, packet.request() ? Ecn::Ect0 : Ecn::NotEct);
    EXPECT_EQ(packet.dscp, packet.request() ? 0 : 46);  // PDS-160
  }
}

TEST_F(PdcTest, Pds161_RodKeepsOneEntropyValueRudMayNot) {
  cms::Parameters paths = open_window();
  paths.paths = cms::PathPolicy::Oblivious;
  paths.path_count = 16;
  for (const DeliveryMode mode : {DeliveryMode::Rod, DeliveryMode::Rud}) {
    build(test_parameters(), paths);
    send(64, mode);
    std::set<std::uint16_t> values;
    for (const Sent& packet : turn()) values.insert(packet.entropy);
    EXPECT_EQ(values.size(), mode == DeliveryMode::Rod ? 1U : 16U);
  }
}

// ---- CLEAR --------------------------------------------------------------------------------------

TEST_F(PdcTest, Pds115_Pds116_OwedClearGoesAsACommandIfNothingElseDoes) {
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

TEST_F(PdcTest, Pds115_OwedClearRidesInTheNextRequest) {
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
TEST_F(PdcTest, Pds115_ClearHeldBackByAGapFollowsWhenTheGapCloses) {
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

TEST_F(PdcTest, Pds117_ClearRequestIsAnswered) {
  open();
  const auto sent = answer_to(control(CpType::ClearRequest, 0));
  ASSERT_EQ(controls(sent).size(), 1U);
  EXPECT_EQ(controls(sent)[0].ctl_type, CpType::Clear);
  EXPECT_EQ(controls(sent)[0].payload, 70000U);
}

// ---- closing ------------------------------------------------------------------------------------

TEST_F(PdcTest, Pds169_CloseCommandTakesTheNextPsnAndEndsWithItsAck) {
  Pdc& open_pdc = open();
  open_pdc.begin_close(now);
  const auto sent = turn();
  ASSERT_EQ(controls(sent).size(), 1U);
  EXPECT_EQ(controls(sent)[0].ctl_type, CpType::Close);
  EXPECT_EQ(controls(sent)[0].psn, Psn{70001});
  EXPECT_TRUE(controls(sent)[0].ar);
  EXPECT_EQ(open_pdc.state(), PdcState::CloseAckWait);
  receive(ack(70001, 70001));
  turn();
  EXPECT_EQ(node->manager->find(pdc), nullptr);
  ASSERT_EQ(node->client.closed.size(), 1U);
  EXPECT_FALSE(node->client.closed[0].error.has_value());
  EXPECT_EQ(counters().pdcs_closed, 1U);
}

TEST_F(PdcTest, Pds169_EverythingSentAndAcknowledgedBeforeTheClose) {
  Pdc& open_pdc = open();
  send(2);
  open_pdc.begin_close(now);
  const auto sent = turn();
  EXPECT_EQ(requests(sent).size(), 2U);
  EXPECT_TRUE(controls(sent).empty());
  EXPECT_EQ(open_pdc.state(), PdcState::AckWait);
  EXPECT_TRUE(controls(answer_to(ack(70001, 70001))).empty());
  EXPECT_EQ(controls(answer_to(ack(70002, 70002))).size(), 1U);
}

TEST_F(PdcTest, Pds14_UnfinishedMessageKeepsThePdcOpen) {
  Pdc& open_pdc = open();
  TestMessage& message = send(3);
  message.block_at = 2;
  turn();
  receive(ack(70002, 70002));
  open_pdc.begin_close(now);
  EXPECT_TRUE(controls(turn()).empty());
  EXPECT_EQ(open_pdc.state(), PdcState::Quiesce);
  message.block_at = 0;
  open_pdc.kick();
  turn();
  EXPECT_EQ(controls(answer_to(ack(70003, 70003))).size(), 1U);
}

TEST_F(PdcTest, Pds15_LockKeepsThePdcOpen) {
  Pdc& open_pdc = open();
  node->manager->lock(pdc);
  node->manager->lock(pdc);
  open_pdc.begin_close(now);
  EXPECT_TRUE(turn().empty());
  node->manager->unlock(pdc);
  EXPECT_TRUE(turn().empty());
  node->manager->unlock(pdc);
  let_close(turn());
}

// The last response may announce that the peer will read the data of the message.
TEST_F(PdcTest, Pds15_LockThatComesWithTheLastResponseStillKeepsThePdcOpen) {
  Pdc& open_pdc = open();
  send(1);
  turn();
  open_pdc.begin_close(now);
  turn();
  EXPECT_EQ(open_pdc.state(), PdcState::AckWait);
  node->manager->lock(pdc);
  EXPECT_TRUE(controls(answer_to(ack(70001, 70001))).empty());
  TestMessage& more = node->message(1);
  ASSERT_TRUE(node->manager->send_on(pdc, more, now).ok());
  EXPECT_EQ(requests(turn()).size(), 1U);
  node->manager->unlock(pdc);
  EXPECT_TRUE(controls(turn()).empty()) << "its answer is still to come";
  EXPECT_EQ(controls(answer_to(ack(70002, 70002))).size(), 1U);
}

TEST_F(PdcTest, Pds56_CloseWaitsForEstablishment) {
  TestMessage& message = send(1);
  turn();
  pdc = message.pdc;
  node->manager->find(pdc)->begin_close(now);
  EXPECT_TRUE(controls(turn()).empty());
  EXPECT_EQ(node->manager->find(pdc)->state(), PdcState::Creating);
  let_close(answer_to(ack(70000, 70000)));
  EXPECT_EQ(node->manager->find(pdc), nullptr);
}

// Its only message was taken back before anything left: the peer knows nothing of it.
TEST_F(PdcTest, PdcThatNeverSentIsClosedWithoutAWord) {
  TestMessage& message = node->message(1);
  ASSERT_TRUE(node->manager->send(message, to_peer(), now).ok());
  ASSERT_TRUE(node->manager->cancel(message));
  EXPECT_TRUE(turn().empty());
  node->manager->begin_close_all(now);
  EXPECT_TRUE(turn().empty());
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
}

TEST_F(PdcTest, Pds172_CloseRequestIsAcknowledgedBeforeClosingStarts) {
  open();
  receive(control(CpType::CloseRequest, 70000));
  const auto sent = turn();
  ASSERT_EQ(sent.size(), 2U);
  ASSERT_TRUE(sent[0].ack());
  EXPECT_EQ(sent[0].ack()->ack_psn(), Psn{70000});
  ASSERT_TRUE(sent[1].control());
  EXPECT_EQ(sent[1].control()->ctl_type, CpType::Close);
}

TEST_F(PdcTest, Pds105_CloseWantedInAnAckStartsClosing) {
  open();
  wire::AckHeader wanted = ack(70000, 70000);
  wanted.req = AckRequestCode::Close;
  let_close(answer_to(wanted));
}

TEST_F(PdcTest, Pds171_InvDpdcidForTheCloseCommandIsSuccess) {
  for (const NackCode code : {NackCode::InvDpdcid, NackCode::ClosingInErr}) {
    build(test_parameters());
    open().begin_close(now);
    turn();
    wire::NackHeader gone = nack(code, 70001);
    if (code == NackCode::InvDpdcid) gone.spdcid = {};
    receive(gone);
    turn();
    ASSERT_EQ(node->client.closed.size(), 1U);
    EXPECT_FALSE(node->client.closed[0].error.has_value());
    EXPECT_EQ(node->packets.in_use(), 0U);
  }
}

// The window is full of guaranteed responses and the ACK that would show their CLEAR was lost.
TEST_F(PdcTest, CloseFindsOutThatTheWindowHasMovedOn) {
  with_mpr(1);
  Pdc& open_pdc = open();
  send(128);
  turn();
  answer_with_held_responses();
  open_pdc.begin_close(now);
  turn();
  EXPECT_EQ(open_pdc.state(), PdcState::AckWait);
  const auto asked = controls(after(milliseconds(20)));
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].ctl_type, CpType::AckRequest);
  wire::AckHeader moved = ack(70128, 70128);
  moved.mpr = 1;
  let_close(answer_to(moved));
}

TEST_F(PdcTest, Pds174_IdleInitiatorCloses) {
  open();
  std::vector<Sent> sent;
  const Time idle_since = now;
  while (sent.empty() && now < idle_since + seconds(20)) sent = after(milliseconds(100));
  EXPECT_GE(now, idle_since + seconds(10));
  EXPECT_LE(now, idle_since + seconds(11));
  let_close(sent);
}

TEST_F(PdcTest, Pds173_IdleTargetAsksForTheClose) {
  accept();
  std::vector<Sent> sent;
  const Time idle_since = now;
  while (sent.empty() && now < idle_since + seconds(100)) sent = after(milliseconds(100));
  EXPECT_GE(now, idle_since + seconds(60));
  EXPECT_LE(now, idle_since + seconds(61));
  ASSERT_EQ(controls(sent).size(), 1U);
  EXPECT_EQ(controls(sent)[0].ctl_type, CpType::CloseRequest);
  EXPECT_EQ(controls(sent)[0].psn, Psn{333});  // the return direction begins at Start_PSN (PDS-32)
  EXPECT_TRUE(controls(sent)[0].ar);
}

// PDS-140: without outstanding return packets only this tells a target that its initiator died.
TEST_F(PdcTest, Pds140_Pds173_Pds177_TargetOfADeadInitiatorClosesInError) {
  Pdc& accepted = accept();
  accepted.begin_close(now);
  EXPECT_EQ(controls(turn()).size(), 1U);
  receive(ack(333, 333));
  const Time asked = now;
  const Duration patience = silence_limit(test_parameters(), {});
  ASSERT_GT(patience, test_parameters().close_request_time);
  while (node->manager->open_pdcs() > 0 && now < asked + seconds(30)) after(milliseconds(5));
  EXPECT_GE(now, asked + patience);
  EXPECT_LE(now, asked + patience + milliseconds(10));
  ASSERT_EQ(node->client.closed.size(), 1U);
  EXPECT_EQ(node->client.closed[0].error, PdsError::ClosedInError);
  EXPECT_EQ(counters().close_in_error, 1U);
  node->drain();
  EXPECT_EQ(node->packets.in_use(), 0U);
}

// An initiator that polls every seven seconds finishes first what it has begun.
TEST_F(PdcTest, Pds177_SlowInitiatorHasTheTimeOfASilentPeer) {
  Pdc& accepted = accept();
  accepted.begin_close(now);
  turn();
  receive(ack(333, 333));
  for (std::uint32_t psn = 334; psn < 337; ++psn) {
    after(seconds(7));
    receive(retransmission(psn));
    turn();
  }
  after(seconds(7));
  EXPECT_EQ(delivered_psns(), (std::vector<std::uint32_t>{333, 334, 335, 336}));
  EXPECT_EQ(acks(answer_to(control(CpType::Close, 337))).size(), 1U);
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
  EXPECT_EQ(counters().close_in_error, 0U);
}

TEST_F(PdcTest, Pds177_CloseCommandInTimeEndsTheWait) {
  Pdc& accepted = accept();
  accepted.begin_close(now);
  turn();
  receive(ack(333, 333));
  now += milliseconds(999);
  receive(control(CpType::Close, 334));
  turn();
  ASSERT_EQ(node->client.closed.size(), 1U);
  EXPECT_FALSE(node->client.closed[0].error.has_value());
}

TEST_F(PdcTest, Pds155_NoopShowsThatTheExpectedPeerLives) {
  open();
  node->manager->lock(pdc);
  const auto sent = controls(after(milliseconds(500)));
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].ctl_type, CpType::Noop);
  EXPECT_EQ(sent[0].psn, Psn{70001});
  EXPECT_TRUE(sent[0].ar);
  // Resent with RETX like a request, and it fails the PDC like one.
  const auto again = controls(after(milliseconds(20)));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_TRUE(again[0].retx);
  EXPECT_EQ(again[0].psn, Psn{70001});
  for (int i = 0; i < 4000 && node->client.closed.empty(); ++i) after(milliseconds(5));
  ASSERT_EQ(node->client.closed.size(), 1U);
  EXPECT_EQ(node->client.closed[0].error, PdsError::RtoExhausted);
}

TEST_F(PdcTest, Pds155_NoopObeysTheWindow) {
  with_mpr(1);
  open();
  send(128);
  turn();
  for (std::uint32_t psn = 70001; psn <= 70128; ++psn) {
    wire::AckHeader held = ack(70000, psn);
    held.mpr = 1;
    receive(held);
  }
  node->manager->lock(pdc);
  turn();
  for (const auto& header : controls(after(seconds(1)))) EXPECT_NE(header.ctl_type, CpType::Noop);
}

TEST_F(PdcTest, Pds135_FailedInitiatorSaysCloseFailedTargetAsksForIt) {
  open();
  node->manager->abort(pdc, now);
  auto last = controls(node->drain());
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last[0].ctl_type, CpType::Close);
  EXPECT_EQ(last[0].psn, Psn{70001});
  EXPECT_TRUE(turn().empty());

  accept();
  node->manager->abort(pdc, now);
  last = controls(node->drain());
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last[0].ctl_type, CpType::CloseRequest);
}

TEST_F(PdcTest, Pds135_FailureDuringTheCloseFreesAtOnce) {
  open().begin_close(now);
  turn();
  node->manager->abort(pdc, now);
  EXPECT_TRUE(turn().empty());
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
  EXPECT_EQ(node->packets.in_use(), 0U);
}

// ---- few packets --------------------------------------------------------------------------------

TEST_F(PdcTest, CloseThatFindsNoPacketIsTriedAgain) {
  build(test_parameters(), open_window(), 8);
  open().begin_close(now);
  std::vector<Packet*> taken;
  while (Packet* packet = node->packets.take()) taken.push_back(packet);
  EXPECT_TRUE(turn().empty());
  for (Packet* packet : taken) node->packets.give_back(packet);
  let_close(after(milliseconds(20)));
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
}

TEST_F(PdcTest, CloseRequestThatFindsNoPacketIsTriedAgain) {
  build(test_parameters(), open_window(), 8);
  Pdc& accepted = accept();
  std::vector<Packet*> taken;
  while (Packet* packet = node->packets.take()) taken.push_back(packet);
  accepted.begin_close(now);
  EXPECT_TRUE(turn().empty());
  for (Packet* packet : taken) node->packets.give_back(packet);
  const auto sent = controls(after(milliseconds(20)));
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].ctl_type, CpType::CloseRequest);
}

TEST_F(PdcTest, DataLeavesPacketsForAcksAndGoesOnWhenSomeComeBack) {
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
