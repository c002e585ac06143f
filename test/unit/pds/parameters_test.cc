// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Parameters of revision 1.0.3. An MP_RANGE below 128 PSNs, which the wire can only call mpr 0
// (PDS-218, PDS-219): at the source, at the destination, and at both ends of a network that loses
// packets; Syn_Retx_Safety_Time (PDS-217).
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

Parameters with_zero_for(std::uint8_t psns, std::uint8_t default_mpr = kLeastMpr) {
  Parameters parameters = test_parameters();
  parameters.mpr_zero_psns = psns;
  parameters.default_mpr = default_mpr;
  return parameters;
}

class SmallRange : public Bench {
 protected:
  void build_for(std::uint8_t psns, std::uint8_t default_mpr = kLeastMpr) {
    build(with_zero_for(psns, default_mpr), open_window());
  }
  // An ACK of all up to `psn` that says mpr 0.
  wire::AckHeader zero_ack(std::uint32_t psn) const {
    wire::AckHeader header = ack(psn, psn);
    header.mpr = 0;
    return header;
  }
  // Opens a PDC whose peer has said mpr 0.
  void open_to_zero() {
    open();
    receive(zero_ack(70000));
    turn();
  }
};

class SmallRangeSource : public SmallRange, public ::testing::WithParamInterface<int> {};

TEST_P(SmallRangeSource, Pds218_Pds219_SourceStopsAtTheRangeOfMprZero) {
  const auto range = static_cast<std::uint32_t>(GetParam());
  build_for(static_cast<std::uint8_t>(range));
  open_to_zero();
  send(3 * range);
  std::uint32_t acked = 70000;
  for (int round = 0; round < 3; ++round) {
    const auto sent = requests(turn());
    ASSERT_EQ(sent.size(), range) << round;
    EXPECT_EQ(sent.back().psn, Psn{acked + range});
    EXPECT_TRUE(sent.back().ar) << "PDS-47: it must stop here";
    EXPECT_TRUE(sent[std::max(range / 2, 1U) - 1].ar) << "PDS-47: half of the window";
    acked += range;
    receive(zero_ack(acked));
  }
  EXPECT_TRUE(requests(turn()).empty());
}

// PDS-220: before the peer has said anything, each refusal halves what is assumed, down to there.
TEST_P(SmallRangeSource, Pds220_Refusals_HalveRangeToTheSmallest) {
  const auto range = static_cast<std::uint32_t>(GetParam());
  build_for(static_cast<std::uint8_t>(range));
  pdc = send(1000).pdc;
  ASSERT_EQ(requests(turn()).size(), 1000U);
  for (std::uint32_t psn = 70999; psn >= 70000 + range; --psn) {
    receive(nack(NackCode::PsnOorWindow, psn));
  }
  std::uint32_t highest = 0;
  for (int i = 0; i < 100; ++i) {
    for (const auto& request : requests(after(milliseconds(2)))) {
      highest = std::max(highest, request.psn.value);
    }
  }
  EXPECT_EQ(highest, 70000 + range - 1) << "what fits comes again by its time-out, no more";
}

INSTANTIATE_TEST_SUITE_P(Ranges, SmallRangeSource, ::testing::Values(1, 2, 64, 127));

TEST_F(SmallRange, Pds43_WithoutTheOverrideMprZeroSaysNothing) {
  build_for(0);
  open_to_zero();
  send(500);
  EXPECT_EQ(requests(turn()).size(), 500U);
}

TEST_F(SmallRange, Pds219_DestinationRefusesWhatIsBeyond) {
  build_for(64, 0);
  accept(333);
  node->drain();
  const auto beyond = nacks(answer_to(request(334 + 64)));
  ASSERT_EQ(beyond.size(), 1U);
  EXPECT_EQ(beyond[0].nack_code, NackCode::PsnOorWindow);
  const auto last = acks(answer_to(request(333 + 64)));
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last[0].mpr, 0) << "PDS-39: fewer than 128";
}

// The source never asks, and what comes is less than ACK_Gen_Trigger.
TEST_F(SmallRange, Pds219_HalfOfTheWindowIsAcknowledgedUnasked) {
  Parameters parameters = with_zero_for(64, 0);
  parameters.ack_gen_trigger_bytes = 1 << 20;
  build(parameters, open_window());
  accept(333);
  node->drain();
  std::uint32_t unanswered = 0;
  for (std::uint32_t psn = 334; psn < 334 + 640; ++psn) {
    unanswered = acks(answer_to(request(psn))).empty() ? unanswered + 1 : 0;
    ASSERT_LT(unanswered, 33U);
  }
  build_for(1, 0);
  accept(333);
  node->drain();
  for (std::uint32_t psn = 334; psn < 344; ++psn) {
    ASSERT_EQ(acks(answer_to(request(psn))).size(), 1U) << psn;
  }
}

