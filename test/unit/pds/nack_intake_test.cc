// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What NACKs and time-outs do to packets that were sent.
#include "pds/nack_intake.h"

#include <algorithm>
#include <map>
#include <set>

#include "pds/nack.h"
#include "pds/pdc.h"
#include "pds/retransmit.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

using wire::CpType;

class NackIntakeTest : public Bench {
 protected:
  wire::AckHeader sack(std::uint32_t cack, std::uint32_t ack_psn, std::uint64_t bitmap) const {
    wire::AckHeader header = ack(cack, ack_psn);
    header.sack_bitmap = bitmap;  // from cack + 1 on
    return header;
  }
};

// ---- loss ---------------------------------------------------------------------------------------

// PDS-120, PDS-121, PDS-137: to the microsecond, in a time line whose steps are timer ticks.
TEST_F(NackIntakeTest, Pds119_Pds120_Pds121_Pds137_BackOffAndFailureTimesAreExact) {
  Parameters parameters = test_parameters();
  parameters.rto_init = milliseconds(20);
  parameters.rto_cap = milliseconds(100);
  parameters.max_rto_retransmissions = 4;
  build(parameters);
  TestMessage& message = send(1);
  turn();
  const Time sent_at = now;
  std::vector<Duration> resent;
  while (message.errors.empty()) {
    const Time next = node->manager->next_deadline();
    ASSERT_NE(next, kNever);
    now = std::max(now, next);
    for (const auto& header : requests(turn())) {
      EXPECT_EQ(header.psn, Psn{70000});
      EXPECT_TRUE(header.retx);
      EXPECT_TRUE(header.ar);
      resent.push_back(now - sent_at);
    }
  }
  EXPECT_EQ(resent, (std::vector<Duration>{milliseconds(20), milliseconds(60), milliseconds(140),
                                           milliseconds(240)}));
  EXPECT_EQ(now - sent_at, milliseconds(340));
  EXPECT_EQ(now - sent_at, time_to_failure(parameters));
  EXPECT_EQ(message.errors, (std::vector{PdsError::RtoExhausted}));  // PDS-138: a time-out
  EXPECT_EQ(node->packets.in_use(), 0U);
}

TEST_F(NackIntakeTest, Pds121_LargestCountNeverFails) {
  Parameters parameters = test_parameters();
  parameters.max_rto_retransmissions = kUnlimited;
  parameters.rto_cap = milliseconds(20);
  build(parameters);
  TestMessage& message = send(1);
  for (int i = 0; i < 100; ++i) after(milliseconds(20));
  EXPECT_TRUE(message.errors.empty());
  EXPECT_EQ(counters().rto_retransmissions, 99U);
}

TEST_F(NackIntakeTest, Pds124_Retransmission_SamePacketRetxAndAr) {
  open();
  send(2);
  const auto first = turn();
  const auto again = after(milliseconds(20));
  ASSERT_EQ(again.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    wire::RequestHeader expected = *first[i].request();
    expected.retx = expected.ar = true;
    EXPECT_EQ(*again[i].request(), expected);
    EXPECT_TRUE(std::ranges::equal(first[i].body(), again[i].body()));
  }
}

TEST_F(NackIntakeTest, Pds125_ProgressOfCackRestartsTheCount) {
  outstanding(2);
  after(milliseconds(20));  // both resent: time-out 40 ms now
  wire::AckHeader answer = ack(70001, 70001);
  answer.retx = true;
  receive(answer);
  EXPECT_TRUE(requests(after(milliseconds(19))).empty());
  EXPECT_EQ(requests(after(milliseconds(1))).size(), 1U);  // 20 ms after the resending
}

// The retries after NACKs too: a packet that is refused while others get on may be refused again.
TEST_F(NackIntakeTest, Pds125_ProgressOfCackRestartsTheCountOfNacks) {
  Parameters parameters = test_parameters();
  parameters.max_nack_retransmissions = 3;
  build(parameters);
  TestMessage& message = outstanding(10);
  const auto refuse = [&] {
    receive(nack(NackCode::NoPktBuffer, 70010));
    after(milliseconds(2));
  };
  for (std::uint32_t cack = 70001; cack < 70009; ++cack) {
    refuse();
    refuse();
    receive(ack(cack, cack));
  }
  EXPECT_TRUE(message.errors.empty());
  for (int i = 0; i < 4; ++i) refuse();
  EXPECT_EQ(message.errors, std::vector(2, PdsError::NackExhausted));
}

