// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// NSCC's derived values and worked examples, CMS 2.1 and 2.6.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "unit/cms/nscc_model.h"

namespace uet::cms {
namespace {

using test::at;
using test::expect_close;
using test::Model;
using test::reference_network;
using test::us;

// --- Derived values, table of CMS 2.1 ---------------------------------------------------------

struct Derived {
  const char* name;
  double gbps, rtt_us;
  std::uint32_t mtu;
  bool trimming;
  double bdp, max_window, target, a, b, alpha, fi, eta, fi_scale, threshold, gate;
};

class NsccConstantsTable : public testing::TestWithParam<Derived> {};

TEST_P(NsccConstantsTable, Cms2_1_DerivedValues) {
  const Derived& row = GetParam();
  Parameters p;
  p.link_rate_bps = static_cast<std::uint64_t>(row.gbps * 1e9);
  p.mtu_bytes = row.mtu;
  p.trimming = row.trimming;
  p.base_rtt = us(row.rtt_us);
  const NsccConstants c = nscc_constants(p, *p.base_rtt);
  const NsccState s = nscc_start(c, at(0));
  expect_close(c.bdp_bytes(), row.bdp, 1e-4);
  expect_close(s.max_bytes, row.max_window, 1e-4);
  expect_close(nscc_target_qdelay_us(s, c), row.target, 1e-4);
  expect_close(c.scaling_a, row.a, 1e-4);
  expect_close(c.scaling_b(), row.b, 1e-4);
  expect_close(c.alpha_bytes_per_us, row.alpha, 1e-4);
  expect_close(c.fi_bytes(), row.fi, 1e-4);
  expect_close(c.eta_bytes(), row.eta, 1e-4);
  expect_close(c.fi_scale(), row.fi_scale, 1e-4);
  expect_close(s.max_bytes / 8, row.gate, 1e-4);
  expect_close(c.adjust_bytes(), 8.0 * row.mtu, 1e-9);
  expect_close(c.adjust_period_us(), row.rtt_us, 1e-9);
  if (row.trimming) {
    EXPECT_TRUE(std::isinf(nscc_qa_threshold_us(s, c)));
  } else {  // CMS-508: the target is the base RTT; quick adapt fires at four times that
    expect_close(nscc_qa_threshold_us(s, c), row.threshold, 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Networks, NsccConstantsTable,
    testing::Values(Derived{"100G_12us_trimming", 100, 12, 4096, true, 150'000, 225'000, 9, 1, 0.75,
                            1365.3333, 20'480, 614.4, 0.25, 0, 28'125},
                    Derived{"100G_12us", 100, 12, 4096, false, 150'000, 225'000, 12, 1, 1,
                            1365.3333, 20'480, 614.4, 0.25, 48, 28'125},
                    Derived{"400G_6us_trimming", 400, 6, 4096, true, 300'000, 450'000, 4.5, 2,
                            0.375, 2730.6667, 40'960, 1228.8, 0.5, 0, 56'250},
                    Derived{"400G_12us_trimming", 400, 12, 4096, true, 600'000, 900'000, 9, 4, 0.75,
                            5461.3333, 81'920, 2457.6, 1, 0, 112'500},
                    Derived{"25G_50us", 25, 50, 4096, false, 156'250, 234'375, 50, 1.041667,
                            4.166667, 1422.2222, 21'333.33, 640, 0.260417, 200, 29'296.875},
                    Derived{"10G_100us_8192", 10, 100, 8192, false, 125'000, 187'500, 100, 0.833333,
                            8.333333, 2275.5556, 34'133.33, 1024, 0.208333, 400, 23'437.5},
                    Derived{"10G_100us_1400", 10, 100, 1400, false, 125'000, 187'500, 100, 0.833333,
                            8.333333, 388.8889, 5'833.33, 175, 0.208333, 400, 23'437.5}),
    [](const testing::TestParamInfo<Derived>& i) { return std::string(i.param.name); });

// --- Worked examples, CMS 2.6 -----------------------------------------------------------------

TEST(NsccExample, Cms2_6_Example1_Rise) {
  Model m;
  m.s.cwnd_bytes = 100'000;
  EXPECT_EQ(m.ack(5, 16'384, false, 15), NsccReaction::Rise);
  expect_close(m.s.inc_bytes2, 134'217'728);
  EXPECT_EQ(m.ack(6, 16'384, false, 15), NsccReaction::Rise);
  expect_close(m.s.inc_bytes2, 268'435'456);
  expect_close(m.s.cwnd_bytes, 100'000);
  m.ack(7, 16'384, false, 15);
  EXPECT_EQ(m.s.inc_bytes2, 0);
  expect_close(m.s.cwnd_bytes, 104'026.53184);
}

TEST(NsccExample, Cms2_6_Example1_PeriodOver_RiseWithEta) {
  Model m;
  m.s.cwnd_bytes = 100'000;
  for (double t : {3.0, 6.0, 12.0}) m.ack(t, 16'384, false, 15);
  expect_close(m.s.cwnd_bytes, 104'640.93184);
  EXPECT_EQ(m.s.last_adjust_time, at(12));
}

TEST(NsccExample, Cms2_6_Example2_Fair) {
  Model m;
  m.s.cwnd_bytes = 60'000;
  EXPECT_EQ(m.ack(3, 16'384, false, 23), NsccReaction::Fair);
  expect_close(m.s.inc_bytes2, 335'544'320);
  m.ack(6, 16'384, false, 23);
  expect_close(m.s.inc_bytes2, 671'088'640);
  m.ack(12, 16'384, false, 23);
  expect_close(m.s.cwnd_bytes, 77'391.616);
}

TEST(NsccExample, Cms2_6_Example3_Cut) {
  const std::pair<double, double> rows[] = {{9, 200'000},  {10, 184'000}, {15, 136'000},
                                            {24, 100'000}, {30, 100'000}, {45, 100'000}};
  for (const auto& [average, after] : rows) {
    Model m;
    m.s.cwnd_bytes = 200'000;
    m.s.avg_delay_us = average;
    m.s.avg_delay_time = at(100);  // weight 0: Q stays
    m.s.last_adjust_time = at(100);
    EXPECT_EQ(m.ack(100, 4096, true, 12 + 9), NsccReaction::Cut);
    expect_close(m.s.cwnd_bytes, after);
  }
}

TEST(NsccExample, Cms2_6_Example4_FastIncrease) {
  Model m;
  m.s.cwnd_bytes = 50'000;
  EXPECT_EQ(m.ack(1.3, 16'384, false, 12.4), NsccReaction::Rise);
  expect_close(m.s.inc_bytes2, 192'378'743.5);
  EXPECT_EQ(m.ack(2.6, 16'384, false, 12.4), NsccReaction::Rise);
  expect_close(m.s.inc_bytes2, 2 * 192'378'743.5);
  expect_close(m.s.fi_count_bytes, 32'768);
  EXPECT_EQ(m.ack(3.9, 16'384, false, 12.4), NsccReaction::Rise);
  expect_close(m.s.cwnd_bytes, 61'542.72, 1e-6);
  const double after[] = {65'638.72, 69'734.72, 73'830.72};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(m.ack(5.2 + 1.3 * i, 16'384, false, 12.4), NsccReaction::FastIncrease);
    expect_close(m.s.cwnd_bytes, after[i], 1e-6);
  }
  expect_close(m.s.fi_count_bytes, 98'304);
  EXPECT_TRUE(m.s.increase_mode);
}

TEST(NsccExample, Cms2_6_Example5_IncastWithTrimsAndQuickAdapt) {
  Model m;
  m.s.qa_end_time.reset();
  m.s.inflight_bytes = 225'000;
  m.trim(20, 4096);
  expect_close(m.s.cwnd_bytes, 220'904);
  EXPECT_EQ(m.s.inflight_bytes, 220'904);
  EXPECT_EQ(m.s.qa_end_time, at(41));
  expect_close(m.s.avg_delay_us, 12);
  EXPECT_TRUE(m.s.trigger_qa);

  EXPECT_EQ(m.ack(25, 8192, true, 25), NsccReaction::Cut);
  EXPECT_NEAR(m.s.cwnd_bytes, 172'889.868, 1e-3);
  EXPECT_EQ(m.s.inflight_bytes, 212'712);
  EXPECT_NEAR(m.s.avg_delay_us, 12.41667, 1e-5);

  m.trim(30, 4096);
  EXPECT_NEAR(m.s.cwnd_bytes, 168'793.868, 1e-3);
  EXPECT_EQ(m.s.inflight_bytes, 208'616);

  m.trim(41.5, 4096);
  expect_close(m.s.cwnd_bytes, 8192);
  EXPECT_EQ(m.s.inflight_bytes, 204'520);
  EXPECT_EQ(m.s.bytes_to_ignore, 204'520);
  EXPECT_EQ(m.s.qa_end_time, at(62.5));

  m.trim(43, 4096);
  expect_close(m.s.cwnd_bytes, 8192);
  EXPECT_EQ(m.s.inflight_bytes, 200'424);
  EXPECT_EQ(m.s.bytes_ignored, 4096);

  EXPECT_EQ(m.ack(44, 8192, true, 40), NsccReaction::Ignored);
  expect_close(m.s.cwnd_bytes, 8192);
  EXPECT_EQ(m.s.inflight_bytes, 192'232);

  EXPECT_EQ(m.ack(45, 8192, false, 13), NsccReaction::Rise);
  expect_close(m.s.cwnd_bytes, 19'729.0667, 1e-6);
  EXPECT_EQ(m.s.inflight_bytes, 184'040);
  EXPECT_FALSE(m.s.may_send(4096)) << "sending resumes when the flight has shrunk below the window";
}

TEST(NsccExample, Cms2_6_Example6_InferredLoss) {
  Model m;
  m.s.cwnd_bytes = 50'000;
  m.s.inflight_bytes = 40'960;
  m.loss(1, 4096);
  expect_close(m.s.cwnd_bytes, 45'904);
  EXPECT_EQ(m.s.inflight_bytes, 36'864);
  m.s.cwnd_bytes = 6000;
  m.loss(2, 4096);
  expect_close(m.s.cwnd_bytes, 4096);
}

TEST(NsccExample, Cms2_6_Example7_BaseRttFalls) {
  Model m;
  m.ack(1, 4096, true, 10);
  expect_close(m.s.base_rtt_us, 10);
  expect_close(m.s.max_bytes, 187'500);
  expect_close(m.s.cwnd_bytes, 187'500);
  expect_close(nscc_target_qdelay_us(m.s, m.c), 9);
}

TEST(NsccExample, Cms2_6_Example8_NoTrimming_AdaptByDelay) {
  Model fires(reference_network(false));
  fires.s.qa_end_time = at(20);
  fires.s.achieved_bytes = 20'000 - 4096;
  EXPECT_EQ(fires.ack(20, 4096, true, 12 + 49), NsccReaction::QuickAdapt);
  expect_close(fires.s.cwnd_bytes, 20'000);

  Model restarts(reference_network(false));
  restarts.s.qa_end_time = at(20);
  restarts.s.achieved_bytes = 30'000 - 4096;
  restarts.s.avg_delay_time = at(20);  // Q = 0: no cut hides the result
  restarts.s.last_adjust_time = at(20);
  EXPECT_EQ(restarts.ack(20, 4096, true, 12 + 49), NsccReaction::Cut);
  expect_close(restarts.s.cwnd_bytes, 225'000);
  EXPECT_EQ(restarts.s.achieved_bytes, 0U);
  EXPECT_EQ(restarts.s.qa_end_time, at(20 + 12 + 12));
}

// Example 9 is in rtt_test.cc, that of destination flow control in window_test.cc.

}  // namespace
}  // namespace uet::cms
