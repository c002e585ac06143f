// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// NSCC: each rule by its number, and a small closed loop. The worked examples are in
// nscc_example_test.cc, ways slower than the interface in nscc_slow_way_test.cc.
#include "cms/nscc.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "unit/cms/bottleneck.h"
#include "unit/cms/nscc_model.h"

namespace uet::cms {
namespace {

using test::at;
using test::expect_close;
using test::Model;
using test::reference_network;
using test::us;

TEST(NsccOnAck, Cms301_BusyDestinationStopsGrowthButNotCuts) {
  Model m;
  m.s.inflight_bytes = 225'000;
  EXPECT_EQ(m.ack(1, 4096, false, 20, 1), NsccReaction::Limited);
  EXPECT_EQ(m.ack(2, 4096, false, 30, 1), NsccReaction::Limited);
  EXPECT_EQ(m.s.inc_bytes2, 0);
  EXPECT_EQ(m.ack(3, 4096, true, 30, 1), NsccReaction::Cut);
  EXPECT_EQ(m.ack(4, 4096, false, 20, 0), NsccReaction::Rise);
  EXPECT_NE(m.s.saved_cwnd_bytes, 0) << "kept until the restore bit";
  m.ack(5, 4096, true, 20, 0, true);
  expect_close(m.s.cwnd_bytes, 225'000);
}

// --- Rules ------------------------------------------------------------------------------------

TEST(NsccStart, Cms100_NoSlowStart) {
  const Model m;
  expect_close(m.s.cwnd_bytes, 225'000);
  EXPECT_EQ(m.s.inflight_bytes, 0);
}

TEST(NsccOnAck, Cms101_WindowStaysWithinMtuAndMaximum) {
  Model m;
  for (int i = 1; i <= 200; ++i) {
    m.ack(i * 13.0, 1 << 20, false, 12);
    ASSERT_LE(m.s.cwnd_bytes, m.s.max_bytes);
  }
  for (int i = 0; i < 200; ++i) {
    m.loss(3000 + i, 4096);
    ASSERT_GE(m.s.cwnd_bytes, 4096);
  }
  expect_close(m.s.cwnd_bytes, 4096);
}

TEST(NsccConstants, Cms101_MaxWindowBytesIsAnotherUpperBound) {
  Parameters p = reference_network();
  p.max_window_bytes = 65'536;
  const Model m(p);
  expect_close(m.s.cwnd_bytes, 65'536);
  p.max_window_bytes = 0;
  expect_close(Model(p).s.cwnd_bytes, 4096);  // CMS-101: never below the MTU
}

TEST(NsccOnAck, Cms102_GainsStayWhenTheBaseRttFalls) {
  Model m;
  m.s.cwnd_bytes = 60'000;
  m.ack(3, 4096, false, 6);
  expect_close(m.s.base_rtt_us, 6);
  expect_close(m.s.max_bytes, 112'500);
  m.ack(4, 16'384, false, 6 + 4);
  // The first ACK had d = 0: alpha x n x 9; the second d = 4.
  expect_close(m.s.inc_bytes2, 1365.3333333333 * (4096 * 9 + 16'384 * 5));
}

TEST(NsccOnSent, Cms103_BooksBalance) {
  Model m;
  nscc_on_sent(m.s, m.c, 4096, at(0));  // original
  nscc_on_sent(m.s, m.c, 4096, at(0));
  m.trim(1, 4096);  // first one trimmed
  m.loss(2, 4096);  // second one lost
  EXPECT_EQ(m.s.inflight_bytes, 0);
  nscc_on_sent(m.s, m.c, 4096, at(3));  // retransmissions
  nscc_on_sent(m.s, m.c, 4096, at(3));
  m.ack(4, 8192, false, std::nullopt);
  EXPECT_EQ(m.s.inflight_bytes, 0);
}

TEST(NsccOnAck, Cms104_InflightMayDipBelowZero) {
  Model m;
  nscc_on_sent(m.s, m.c, 1400, at(0));
  m.ack(1, 1536, false, std::nullopt);
  EXPECT_EQ(m.s.inflight_bytes, -136);
  EXPECT_TRUE(m.s.may_send(4096));
}

TEST(NsccOnAck, Cms115_WithoutSampleOnlyBytesAreCounted) {
  Model m;
  m.s.cwnd_bytes = 60'000;
  m.s.inflight_bytes = 50'000;
  EXPECT_EQ(m.ack(100, 40'000, true, std::nullopt), NsccReaction::NoSample);
  EXPECT_EQ(m.ack(101, 0, true, 0), NsccReaction::NoSample);
  EXPECT_EQ(m.s.inflight_bytes, 10'000);
  EXPECT_EQ(m.s.received_bytes, 40'000U);
  EXPECT_EQ(m.s.achieved_bytes, 40'000U);
  EXPECT_EQ(m.s.bytes_ignored, 40'000);
  expect_close(m.s.cwnd_bytes, 60'000);
  EXPECT_EQ(m.s.avg_delay_us, 0);
}

TEST(NsccOnAck, Cms120_AverageWeighsByTime) {
  Model m;
  m.ack(6, 4096, true, 12 + 4);  // half a base RTT since the start
  expect_close(m.s.avg_delay_us, 2);
  m.ack(9, 4096, true, 12 + 4);  // a quarter
  expect_close(m.s.avg_delay_us, 2.5);
  m.ack(9, 4096, true, 12 + 8);  // no time has passed
  expect_close(m.s.avg_delay_us, 2.5);
  m.ack(99, 4096, true, 12 + 8);  // longer than R: only the last sample counts
  expect_close(m.s.avg_delay_us, 8);
}

TEST(NsccOnAck, Cms121_FourQuadrants) {
  const auto react = [](bool mark, double delay) {
    Model m;
    return m.ack(1, 4096, mark, 12 + delay);
  };
  EXPECT_EQ(react(false, 9), NsccReaction::Fair);
  EXPECT_EQ(react(false, 8.999), NsccReaction::Rise);
  EXPECT_EQ(react(true, 9), NsccReaction::Cut);
  EXPECT_EQ(react(true, 8.999), NsccReaction::Hold);
}

TEST(NsccOnAck, Cms121_HoldLeavesTheWindow) {
  Model m;
  m.s.cwnd_bytes = 60'000;
  m.ack(1, 4096, true, 15);
  expect_close(m.s.cwnd_bytes, 60'000);
  EXPECT_EQ(m.s.inc_bytes2, 0);
}

TEST(NsccOnAck, Cms122_IncreasePerRttIsTheSameForEveryWindow) {
  for (double window : {20'480.0, 81'920.0}) {
    Model m;
    m.s.cwnd_bytes = window;
    const int acks = static_cast<int>(window / 4096);
    for (int i = 1; i <= acks; ++i) m.ack(12.0 * i / acks, 4096, false, 12 + 4.5);
    // 4 a b MTU (1 - d / tau) + eta; W grows on the way, hence the tolerance.
    EXPECT_NEAR(m.s.cwnd_bytes - window, 4 * 0.75 * 4096 * 0.5 + 614.4, 900);
  }
}

// The same bytes reported by one ACK or by many make the same increase.
TEST(NsccOnAck, Cms123_CoalescedAcksIncreaseAsMuch) {
  Model one;
  Model many;
  one.s.cwnd_bytes = many.s.cwnd_bytes = 100'000;
  for (int i = 1; i <= 8; ++i) many.ack(i, 4096, false, 15);
  one.ack(8, 32'768, false, 15);
  expect_close(many.s.inc_bytes2, one.s.inc_bytes2);
}

TEST(NsccOnAck, Cms2_3_FastIncreaseEndsWithDelay) {
  Model m;
  m.s.increase_mode = true;
  m.s.cwnd_bytes = 50'000;
  EXPECT_EQ(m.ack(1, 4096, false, 12.4), NsccReaction::FastIncrease);
  EXPECT_EQ(m.ack(2, 4096, false, 14), NsccReaction::Rise);
  EXPECT_FALSE(m.s.increase_mode);
  EXPECT_EQ(m.s.fi_count_bytes, 0);
}

TEST(NsccOnAck, Cms2_3_CutOncePerBaseRttAndEndsFastIncrease) {
  Model m;
  m.s.cwnd_bytes = 200'000;
  m.s.increase_mode = true;
  m.s.fi_count_bytes = 1000;
  m.ack(13, 4096, true, 12 + 18);  // Q = 18: factor 0.6, then eta
  expect_close(m.s.cwnd_bytes, 120'614.4);
  EXPECT_FALSE(m.s.increase_mode);
  EXPECT_EQ(m.s.fi_count_bytes, 0);
  m.ack(25, 4096, true, 12 + 18);  // exactly R later: not yet; eta of the period
  expect_close(m.s.cwnd_bytes, 121'228.8);
  m.ack(25.1, 4096, true, 12 + 18);
  expect_close(m.s.cwnd_bytes, 121'228.8 * 0.6);
}

TEST(NsccOnAck, Cms2_3_QuickAdaptNeedsAnEpoch) {
  Model m(reference_network(false));
  m.s.qa_end_time.reset();
  m.s.avg_delay_time = at(5);
  EXPECT_EQ(m.ack(5, 4096, true, 12 + 60), NsccReaction::Cut) << "the first only opens the epoch";
  EXPECT_EQ(m.s.qa_end_time, at(29));
  EXPECT_EQ(m.s.achieved_bytes, 0U);
}

// An ACK that reports what several epochs brought: one that came with every ACK's window would
// otherwise keep that window for ever, whatever the delay.
TEST(NsccOnAck, Cms2_3_QuickAdaptTakesWhatOneEpochBrought) {
  const double epoch_us = 12 + 12;
  const auto window_after = [&](double late_us, std::uint64_t bytes) {
    Model m(reference_network(false));
    m.s.qa_end_time = at(epoch_us);
    EXPECT_EQ(m.ack(epoch_us + late_us, bytes, false, 12 + 49), NsccReaction::QuickAdapt);
    return m.s.cwnd_bytes;
  };
  expect_close(window_after(0.9 * epoch_us, 16'384), 16'384);
  expect_close(window_after(1.1 * epoch_us, 16'384), 8192);
  expect_close(window_after(9.1 * epoch_us, 16'384), 4096);
  expect_close(window_after(9.1 * epoch_us, 200'000), 20'000);
}

TEST(NsccOnAck, Cms2_3_QuickAdaptNeverByDelayWithTrimming) {
  Model m;
  m.s.qa_end_time = at(20);
  m.s.avg_delay_time = at(20);
  EXPECT_EQ(m.ack(20, 4096, true, 12 + 1000), NsccReaction::Cut);
}

TEST(NsccOnAck, Cms2_3_QuickAdaptByAnArmedTrigger) {
  Model m;
  m.s.qa_end_time = at(20);
  m.s.trigger_qa = true;
  m.s.inflight_bytes = 100'000;
  m.s.inc_bytes2 = 5;
  EXPECT_EQ(m.ack(20, 2048, false, 13), NsccReaction::QuickAdapt);
  expect_close(m.s.cwnd_bytes, 4096);  // got 2,048: at least the MTU
  EXPECT_EQ(m.s.bytes_to_ignore, 97'952);
  EXPECT_FALSE(m.s.trigger_qa);
  EXPECT_EQ(m.s.inc_bytes2, 0);
  EXPECT_EQ(m.s.received_bytes, 0U);
}

TEST(NsccOnAck, Cms114_MarksMuted_UntilOldFlightReported) {
  Model m;
  m.s.bytes_to_ignore = 8192;
  EXPECT_EQ(m.ack(1, 4096, true, 30), NsccReaction::Ignored);
  EXPECT_EQ(m.ack(2, 4096, true, 30), NsccReaction::Cut);
}

TEST(NsccOnTrim, Cms130_Trim_ShrinksByPacketAtFullDelay) {
  Model m;
  m.s.inflight_bytes = 100'000;
  m.trim(6, 4096);
  EXPECT_EQ(m.s.inflight_bytes, 95'904);
  EXPECT_EQ(m.s.bytes_ignored, 4096);
  expect_close(m.s.avg_delay_us, 6);  // half a base RTT of weight
  EXPECT_TRUE(m.s.trigger_qa);
  expect_close(m.s.cwnd_bytes, 225'000 - 4096);
}

TEST(NsccOnTrim, Cms130_ValidSampleMayLowerTheBaseRtt) {
  Model m;
  m.trim(6, 4096, 10);
  expect_close(m.s.base_rtt_us, 10);
  m.trim(7, 4096, 50);
  expect_close(m.s.base_rtt_us, 10);
}

TEST(Nscc, Cms130_BothTrimCodesShrinkTheWindow) {
  for (const auto code : {wire::NackCode::Trimmed, wire::NackCode::TrimmedLastHop}) {
    Nscc nscc(reference_network(), at(0));
    nscc.on_sent(4096, at(0));
    nscc.on_nack(code, 4096, false, std::nullopt, at(5));
    EXPECT_EQ(nscc.window_bytes(), 225'000U - 4096U);
    EXPECT_EQ(nscc.inflight_bytes(), 0);
  }
}

TEST(Nscc, Cms131_OtherNacksLeaveTheWindow) {
  Nscc nscc(reference_network(), at(0));
  nscc.on_sent(4096, at(0));
  nscc.on_nack(wire::NackCode::RodOoo, 4096, true, us(10), at(5));
  EXPECT_EQ(nscc.window_bytes(), 225'000U);
  EXPECT_EQ(nscc.inflight_bytes(), 0);
}

TEST(NsccOnInferredLoss, Cms132_EveryCauseCostsItsBytes) {
  for (const auto cause : {LossCause::Rto, LossCause::Path, LossCause::OutOfOrder}) {
    Model m;
    m.s.inflight_bytes = 50'000;
    m.loss(5, 4096, cause);
    expect_close(m.s.cwnd_bytes, 225'000 - 4096);
    EXPECT_EQ(m.s.bytes_ignored, 4096);
    EXPECT_EQ(m.s.inflight_bytes, 45'904);
  }
}

TEST(Nscc, Cms133_MaySendUpToTheWindow) {
  Nscc nscc(reference_network(), at(0));
  for (int i = 0; i < 54; ++i) {
    ASSERT_TRUE(nscc.may_send(4096));
    nscc.on_sent(4096, at(0));
  }
  EXPECT_EQ(nscc.inflight_bytes(), 221'184);
  EXPECT_FALSE(nscc.may_send(4096));
  EXPECT_TRUE(nscc.may_send(225'000 - 221'184));
  EXPECT_FALSE(nscc.may_send(225'000 - 221'184 + 1));
}

TEST(NsccOnInferredLoss, Cms134_RtoDoesNotCollapseTheWindow) {
  Model m;
  for (int i = 0; i < 10; ++i) m.loss(500 + i, 4096, LossCause::Rto);
  expect_close(m.s.cwnd_bytes, 225'000 - 40'960);
}

TEST(NsccOnInferredLoss, Cms135_SecondRtoInSilenceLeavesOnePacket) {
  Model m;
  m.loss(500, 4096, LossCause::Rto);
  m.loss(1500, 4096, LossCause::RepeatedRto);
  expect_close(m.s.cwnd_bytes, 4096);
}

TEST(NsccOnInferredLoss, Cms135_AnAckInBetweenKeepsTheWindow) {
  Model m;
  m.loss(500, 4096, LossCause::Rto);
  m.ack(600, 0, false, std::nullopt);
  m.loss(1500, 4096, LossCause::RepeatedRto);
  expect_close(m.s.cwnd_bytes, 225'000 - 8192);
}

TEST(NsccOnAck, Cms140_BaseRttOnlyFalls) {
  Model m;
  m.ack(1, 4096, false, 30);
  expect_close(m.s.base_rtt_us, 12);
  m.ack(2, 4096, false, 11);
  expect_close(m.s.base_rtt_us, 11);
  m.ack(3, 4096, false, 12);
  expect_close(m.s.base_rtt_us, 11);
}

TEST(Nscc, Cms140_AProbeLowersTheBaseRttAndNothingElse) {
  Nscc nscc(reference_network(), at(0));
  nscc.on_probe_answer(us(20));
  expect_close(nscc.state().base_rtt_us, 12);
  nscc.on_probe_answer(us(8));
  expect_close(nscc.state().base_rtt_us, 8);
  expect_close(nscc.state().max_bytes, 150'000);
  expect_close(nscc.constants().config_base_rtt_us, 12);
  EXPECT_EQ(nscc.state().avg_delay_us, 0);
  EXPECT_EQ(nscc.state().inc_bytes2, 0);
  nscc.on_probe_answer(us(0));
  expect_close(nscc.state().base_rtt_us, 8);
}

TEST(Nscc, Cms140_AProbeIsASampleOfTheMeasurement) {
  Parameters p = reference_network();
  p.base_rtt.reset();
  Nscc nscc(p, at(0));
  for (int i = 0; i < 7; ++i) nscc.on_probe_answer(us(60));
  EXPECT_EQ(nscc.base_rtt(), std::nullopt);
  nscc.on_probe_answer(us(40));
  EXPECT_EQ(nscc.base_rtt(), us(40));
  expect_close(nscc.constants().config_base_rtt_us, 44);
}

TEST(Nscc, Cms141_WithoutASampleThereIsNothingToKeep) {
  Nscc nscc(reference_network(), at(0));
  EXPECT_EQ(nscc.base_rtt(), std::nullopt);
  AckFeedback f;
  f.rtt = us(30);
  nscc.on_ack(f, at(1));
  EXPECT_EQ(nscc.base_rtt(), us(12));
}

TEST(Nscc, Cms141_BeginsWithTheBaseRttOfAnEarlierContext) {
  Nscc configured(reference_network(), at(0), us(10));
  expect_close(configured.state().base_rtt_us, 10);
  expect_close(configured.state().cwnd_bytes, 187'500);
  expect_close(configured.constants().config_base_rtt_us, 12);
  Nscc longer(reference_network(), at(0), us(1000));  // never above 4 Rcfg (CMS-142)
  expect_close(longer.state().base_rtt_us, 48);

  Parameters p = reference_network();
  p.base_rtt.reset();
  Nscc measured(p, at(0), us(40));
  expect_close(measured.constants().config_base_rtt_us, 44);
  expect_close(measured.state().base_rtt_us, 40);
  AckFeedback f;
  f.newly_received_bytes = 4096;
  f.rtt = us(70);
  measured.on_ack(f, at(1));
  EXPECT_GT(measured.state().avg_delay_us, 0) << "the first sample counts";
}

// A path that became longer: 1,000 R without a short sample, a mark or a loss.
TEST(NsccOnAck, Cms142_BaseRttRisesAfterAThousandRtts) {
  Model m;
  m.s.inflight_bytes = 1 << 30;  // continuous sending
  for (double t = 10; t < 12'000; t += 10) m.ack(t, 4096, false, t < 20 ? 40 : 30);
  expect_close(m.s.base_rtt_us, 12);
  m.ack(12'000, 4096, false, 31);
  expect_close(m.s.base_rtt_us, 30);
  expect_close(m.s.max_bytes, 562'500);
}

TEST(NsccOnAck, Cms142_BaseRtt_RisesAtMostFourfold) {
  Model m;
  m.s.inflight_bytes = 1 << 30;
  for (double t = 10; t <= 12'000; t += 10) m.ack(t, 4096, false, 100);
  expect_close(m.s.base_rtt_us, 48);
}

TEST(NsccOnAck, Cms142_ShortSampleMarkLossOrPauseRestart) {
  for (int reason = 0; reason < 5; ++reason) {
    Model m;
    m.s.inflight_bytes = 1 << 30;
    for (double t = 10; t < 6000; t += 10) m.ack(t, 4096, false, 30);
    if (reason == 0) m.ack(6000, 4096, false, 20.9);
    if (reason == 1) m.ack(6000, 4096, true, 30);
    if (reason == 2) m.trim(6000, 4096);
    if (reason == 3) m.loss(6000, 4096);
    if (reason == 4) {
      m.s.inflight_bytes = 0;
      nscc_on_sent(m.s, m.c, 1 << 30, at(6000));
    }
    for (double t = 6010; t < 17'990; t += 10) m.ack(t, 4096, false, 30);
    expect_close(m.s.base_rtt_us, 12);
  }
}

// PDS may then send a Probe: a queue without ECN marks looks like a longer base RTT.
TEST(Nscc, Cms142_TellsThatTheBaseRttHasRisen) {
  Nscc nscc(reference_network(), at(0));
  nscc.on_sent(1U << 30, at(0));
  AckFeedback f;
  f.newly_received_bytes = 4096;
  f.rtt = us(30);
  double t = 10;
  for (; t < 12'000; t += 10) ASSERT_FALSE(nscc.on_ack(f, at(t))) << t;
  int raised = 0;
  for (; t < 13'000; t += 10) raised += nscc.on_ack(f, at(t)) ? 1 : 0;
  EXPECT_EQ(raised, 1);
  EXPECT_EQ(nscc.base_rtt(), us(30));
  nscc.on_probe_answer(us(13));
  EXPECT_EQ(nscc.base_rtt(), us(13));
}

// --- Software rules, CMS 7 ---------------------------------------------------------------------

TEST(NsccOnAck, Cms703_LargeDelayIsAMarkWhileNoRealOneWasSeen) {
  Model m(reference_network(false));  // tau 12: mark from 18
  EXPECT_EQ(m.ack(1, 4096, false, 12 + 17.9), NsccReaction::Fair);
  EXPECT_EQ(m.ack(2, 4096, false, 12 + 18), NsccReaction::Cut);
  m.ack(3, 4096, true, 13);
  EXPECT_EQ(m.ack(4, 4096, false, 12 + 18), NsccReaction::Fair) << "the network marks by itself";
}

TEST(NsccOnAck, Cms703_OffWithTrimmingOrByOption) {
  EXPECT_EQ(Model().ack(1, 4096, false, 12 + 100), NsccReaction::Fair);
  Parameters p = reference_network(false);
  p.synthetic_ecn = false;
  EXPECT_EQ(Model(p).ack(1, 4096, false, 12 + 40), NsccReaction::Fair);
}

TEST(Nscc, Cms703_MarkInANackCountsAsSeen) {
  Nscc nscc(reference_network(false), at(0));
  nscc.on_nack(wire::NackCode::RodOoo, 0, true, std::nullopt, at(1));
  EXPECT_TRUE(nscc.state().ecn_seen);
}

TEST(Nscc, Cms710_BaseRttIsMeasuredFromTheFirstSamples) {
  Parameters p = reference_network();
  p.base_rtt.reset();
  p.default_base_rtt = us(100);
  p.max_window_bytes = 1 << 30;
  Nscc nscc(p, at(0));
  expect_close(nscc.constants().config_base_rtt_us, 100);
  EXPECT_EQ(nscc.window_bytes(), 1'875'000U);
  AckFeedback f;
  f.newly_received_bytes = 4096;
  nscc.on_ack(f, at(0));  // without a sample: does not count
  const double samples[] = {300, 250, 40, 60, 55, 41, 70, 300};
  for (int i = 0; i < 8; ++i) {
    expect_close(nscc.constants().config_base_rtt_us, 100);
    expect_close(nscc.state().cwnd_bytes, 1'875'000);
    f.rtt = us(samples[i]);
    nscc.on_ack(f, at(1));
  }
  expect_close(nscc.constants().config_base_rtt_us, 44);
  expect_close(nscc.state().base_rtt_us, 40);
  expect_close(nscc.state().max_bytes, 1.5 * 12'500 * 40);
  f.rtt = us(20);
  nscc.on_ack(f, at(2));
  expect_close(nscc.constants().config_base_rtt_us, 44);
}

// A context that begins while others keep a queue measures the queue. It must not keep windows and
// targets for that when a sample without it comes, or it takes from those that know better.
TEST(Nscc, Cms143_Cms710_AMeasuredBaseRttFollowsShorterSamples) {
  for (const bool by_probe : {true, false}) {
    Parameters p = reference_network();
    p.base_rtt.reset();
    p.default_base_rtt = us(44);
    p.max_window_bytes = 1 << 30;
    Nscc nscc(p, at(0));
    AckFeedback f;
    f.newly_received_bytes = 4096;
    f.rtt = us(1000);
    for (int i = 0; i < 8; ++i) nscc.on_ack(f, at(i));
    expect_close(nscc.constants().config_base_rtt_us, 1100);
    if (by_probe) {
      nscc.on_probe_answer(us(40));
    } else {
      f.rtt = us(40);
      nscc.on_ack(f, at(9));
    }
    Parameters known = p;
    known.base_rtt = us(44);
    const Nscc other(known, at(0));
    expect_close(nscc.constants().config_base_rtt_us, 44);
    expect_close(nscc.constants().target_qdelay_us, 0.75 * 40);
    expect_close(nscc.constants().eta_bytes(), other.constants().eta_bytes());
    expect_close(nscc.state().max_bytes, 1.5 * 12'500 * 40);
    nscc.on_probe_answer(us(4));
    expect_close(nscc.constants().config_base_rtt_us, 44);  // no shorter than the usual one
    expect_close(nscc.state().base_rtt_us, 4);
  }
}

TEST(Nscc, Cms102_AConfiguredBaseRttStays) {
  Nscc nscc(reference_network(), at(0));
  AckFeedback f;
  f.rtt = us(4);
  nscc.on_ack(f, at(1));
  expect_close(nscc.constants().config_base_rtt_us, 12);
  expect_close(nscc.state().base_rtt_us, 4);
}

TEST(Nscc, Cms710_LongerThanTheDefaultOpensTheWindow) {
  Parameters p = reference_network();
  p.base_rtt.reset();
  p.max_window_bytes = 1 << 30;
  Nscc nscc(p, at(0));
  AckFeedback f;
  f.rtt = us(1000);
  for (int i = 0; i < 8; ++i) nscc.on_ack(f, at(i));
  expect_close(nscc.state().base_rtt_us, 1000);
  expect_close(nscc.state().cwnd_bytes, 1.5 * 12'500 * 1000);
  EXPECT_EQ(nscc.state().avg_delay_us, 0);
}

// Near and far pairs share queues; a configured base RTT is the same for all of them.
TEST(Nscc, Cms143_MeasuredTarget_HasNoMargin) {
  Parameters p = reference_network();
  for (const bool measured : {true, false}) {
    if (measured)
      p.base_rtt.reset();
    else
      p.base_rtt = us(5);  // only that there is one counts
    for (const auto& [rtt, of_measured] : {std::pair(5, 12), {11, 12}, {22, 20}, {110, 100}}) {
      EXPECT_DOUBLE_EQ(nscc_constants(p, us(rtt)).target_qdelay_us,
                       0.75 * (measured ? of_measured : rtt));
    }
  }
  p.tuning.target_qdelay_us = 2;
  p.base_rtt.reset();
  EXPECT_DOUBLE_EQ(nscc_constants(p, us(5)).target_qdelay_us, 2) << "as it is tuned";
}

TEST(BaseRttMeasurement, Cms710_ClampedTo5UsAnd10Ms) {
  const auto measure = [](Duration rtt) {
    BaseRttMeasurement m;
    for (int i = 0; i < 7; ++i) EXPECT_EQ(m.add(rtt), std::nullopt);
    const std::optional<Duration> result = m.add(rtt);
    EXPECT_EQ(m.add(Duration(1)), std::nullopt) << "measured once";
    return result;
  };
  EXPECT_EQ(measure(us(1)), us(5));
  EXPECT_EQ(measure(us(100)), us(110));
  EXPECT_EQ(measure(us(9'999)), us(10'000));
  EXPECT_EQ(measure(Duration::max()), us(10'000));
}

TEST(RttNoise, Cms711_MedianOfConsecutiveDistances) {
  RttNoise noise;
  noise.add(us(100), 102, at(0));
  for (int i = 0; i < 14; ++i) noise.add(us(i % 2 == 0 ? 103 : 100), 102, at(0));
  EXPECT_EQ(noise.jitter_us(), 0);
  noise.add(us(1000), 102, at(0));  // an outlier does not move the median
  expect_close(noise.jitter_us(), 3);
}

TEST(RttNoise, Cms711_EachBatchGoesOnFromTheSampleBefore) {
  RttNoise noise;
  for (int i = 0; i < 16; ++i) noise.add(us(i % 2 == 0 ? 100 : 103), 102, at(0));
  expect_close(noise.jitter_us(), 3);
  for (int i = 0; i < 14; ++i) noise.add(us(i % 2 == 0 ? 98 : 103), 102, at(0));
  expect_close(noise.jitter_us(), 3);  // 14 distances of 5
  noise.add(us(98), 102, at(0));
  expect_close(noise.jitter_us(), 5);
}

TEST(RttNoise, Cms711_SecondsAreAsGoodAsAnyNumber) {
  RttNoise noise;
  for (int i = 0; i < 16; ++i) noise.add(us(i % 2 == 0 ? 100 : 6'000'000), 102, at(0));
  expect_close(noise.jitter_us(), 4'294'967.295 - 100);
}

TEST(RttNoise, Cms711_AStandingQueueIsNotNoise) {
  RttNoise noise;
  for (int i = 0; i < 100; ++i) noise.add(us(i % 2 == 0 ? 103 : 110), 102, at(0));
  EXPECT_EQ(noise.jitter_us(), 0);
}

TEST(RttNoise, Cms711_SamplesBeforeARestartAreNotCounted) {
  RttNoise noise;
  for (int i = 0; i < 15; ++i) noise.add(us(i % 2 == 0 ? 100 : 105), 102, at(0));
  noise.restart();
  for (int i = 0; i < 15; ++i) noise.add(us(i % 2 == 0 ? 103 : 110), 102, at(0));
  EXPECT_EQ(noise.jitter_us(), 0);
  noise.add(us(100), 102, at(0));
  expect_close(noise.jitter_us(), 7);
}

// An incast fills and drains its queue. A flow that took that for noise had 1.8 times the target
// delay of the others for 1,000 round trips, and several times their rate.
TEST(NsccOnAck, Cms711_SamplesBetweenMarksAreNotNoise) {
  Model m;
  for (int i = 0; i < 64; ++i) m.ack(i, 0, i % 8 == 7, i % 2 == 0 ? 12 : 17);
  expect_close(nscc_target_qdelay_us(m.s, m.c), 9);
  for (int i = 64; i < 80; ++i) m.ack(i, 0, false, i % 2 == 0 ? 12 : 17);
  expect_close(nscc_target_qdelay_us(m.s, m.c), 20);
}

TEST(NsccOnAck, Cms711_NoiseWidensTargetAndTolerance) {
  Model m;
  expect_close(nscc_quiet_us(m.s, m.c), 1);
  for (int i = 0; i < 16; ++i) m.ack(i, 0, false, i % 2 == 0 ? 12 : 17);
  expect_close(nscc_target_qdelay_us(m.s, m.c), 20);
  expect_close(nscc_quiet_us(m.s, m.c), 5);
  EXPECT_EQ(m.ack(20, 4096, false, 12 + 15), NsccReaction::Rise);
}

TEST(NsccOnAck, Cms711_NoNoiseFromMarkedSamplesOrUnderLoad) {
  Model marked;
  for (int i = 0; i < 40; ++i) marked.ack(i, 0, true, i % 2 == 0 ? 12 : 17);
  EXPECT_EQ(marked.s.noise.jitter_us(), 0);
  Model loaded;
  loaded.s.inflight_bytes = 100'000;
  for (int i = 0; i < 40; ++i) loaded.ack(i, 0, false, i % 2 == 0 ? 12 : 17);
  EXPECT_EQ(loaded.s.noise.jitter_us(), 0);
}

TEST(NsccQuiet, Cms711_TwoPercentOfALongBaseRtt) {
  Parameters p = reference_network();
  p.base_rtt = us(500);
  expect_close(nscc_quiet_us(Model(p).s, Model(p).c), 10);
}

// CMS 8.4 property 7: nonsense from the peer never stops the sender.
TEST(Nscc, Cms8_4_GarbageFeedback_LeavesOnePacketPerRtt) {
  Rng rng(4);
  Nscc nscc(reference_network(false), at(0));
  double t = 0;
  for (int i = 0; i < 20'000; ++i) {
    t += static_cast<double>(rng.below(20));
    if (nscc.may_send(4096)) nscc.on_sent(4096, at(t));
    AckFeedback f;
    f.newly_received_bytes = rng.chance(0.01) ? 256U << 22 : rng.below(100'000);
    f.ce = rng.chance(0.9);
    f.rtt = Duration(static_cast<std::int64_t>(rng.below(1'000'000)) - 1000);
    f.rcv_cwnd_pend = static_cast<std::uint8_t>(rng.next());
    f.restore_cwnd = rng.chance(0.1);
    nscc.on_ack(f, at(t));
    if (rng.chance(0.1)) nscc.on_inferred_loss(4096, LossCause::RepeatedRto, at(t));
    if (rng.chance(0.1)) nscc.on_nack(wire::NackCode::Trimmed, 4096, true, us(1), at(t));
    ASSERT_GE(nscc.state().cwnd_bytes, 4096);
    ASSERT_LE(nscc.state().cwnd_bytes, nscc.state().max_bytes);
    if (nscc.inflight_bytes() <= 0) {
      ASSERT_TRUE(nscc.may_send(4096));
    }
  }
}

// --- Closed loop, CMS 2.9 ----------------------------------------------------------------------

test::Bottleneck::Config incast(bool trimming, bool ecn, std::size_t flows) {
  test::Bottleneck::Config config;
  config.parameters = reference_network(trimming);
  config.flows = flows;
  config.ecn = ecn;
  return config;
}

void expect_converges(const test::Bottleneck::Config& config, double least_goodput,
                      double least_jain, double most_delay_us) {
  test::Bottleneck port(config);
  port.run_until(1000);
  port.reset_counters();
  port.run_until(4000);
  double sum = 0;
  for (std::size_t i = 0; i < config.flows; ++i) sum += port.delivered(i);
  EXPECT_GE(sum / (3000 * port.port_rate()), least_goodput);
  EXPECT_GE(port.jain(), least_jain);
  EXPECT_LE(port.mean_queue_delay_us(), most_delay_us);
}

TEST(NsccClosedLoop, Cms2_9_IncastWithTrimmingIsFullAndFair) {
  expect_converges(incast(true, true, 8), 0.95, 0.95, 14);
}

TEST(NsccClosedLoop, Cms2_9_IncastWithoutTrimmingIsFullAndFair) {
  expect_converges(incast(false, true, 8), 0.95, 0.85, 14);  // Jain: scenario S6 of CMS 8.2
}

TEST(NsccClosedLoop, Cms703_IncastWithoutEcnIsHeldBySyntheticMarks) {
  expect_converges(incast(false, false, 8), 0.95, 0.9, 30);
}

TEST(NsccClosedLoop, Cms711_LargeIncastIsNotTakenForNoise) {
  expect_converges(incast(false, false, 32), 0.95, 0.95, 30);
}

TEST(NsccClosedLoop, Cms122_WindowRecoversWhenTheOthersStop) {
  test::Bottleneck port(incast(true, true, 8));
  port.run_until(2000);
  EXPECT_LT(port.context(0).window_bytes(), 100'000U);
  for (std::size_t i = 1; i < 8; ++i) port.stop(i);
  port.run_until(2300);
  EXPECT_GT(port.context(0).window_bytes(), 150'000U);
  port.reset_counters();
  port.run_until(2800);
  EXPECT_GE(port.delivered(0) / (500 * port.port_rate()), 0.95);
  for (std::size_t i = 1; i < 8; ++i) EXPECT_EQ(port.context(i).inflight_bytes(), 0);
}

}  // namespace
}  // namespace uet::cms