// CMS-421: a quarter of the base RTT, of 100 us here, and until the timer notices.
constexpr Duration kInferenceWait = microseconds(25) + TimerWheel::kTick;

TEST_F(NackIntakeTest, Pds130_ThresholdOfSackedPsnsAboveMeansLost) {
  cms::Parameters many_paths = open_window();
  many_paths.paths = cms::PathPolicy::Oblivious;
  many_paths.path_count = 64;  // most packets were alone on theirs
  many_paths.path_inference = false;
  many_paths.fixed_window_bytes = std::uint64_t{64} * many_paths.mtu_bytes;
  build(test_parameters(), many_paths);
  open();
  send(70);
  turn();
  // 70001 is missing; 70002 .. 70064 are 63 PSNs.
  EXPECT_TRUE(answer_to(sack(70000, 70002, ~0ULL << 1)).empty());
  wire::AckHeader more = ack(70000, 70065);
  more.sack_psn_offset = 2;
  more.sack_bitmap = ~0ULL;  // 70002 .. 70065
  EXPECT_EQ(psns(requests(answer_to(more))), (std::vector<std::uint32_t>{70001}));
  EXPECT_EQ(counters().inferred_loss_retransmissions, 1U);
}

TEST_F(NackIntakeTest, Pds131_LaterPacketOnTheSamePathMeansLost) {
  outstanding(3);
  receive(ack(70000, 70003));
  EXPECT_EQ(psns(requests(after(kInferenceWait))), (std::vector<std::uint32_t>{70001, 70002}));
}

TEST_F(NackIntakeTest, Pds131_LaterPacketOnAnotherPathProvesNothing) {
  cms::Parameters two_paths = open_window();
  two_paths.paths = cms::PathPolicy::Oblivious;
  two_paths.path_count = 2;
  build(test_parameters(), two_paths);
  open();  // 70000 took one path
  send(3);
  std::vector<std::uint16_t> entropy;
  for (const Sent& packet : turn()) entropy.push_back(packet.entropy);
  ASSERT_EQ(entropy.size(), 3U);
  std::vector<std::uint32_t> expected;
  for (std::uint32_t i = 0; i < 2; ++i) {
    if (entropy[i] == entropy[2]) expected.push_back(70001 + i);
  }
  ASSERT_LT(expected.size(), 2U);
  receive(ack(70000, 70003));
  EXPECT_EQ(psns(requests(after(kInferenceWait))), expected);
}

TEST_F(NackIntakeTest, Pds132_InferredLossIsResentOncePerRto) {
  outstanding(2);
  receive(ack(70000, 70002));
  EXPECT_EQ(requests(after(kInferenceWait)).size(), 1U);
  for (std::uint32_t psn = 70003; psn < 70006; ++psn) {  // each sent behind the retransmission
    send(1);
    turn();
    receive(ack(70000, psn));
    EXPECT_EQ(requests(after(kInferenceWait)).size(), 0U);
  }
}

TEST_F(NackIntakeTest, Pds133_ReportedLossIsResentAtOnce) {
  outstanding(3);
  for (const NackCode code : {NackCode::RcvrInferLoss, NackCode::Trimmed}) {
    const auto again = requests(answer_to(nack(code, 70002)));
    ASSERT_EQ(psns(again), (std::vector<std::uint32_t>{70002}));
    EXPECT_TRUE(again[0].retx);
  }
  EXPECT_EQ(requests(after(milliseconds(20))).size(), 3U);  // the time-out of each runs on
}

TEST_F(NackIntakeTest, Pds122_ShortageIsRetriedAfterNackRetxTime) {
  outstanding(2);
  EXPECT_TRUE(answer_to(nack(NackCode::NoResource, 70001)).empty());
  EXPECT_TRUE(requests(after(milliseconds(1) - Duration(1))).empty());
  EXPECT_EQ(psns(requests(after(TimerWheel::kTick))), (std::vector<std::uint32_t>{70001}));
  EXPECT_EQ(counters().rto_retransmissions, 0U);
}

