// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Base RTT, host delay, target and largest window for algorithms that are driven by delay.
#include "cms/delay_signal.h"

#include <gtest/gtest.h>

namespace uet::cms {
namespace {

using std::chrono::microseconds;

// 100 Gb/s x 12 us: BDP 150,000.
Parameters network(bool measured = false) {
  Parameters p;
  p.mtu_bytes = 4096;
  p.link_rate_bps = 100'000'000'000;
  if (!measured) p.base_rtt = microseconds(12);
  return p;
}

AckFeedback sample(Duration rtt) {
  AckFeedback feedback;
  feedback.newly_received_bytes = 4096;
  feedback.rtt = rtt;
  return feedback;
}

TEST(DelaySignal, Cms102_ShorterSampleLowersTheBase) {
  DelaySignal signal(network(), Time{}, {});
  EXPECT_EQ(signal.base_rtt(), std::nullopt);  // nothing has confirmed it
  EXPECT_EQ(signal.add(sample(microseconds(30)), 0, Time{}), 30);
  EXPECT_EQ(signal.base_us(), 12);
  signal.add(sample(microseconds(8)), 0, Time{});
  EXPECT_EQ(signal.base_rtt(), Duration(microseconds(8)));
  EXPECT_EQ(signal.target_qdelay_us(), 12);  // as configured
  EXPECT_DOUBLE_EQ(signal.max_window_bytes(), 1.5 * 12'500 * 8);
}

TEST(DelaySignal, Cms113_NoSampleNoDelay) {
  DelaySignal signal(network(), Time{}, {});
  EXPECT_EQ(signal.add(AckFeedback{}, 0, Time{}), std::nullopt);
  EXPECT_EQ(signal.add(sample(Duration::zero()), 0, Time{}), std::nullopt);
}

TEST(DelaySignal, Cms710_EightSamplesMakeABase) {
  DelaySignal signal(network(true), Time{}, {});
  for (unsigned i = 0; i + 1 < BaseRttMeasurement::kSamples; ++i) {
    EXPECT_EQ(signal.add(sample(microseconds(30 + i)), 0, Time{}), std::nullopt);
    EXPECT_EQ(signal.base_rtt(), std::nullopt);
  }
  EXPECT_EQ(signal.add(sample(microseconds(50)), 0, Time{}), 50);
  EXPECT_EQ(signal.base_rtt(), Duration(microseconds(30)));
  EXPECT_DOUBLE_EQ(signal.target_qdelay_us(), 30);  // CMS-143
}

TEST(DelaySignal, Cms141_EarlierBaseIsTaken) {
  const DelaySignal signal(network(true), Time{}, microseconds(20));
  EXPECT_EQ(signal.base_us(), 20);
  EXPECT_DOUBLE_EQ(signal.target_qdelay_us(), 20);
}

TEST(DelaySignal, Cms712_HostDelayWidensTheWindow) {
  DelaySignal signal(network(), Time{}, {});
  AckFeedback feedback = sample(microseconds(12));
  feedback.loop = microseconds(112);
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(signal.add(feedback, 0, Time{} + i * std::chrono::milliseconds(10)), 12);
  }
  EXPECT_NEAR(signal.loop_us(), 112, 1);
  EXPECT_EQ(signal.base_us(), 12);
  EXPECT_NEAR(signal.max_window_bytes(), std::min(1.5 * 12'500 * 112, 1048576.0), 20'000);
}

TEST(DelaySignal, Cms142_MarkOrPausePreventsTheRise) {
  Parameters p = network();
  p.tuning.raise_after_rtts = 10;
  for (const bool ce : {false, true}) {
    DelaySignal signal(p, Time{}, {});
    AckFeedback feedback = sample(microseconds(40));
    feedback.ce = ce;
    for (int i = 0; i < 10; ++i) signal.add(feedback, 100'000, Time{} + i * microseconds(20));
    EXPECT_EQ(signal.take_raised(), !ce);
    EXPECT_FALSE(signal.take_raised());
    EXPECT_EQ(signal.base_us(), ce ? 12 : 40);
  }
  DelaySignal signal(p, Time{}, {});
  for (int i = 0; i < 20; ++i) {
    signal.add(sample(microseconds(40)), 100'000, Time{} + i * microseconds(20));
    if (i % 5 == 0) signal.restart_raise(Time{} + i * microseconds(20));
  }
  EXPECT_EQ(signal.base_us(), 12);
}

TEST(DelaySignal, Cms711_JitterWidensTheTarget) {
  DelaySignal signal(network(), Time{}, {});
  for (int i = 0; i < 64; ++i) {
    signal.add(sample(microseconds(i % 2 == 0 ? 12 : 20)), 0, Time{} + i * microseconds(20));
  }
  EXPECT_DOUBLE_EQ(signal.target_qdelay_us(), 32);  // four times
}

TEST(DelaySignal, Cms150_RecoveryIsThatOfNscc) {
  Parameters p = network();
  Window window;
  window.mtu_bytes = 4096;
  window.cwnd_bytes = window.max_bytes = 225'000;
  const DelaySignal signal(p, Time{}, {});
  const Nscc nscc(p, Time{});
  const auto rules = signal.recovery(window, Time{});
  ASSERT_TRUE(rules && nscc.recovery());
  EXPECT_EQ(rules->bytes, nscc.recovery()->bytes);
  EXPECT_EQ(rules->silence, nscc.recovery()->silence);
  EXPECT_EQ(rules->unqueued_rtt, nscc.recovery()->unqueued_rtt);
  p.recovery = false;
  EXPECT_FALSE(DelaySignal(p, Time{}, {}).recovery(window, Time{}));
}

}  // namespace
}  // namespace uet::cms