// A source that has not heard of the range sends more than it; all arrive, and the ACKs are lost.
TEST_F(SmallRange, Pds46_CopyOfWhatCameLongAgoIsAcknowledged) {
  for (const std::uint8_t range : {std::uint8_t{1}, std::uint8_t{64}, std::uint8_t{128}}) {
    build_for(range < 128 ? range : std::uint8_t{0}, range < 128 ? 0 : 1);
    accept(333);
    for (std::uint32_t psn = 334; psn < 334 + 400; ++psn) answer_to(request(psn));
    const std::size_t delivered = node->client.delivered.size();
    for (const std::uint32_t psn : {333U, 340U, 500U, 732U}) {
      const auto answers = answer_to(retransmission(psn));
      ASSERT_EQ(acks(answers).size(), 1U) << psn;
      EXPECT_EQ(acks(answers)[0].cack_psn, Psn{733});
    }
    EXPECT_EQ(node->client.delivered.size(), delivered);
  }
}

// Its source lost all ACKs of it, and asks until one comes.
TEST_F(SmallRange, Pds156_AckRequestForWhatCameLongAgoIsAnswered) {
  build_for(1, 0);
  accept(333);
  for (std::uint32_t psn = 334; psn < 434; ++psn) answer_to(request(psn));
  for (const std::uint32_t psn : {333U, 400U, 432U}) {
    const auto answers = acks(answer_to(control(wire::CpType::AckRequest, psn)));
    ASSERT_EQ(answers.size(), 1U) << psn;
    EXPECT_EQ(answers[0].cack_psn, Psn{433});
  }
  EXPECT_TRUE(answer_to(control(wire::CpType::AckRequest, 433 - 5000)).empty());
}

class SmallRanges : public Pair, public ::testing::WithParamInterface<std::tuple<int, bool>> {};

// Both directions, in every traffic class, with every tenth packet lost, and closed in the end.
TEST_P(SmallRanges, Pds219_EverythingArrivesAndCloses) {
  const auto [range, both] = GetParam();
  const auto psns = static_cast<std::uint8_t>(range);
  Parameters for_a = with_zero_for(psns, both ? 0 : kLeastMpr);
  Parameters for_b = target_parameters();
  for_b.mpr_zero_psns = psns;
  for_b.default_mpr = 0;
  build(for_a, for_b);
  Rng rng(7);
  fate = [&](const Node&, const Sent&) { return Fate{.copies = rng.chance(0.1) ? 0 : 1}; };
  TestMessage& forth = send(300);
  TestMessage& ordered = send(300, DeliveryMode::Rod);
  EXPECT_TRUE(
      run_while_not([&] { return Node::answered_once(forth) && Node::answered_once(ordered); }));
  expect_both_reach_each_other();
  expect_clean_close();
}

INSTANTIATE_TEST_SUITE_P(Ranges, SmallRanges,
                         ::testing::Combine(::testing::Values(1, 64), ::testing::Bool()));

class SynAgain : public Bench {};

// A packet with SYN has come twice: a third copy may be on its way for longer than others.
TEST_F(SynAgain, Pds217_RepeatedSynIsRememberedForItsOwnTime) {
  for (const bool repeated : {false, true}) {
    Parameters parameters = test_parameters();
    parameters.syn_retx_safety_time = seconds(10);
    build(parameters, open_window());
    accept(333);
    if (repeated) {
      wire::RequestHeader again = request(333, true);
      again.retx = true;
      receive(again);
    }
    receive(control(wire::CpType::Close, 334));
    turn();
    now += seconds(9);
    receive(request(333, true));
    EXPECT_EQ(node->client.delivered.size(), repeated ? 1U : 2U);
    if (!repeated) continue;
    now += seconds(2);
    receive(request(333, true));
    EXPECT_EQ(node->client.delivered.size(), 2U);
  }
}

TEST_F(SynAgain, Pds217_SynSentAgain_InitiatorSilentAsLong) {
  Parameters parameters = test_parameters();
  parameters.syn_retx_safety_time = seconds(10);
  build(parameters, open_window());
  send(1);
  ASSERT_TRUE(requests(turn()).at(0).syn);
  const auto again = requests(after(milliseconds(100)));
  ASSERT_FALSE(again.empty());
  EXPECT_TRUE(again[0].syn && again[0].retx);
  pdc = again[0].spdcid;
  receive(ack(70000, 70000));
  node->manager->find(pdc)->begin_close(now);
  turn();
  receive(ack(70001, 70001));
  turn();
  ASSERT_EQ(node->manager->open_pdcs(), 0U);
  peer_start = 70000;
  now += seconds(9);
  EXPECT_TRUE(answer_to(request(70005)).empty());
  now += seconds(2);
  EXPECT_EQ(answer_to(request(70005)).size(), 1U) << "INV_DPDCID";
}

}  // namespace
}  // namespace uet::pds::testing