TEST_F(NackIntakeTest, Pds122_NackRetriesAreCountedApart) {
  Parameters parameters = test_parameters();
  parameters.max_nack_retransmissions = 3;
  build(parameters);
  TestMessage& message = outstanding(1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(answer_to(nack(NackCode::NoPktBuffer, 70001)).empty());
    EXPECT_EQ(requests(after(milliseconds(2))).size(), 1U);
  }
  receive(nack(NackCode::NoPktBuffer, 70001));
  EXPECT_EQ(message.errors, (std::vector{PdsError::NackExhausted}));
}

TEST_F(NackIntakeTest, NackOfAPacketAlreadyQueuedAgainSendsItOnce) {
  outstanding(1);
  receive(nack(NackCode::RcvrInferLoss, 70001));
  receive(nack(NackCode::NoPktBuffer, 70001));
  EXPECT_EQ(requests(turn()).size(), 1U);
  EXPECT_TRUE(requests(after(milliseconds(2))).empty());
}

// ---- ROD ----------------------------------------------------------------------------------------

TEST_F(NackIntakeTest, Pds163_Pds166_RodOooGoesBackToTheGap) {
  outstanding(6, DeliveryMode::Rod);
  receive(ack(70002, 70002));
  const auto again = requests(answer_to(nack(NackCode::RodOoo, 70004)));
  EXPECT_EQ(psns(again), (std::vector<std::uint32_t>{70003, 70004, 70005, 70006}));
  for (const auto& header : again) EXPECT_TRUE(header.retx);
}

// A PDC that the target has not accepted, with 70000 .. 69999 + count outstanding.
class RefusedPdc : public NackIntakeTest {
 protected:
  void outstanding_with_syn(std::uint32_t count, DeliveryMode mode) {
    build(test_parameters());
    pdc = send(count, mode).pdc;
    ASSERT_EQ(requests(turn()).size(), count);
  }
  wire::NackHeader refusal_of_pdc(NackCode code, std::uint32_t psn) const {
    wire::NackHeader refused = nack(code, psn);
    refused.spdcid = PdcId{};
    return refused;
  }
  static Duration pause() { return test_parameters().nack_retransmission_time + TimerWheel::kTick; }
};

TEST_F(RefusedPdc, Pds223_OnlyTheFirstPacketIsRepeated) {
  for (const DeliveryMode mode : {DeliveryMode::Rud, DeliveryMode::Rod}) {
    outstanding_with_syn(4, mode);
    for (int round = 0; round < 3; ++round) {
      const NackCode later = mode == DeliveryMode::Rod ? NackCode::RodOoo : NackCode::NoPdcAvail;
      receive(refusal_of_pdc(NackCode::NoPdcAvail, 70000));
      for (std::uint32_t psn = 70001; psn <= 70003; ++psn) receive(refusal_of_pdc(later, psn));
      EXPECT_TRUE(requests(turn()).empty());
      EXPECT_EQ(psns(requests(after(pause()))), (std::vector<std::uint32_t>{70000}));
    }
  }
}

// The NACK of the first packet is lost: a NACK of another packet is an answer to it, too.
TEST_F(RefusedPdc, Pds223_AnyRefusalRepeatsTheFirstPacket) {
  for (const NackCode code : {NackCode::NoPdcAvail, NackCode::NoCccAvail, NackCode::NoBitmap,
                              NackCode::NoResource, NackCode::RodOoo}) {
    outstanding_with_syn(4, DeliveryMode::Rod);
    for (int round = 0; round < 40; ++round) {
      receive(refusal_of_pdc(code, 70003));
      EXPECT_EQ(psns(requests(after(pause()))), (std::vector<std::uint32_t>{70000}));
    }
    EXPECT_EQ(counters().rto_exhausted, 0U);
  }
}

TEST_F(RefusedPdc, Pds223_NoNewPacketLeavesMeanwhile) {
  outstanding_with_syn(2, DeliveryMode::Rud);
  receive(refusal_of_pdc(NackCode::NoPdcAvail, 70001));
  send(3);
  EXPECT_TRUE(requests(turn()).empty());
  EXPECT_EQ(psns(requests(answer_to(ack(70000, 70000)))),
            (std::vector<std::uint32_t>{70002, 70003, 70004}));
}

