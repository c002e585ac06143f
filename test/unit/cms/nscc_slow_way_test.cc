// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// NSCC on a way that is slower than the interface in front of it (CMS-724).
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "cms/nscc.h"
#include "unit/cms/nscc_model.h"

namespace uet::cms {
namespace {

using test::at;
using test::expect_close;
using test::Model;
using test::reference_network;
using test::us;

// The rate of an interface at 1 ms: what one ACK reports opens a small window by no more. A stated
// rate, or the round trip of a data centre, opens it as CMS 2.1 has it.
TEST(NsccOnAck, Cms724_RateNotStated_WindowFollowsArrivals) {
  for (const double rtt_us : {1000.0, 12.0}) {
    for (const bool stated : {true, false}) {
      for (const bool idle : {true, false}) {  // fast increase, RISE
        Parameters p = reference_network(false);
        p.base_rtt = us(rtt_us);
        p.max_window_bytes = 100 << 20;
        p.rate_is_stated = stated;
        Model m(p);
        const double before = m.s.cwnd_bytes = 40'000;
        const auto reaction = m.ack(2 * rtt_us, 50'000, false, idle ? rtt_us : 1.2 * rtt_us);
        EXPECT_EQ(reaction, idle ? NsccReaction::FastIncrease : NsccReaction::Rise);
        if (stated || rtt_us < 100) {
          EXPECT_GT(m.s.cwnd_bytes, before + (rtt_us > 100 ? 1'000'000 : 0));
        } else {
          EXPECT_GT(m.s.cwnd_bytes, before + 30'000) << "it doubles";
          EXPECT_LE(m.s.cwnd_bytes, before + (idle ? 2 : 1) * 50'000) << "eta comes on top";
        }
      }
    }
  }
}

// Of 1 ms and 100 Gb/s, which is that of an interface.
Parameters unknown_way(bool measured) {
  Parameters p = reference_network(false);
  p.base_rtt = us(1000);
  if (measured) p.base_rtt.reset();
  p.default_base_rtt = us(1000);
  p.max_window_bytes = 100 << 20;
  p.rate_is_stated = false;
  return p;
}

// Windows of a small and of a large flow that grow by a share of themselves never become equal.
TEST(NsccOnAck, Cms724_AfterALoss_GrowthByTheRootOfTheWindow) {
  Model m(unknown_way(false));
  m.s.cwnd_bytes = 80'000;
  for (int i = 0; i < 10; ++i) m.loss(5000 + i, 4000);  // half of them
  expect_close(m.s.cwnd_bytes, 40'000);
  m.ack(7000, 40'000, false, 1600);
  expect_close(m.s.cwnd_bytes, 40'000 + std::sqrt(4096.0 * 40'000));
  m.ack(200'000, 40'000, false, 1600);
  EXPECT_GT(m.s.cwnd_bytes, 90'000) << "forgotten";
}

TEST(NsccOnAck, Cms724_ShortQueueAfterALoss_Doubles) {
  for (const double rtt_us : {1000.0, 1400.0}) {
    Model m(unknown_way(false));
    m.s.cwnd_bytes = 80'000;
    for (int i = 0; i < 10; ++i) m.loss(5000 + i, 4000);
    m.ack(7000, 50'000, false, rtt_us);
    EXPECT_GE(m.s.cwnd_bytes, 80'000) << rtt_us;
  }
}

// A window that fills the way and a queue of 200 us is cut by the queue, not by half. The rest is
// remembered as after a loss.
TEST(NsccOnAck, Cms724_Cut_LeavesWhatFillsTheWay) {
  Model m(unknown_way(false));
  m.c.target_qdelay_us = 50;
  const double before = m.s.cwnd_bytes = 4'000'000;
  EXPECT_EQ(m.ack(5000, 4096, true, 1200), NsccReaction::Cut);
  EXPECT_NEAR(m.s.cwnd_bytes, before * 1050 / 1200, 1000) << "and eta";
  const double cut = m.s.cwnd_bytes;
  m.ack(7000, 40'000, false, 1040);
  EXPECT_LE(m.s.cwnd_bytes, cut + std::sqrt(4096 * cut) * 40'000 / cut + 1);
}

// Near and far peers share a queue: the target is not made of their own round trips.
TEST(Nscc, Cms724_MeasuredRtt_TargetIsThatOfFewPackets) {
  Parameters p = unknown_way(true);
  const NsccConstants c = nscc_constants(p, us(1000));
  NsccState s = nscc_start(c, at(0));
  EXPECT_DOUBLE_EQ(nscc_target_qdelay_us(s, c), 48) << "four reference round trips";
  s.cwnd_bytes = 2 * 4096;
  EXPECT_DOUBLE_EQ(nscc_target_qdelay_us(s, c), 1000) << "two packets in a round trip";
  s.avg_delay_us = 500;
  EXPECT_DOUBLE_EQ(nscc_target_qdelay_us(s, c), 1500);
  p.tuning.target_qdelay_us = 700;
  EXPECT_DOUBLE_EQ(nscc_target_qdelay_us(s, nscc_constants(p, us(1000))), 700) << "as it is tuned";
  p.base_rtt = us(1000);
  p.tuning.target_qdelay_us = 0;
  EXPECT_DOUBLE_EQ(nscc_target_qdelay_us(s, nscc_constants(p, us(1000))), 1000);
}

// Samples behind a slow link differ by the packets of others, which is no noise of hosts.
TEST(Nscc, Cms724_PacketsOfOthers_AreNoNoise) {
  const Parameters p = unknown_way(true);
  const NsccConstants c = nscc_constants(p, us(1000));
  NsccState s = nscc_start(c, at(0));
  for (int i = 0; i < 16; ++i) s.noise.add(us(i % 2 == 0 ? 1000 : 1500), 2000, at(i));
  EXPECT_DOUBLE_EQ(nscc_target_qdelay_us(s, c), 2000) << "four times the noise";
  s.cwnd_bytes = 2 * 4096;
  EXPECT_DOUBLE_EQ(nscc_target_qdelay_us(s, c), 1000) << "two packets in a round trip";
}

// CMS-710: while the base RTT is measured, a queue that the samples include is no time in hosts.
TEST(Nscc, Cms712_WhileMeasured_QueuesAreNoHostDelay) {
  Nscc nscc(unknown_way(true), at(0));
  for (unsigned i = 0; i <= BaseRttMeasurement::kSamples; ++i) {
    const double now_us = 200'000 + 10'000.0 * i;
    nscc.on_sent(4096, at(now_us - 180'000));
    nscc.on_ack({.newly_received_bytes = 4096, .rtt = us(180'000), .loop = us(180'000)},
                at(now_us));
    EXPECT_EQ(nscc.state().host.us(), 0) << "sample " << i;
  }
}

}  // namespace
}  // namespace uet::cms