// Data that a full window has stopped wait for the target now, and not in the line of the
// congestion context, which may have space meanwhile.
TEST_F(RefusedPdc, Cms12_HeldData_DoNotWaitForTheContext) {
  outstanding_with_syn(2, DeliveryMode::Rud);
  Pdc& refused = *node->manager->find(pdc);
  refused.send_side().wait().begin_for_ccc(refused, now);
  ASSERT_FALSE(refused.ccc().waiting.empty());
  receive(refusal_of_pdc(NackCode::NoPdcAvail, 70001));
  EXPECT_TRUE(refused.ccc().waiting.empty());
}

// The first packet is not held: where it lacks leave, nothing but its place in the line sends it.
TEST_F(RefusedPdc, Cms12_TheFirstPacketKeepsItsPlaceInTheLine) {
  outstanding_with_syn(2, DeliveryMode::Rud);
  Pdc& refused = *node->manager->find(pdc);
  SendSide& side = refused.send_side();
  side.queue_resend(Psn{70000}, side.window().at(Psn{70000}), now + pause());
  side.wait().begin_for_ccc(refused, now);
  receive(refusal_of_pdc(NackCode::NoPdcAvail, 70001));
  EXPECT_FALSE(refused.ccc().waiting.empty());
}

// A NACK of before the refusal, for the same packet: nothing but the first packet is under way, so
// that credit for it may be asked for.
TEST_F(RefusedPdc, Pds223_TrimOfAHeldPacketSendsNothing) {
  outstanding_with_syn(4, DeliveryMode::Rod);
  receive(refusal_of_pdc(NackCode::NoCccAvail, 70000));
  receive(refusal_of_pdc(NackCode::Trimmed, 70002));
  EXPECT_TRUE(requests(turn()).empty());
  EXPECT_EQ(psns(requests(after(pause()))), (std::vector<std::uint32_t>{70000}));
}

TEST_F(RefusedPdc, Pds223_AllLeaveOnceTheTargetHasAPdc) {
  for (const DeliveryMode mode : {DeliveryMode::Rud, DeliveryMode::Rod}) {
    outstanding_with_syn(4, mode);
    receive(refusal_of_pdc(NackCode::NoPdcAvail, 70000));
    ASSERT_EQ(requests(after(pause())).size(), 1U);
    const auto again = requests(answer_to(ack(70000, 70000)));
    EXPECT_EQ(psns(again), (std::vector<std::uint32_t>{70001, 70002, 70003}));
    for (const auto& header : again) EXPECT_TRUE(header.retx && !header.syn);
    EXPECT_EQ(counters().rto_retransmissions, 0U);
  }
}

// The target has got a PDC between two packets of one window: what follows has arrived there.
TEST_F(RefusedPdc, Pds223_PacketsReportedInTimeStay) {
  outstanding_with_syn(4, DeliveryMode::Rud);
  receive(refusal_of_pdc(NackCode::NoPdcAvail, 70000));
  EXPECT_TRUE(requests(answer_to(ack(69999, 70001))).empty());
  EXPECT_TRUE(requests(answer_to(ack(69999, 70002))).empty());
  EXPECT_EQ(psns(requests(after(pause()))), (std::vector<std::uint32_t>{70003, 70000}));
}

TEST_F(NackIntakeTest, Pds166_WhatTheDestinationBufferedIsNotResent) {
  outstanding(6, DeliveryMode::Rod);
  receive(ack(70002, 70002));
  receive(sack(70002, 70002, 0b10));  // 70004 is there
  EXPECT_EQ(psns(requests(answer_to(nack(NackCode::RodOoo, 70004)))),
            (std::vector<std::uint32_t>{70003}));
}

TEST_F(NackIntakeTest, RodInfersNoLossFromSack) {
  outstanding(6, DeliveryMode::Rod);
  EXPECT_TRUE(answer_to(sack(70000, 70000, 0b111110)).empty());
}

// After a time-out all packets take another path, at most once in ten round trips.
TEST_F(NackIntakeTest, Cms401_RodPdcLeavesAPathAfterATimeOut) {
  cms::Parameters paths = open_window();
  paths.base_rtt =
      milliseconds(4);  // 40 ms are ten of it, the first time-outs come after 20 and 60
  build(test_parameters(), paths);
  std::vector<std::set<std::uint16_t>> values;
  const auto note = [&](const std::vector<Sent>& sent) {
    values.emplace_back();
    for (const Sent& packet : sent) values.back().insert(packet.entropy);
    EXPECT_EQ(values.back().size(), 1U);
  };
  send(4, DeliveryMode::Rod);
  note(turn());
  note(after(milliseconds(22)));
  EXPECT_EQ(values[1], values[0]) << "too soon";
  note(after(milliseconds(42)));
  EXPECT_NE(values[2], values[0]);
  EXPECT_EQ(counters().reroutes, 1U);
  paths.tuning.reroute_rtts = 0;
  build(test_parameters(), paths);
  values.clear();
  send(4, DeliveryMode::Rod);
  note(turn());
  note(after(milliseconds(100)));
  EXPECT_EQ(values[1], values[0]);
}

// Answers, control packets, and time-outs where CMS-401 is off, change nothing about it.
TEST_F(NackIntakeTest, Pds161_OneEntropyValueForTheLifeOfARodPdc) {
  cms::Parameters paths = open_window();
  paths.tuning.reroute_rtts = 0;
  paths.paths = cms::PathPolicy::Oblivious;
  paths.path_count = 16;
  build(test_parameters(), paths);
  std::set<std::uint16_t> values;
  std::size_t packets = 0;
  const auto note = [&](const std::vector<Sent>& sent) {
    for (const Sent& packet : sent) values.insert(packet.entropy);
    packets += sent.size();
  };
  TestMessage& message = send(20, DeliveryMode::Rod);
  pdc = message.pdc;
  note(turn());
  wire::AckHeader marked = ack(70003, 70003);
  marked.ce = true;
  note(answer_to(marked));
  for (int i = 0; i < 9; ++i) note(after(seconds(1)));
  note(answer_to(nack(NackCode::RodOoo, 70006)));
  note(answer_to(control(CpType::ClearRequest, 0)));
  node->manager->find(pdc)->begin_close(now);
  note(answer_to(ack(70019, 70019)));
  EXPECT_GT(packets, 60U);
  EXPECT_EQ(values.size(), 1U);
}

// ---- NACKs that matter, and those that do not
// ----------------------------------------------------

// Test idea 9 of the reference.
TEST_F(NackIntakeTest, Pds141_NackOfAPsnNotOutstandingChangesNothing) {
  TestMessage& message = outstanding(2);
  for (int code = 0; code < 256; ++code) {
    for (const std::uint32_t psn : {70000U, 70003U, 0U, 70001U + 0x80000000U}) {
      receive(nack(static_cast<NackCode>(code), psn));
      ASSERT_TRUE(turn().empty()) << code;
    }
  }
  EXPECT_EQ(node->manager->find(pdc)->state(), PdcState::Established);
  EXPECT_EQ(counters().nacks_ignored, 256U * 4);
  EXPECT_TRUE(message.errors.empty());
}

TEST_F(NackIntakeTest, Pds144_FatalNackMustMatchPeerAndPsn) {
  TestMessage& message = outstanding(1);
  wire::NackHeader stray = nack(NackCode::UnexpEvent, 70001);
  stray.spdcid = PdcId{901};
  receive(stray);
  EXPECT_TRUE(message.errors.empty());
  receive(nack(NackCode::UnexpEvent, 70001));
  EXPECT_EQ(message.errors, (std::vector{PdsError::NotConsumed}));
}

// The packet that the NACK names, and packets never sent, may go to a new PDC if the code says so,
// and the packets sent behind it if the peer had closed the PDC; of no other packet is it known
// whether it was consumed.
TEST_F(NackIntakeTest, Pds134_Pds142_FatalNackFailsEverythingOnce) {
  for (int code = 0; code < 256; ++code) {
    const auto nack_code = static_cast<NackCode>(code);
    if (!is_fatal(nack_code)) continue;
    const bool elsewhere = nack_action(nack_code) == NackAction::FailUnconsumed;
    build(test_parameters());
    TestMessage& message = outstanding(3);
    TestMessage& waiting = node->message(1);
    waiting.blocked = true;
    ASSERT_TRUE(node->manager->send(waiting, to_peer(), now).ok());
    receive(nack(nack_code, 70002));
    turn();
    EXPECT_TRUE(Node::answered_once(message));
    std::vector<PdsError> errors(3, nack_error(nack_code));
    if (elsewhere) errors[1] = PdsError::NotConsumed;  // 70001, 70002, 70003
    const bool gone = nack_code == NackCode::Closing || nack_code == NackCode::InvDpdcid;
    if (gone) errors[2] = PdsError::NotConsumed;
    EXPECT_EQ(message.errors, errors) << code;
    EXPECT_EQ(waiting.failed, elsewhere ? PdsError::NotConsumed : nack_error(nack_code));
    ASSERT_EQ(node->client.closed.size(), 1U);
    EXPECT_EQ(node->client.closed[0].error, nack_error(nack_code));
    EXPECT_EQ(node->packets.in_use(), 0U);
    EXPECT_EQ(counters().pdcs_failed, 1U);
  }
}

// A copy of it may have been consumed before the peer closed the PDC.
TEST_F(NackIntakeTest, Pds142_SentTwiceOrReported_MayBeConsumed) {
  TestMessage& resent = outstanding(1);
  ASSERT_EQ(requests(after(milliseconds(20))).size(), 1U);
  receive(nack(NackCode::InvDpdcid, 70001));
  EXPECT_EQ(resent.errors, (std::vector{PdsError::ProtocolError}));

  build(test_parameters());
  TestMessage& reported = outstanding(2);
  wire::AckHeader sack = ack(70000, 70000);
  sack.type = wire::PdsType::AckCc;
  sack.sack_psn_offset = 2;
  sack.sack_bitmap = 1;
  receive(sack);
  receive(nack(NackCode::InvDpdcid, 70002));
  EXPECT_EQ(reported.errors, std::vector(2, PdsError::ProtocolError));
}

// PDS-176: the PDC is remembered there, and all that it has consumed comes before this packet.
TEST_F(NackIntakeTest, Pds142_Pds176_AfterClosingCopiesDoNotMatter) {
  TestMessage& resent = outstanding(2);
  ASSERT_EQ(requests(after(milliseconds(20))).size(), 2U);
  receive(nack(NackCode::Closing, 70001));
  EXPECT_EQ(resent.errors, std::vector(2, PdsError::NotConsumed));

  build(test_parameters());
  TestMessage& first_unknown = outstanding(2);
  ASSERT_EQ(requests(after(milliseconds(20))).size(), 2U);
  receive(nack(NackCode::Closing, 70002));
  EXPECT_EQ(first_unknown.errors, (std::vector{PdsError::ClosedInError, PdsError::NotConsumed}));
}

TEST_F(NackIntakeTest, Pds142_WhoKnowsNoSuchPdcIsNotAskedToCloseIt) {
  for (const NackCode code : {NackCode::InvDpdcid, NackCode::PdcHdrMismatch}) {
    build(test_parameters());
    outstanding(1);
    receive(nack(code, 70001));
    EXPECT_TRUE(controls(turn()).empty());
  }
  build(test_parameters());
  outstanding(1);
  receive(nack(NackCode::PdcModeMismatch, 70001));
  EXPECT_EQ(controls(turn()).size(), 1U);
}

TEST_F(NackIntakeTest, Pds143_SesAtWork_RestartsTimerWithoutRetry) {
  TestMessage& message = outstanding(1);
  for (int i = 0; i < 100; ++i) {  // many more than Max_RTO_Retx_Cnt
    now += milliseconds(20);
    ASSERT_EQ(requests(turn()).size(), 1U) << i;
    receive(nack(NackCode::RcvdSesProcg, 70001));
    ASSERT_TRUE(turn().empty());
  }
  EXPECT_TRUE(message.errors.empty());
  receive(ack(70001, 70001));
  EXPECT_TRUE(Node::answered_once(message));
}

TEST_F(NackIntakeTest, Pds143_SesProcTimeoutBoundsIt) {
  TestMessage& message = outstanding(1);
  const Time first_sent = now;
  while (message.errors.empty() && now < first_sent + seconds(60)) {
    after(milliseconds(10));
    receive(nack(NackCode::RcvdSesProcg, 70001));
  }
  EXPECT_EQ(message.errors, (std::vector{PdsError::ClosedInError}));
  EXPECT_GE(now - first_sent, seconds(30));
  EXPECT_LE(now - first_sent, seconds(30) + milliseconds(20));
}

}  // namespace
}  // namespace uet::pds::testing
