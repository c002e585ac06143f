// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Swift: its target, what a round trip above and below it does, and losses (SIGCOMM 2020).
#include "cms/swift.h"

#include <gtest/gtest.h>

#include "bottleneck.h"

namespace uet::cms {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr double kMtu = 4096;

// 100 Gb/s x 12 us: BDP 150,000, largest window 225,000, target queueing delay 9 us (CMS 2.1).
Parameters network() {
  Parameters p;
  p.algorithm = Algorithm::Swift;
  p.mtu_bytes = 4096;
  p.link_rate_bps = 100'000'000'000;
  p.base_rtt = microseconds(12);
  p.trimming = true;
  return p;
}

class SwiftTest : public ::testing::Test {
 protected:
  bool ack(double at_us, double rtt_us, std::uint64_t bytes = 4096) {
    AckFeedback feedback;
    feedback.newly_received_bytes = bytes;
    if (rtt_us > 0) feedback.rtt = Duration(static_cast<std::int64_t>(rtt_us * 1000));
    return swift.on_ack(feedback, at(at_us));
  }
  static Time at(double us) { return Time{} + Duration(static_cast<std::int64_t>(us * 1000)); }
  void shrink_to(double bytes) {
    for (double us = 1000; static_cast<double>(swift.window_bytes()) > bytes; us += 1000) {
      ack(us, 60);
      now_us = us;
    }
  }

  Parameters p = network();
  Swift swift{p, Time{}};
  double now_us = 0;
};

TEST(SwiftTarget, FlowScaling_GrowsAsTheWindowShrinks) {
  EXPECT_DOUBLE_EQ(swift_flow_scaling_us(100, kSwiftFewPackets), 100);
  EXPECT_DOUBLE_EQ(swift_flow_scaling_us(100, 0.01), 100);
  EXPECT_NEAR(swift_flow_scaling_us(100, 1), 29.39, 0.01);
  EXPECT_NEAR(swift_flow_scaling_us(100, 25), 3.266, 0.001);
  EXPECT_NEAR(swift_flow_scaling_us(100, kSwiftFullPackets), 0, 1e-9);
  EXPECT_DOUBLE_EQ(swift_flow_scaling_us(100, 1000), 0);
}

TEST(SwiftTarget, Decrease_FollowsTheExcessAndIsBounded) {
  EXPECT_DOUBLE_EQ(swift_decrease(30, 30, 0.8, 0.5), 1);
  EXPECT_DOUBLE_EQ(swift_decrease(40, 30, 0.8, 0.5), 0.8);
  EXPECT_DOUBLE_EQ(swift_decrease(300, 30, 0.8, 0.5), 0.5);
}

TEST_F(SwiftTest, Start_WindowIsLargestAndTargetNearBase) {
  EXPECT_EQ(swift.window_bytes(), 225'000U);
  EXPECT_NEAR(swift.target_us(), 12 + 9 + 0.24, 0.01);
}

TEST_F(SwiftTest, BelowTarget_OnePacketPerWindow) {
  shrink_to(100'000);
  const auto before = static_cast<double>(swift.window_bytes());
  const int packets = static_cast<int>(before / kMtu);
  for (int i = 0; i < packets; ++i) ack(now_us + 12, 12.5);
  EXPECT_NEAR(static_cast<double>(swift.window_bytes()) - before, kMtu, 0.1 * kMtu);
}

TEST_F(SwiftTest, AboveTarget_OneDecreasePerRoundTrip) {
  ack(100, 42);
  const double first = 225'000 * (1 - 0.8 * (42 - 21.24) / 42);
  EXPECT_NEAR(static_cast<double>(swift.window_bytes()), first, 10);
  const std::uint64_t window = swift.window_bytes();
  for (double us = 101; us < 141; us += 1) ack(us, 42);
  EXPECT_EQ(swift.window_bytes(), window);
  ack(143, 42);
  EXPECT_LT(swift.window_bytes(), window);
}

TEST_F(SwiftTest, SmallWindow_EndsAtOnePacket) {
  shrink_to(kMtu);
  EXPECT_EQ(swift.window_bytes(), 4096U);
  EXPECT_TRUE(swift.may_send(4096));
  EXPECT_NEAR(swift.target_us(), 21 + 21 * 0.2939, 0.01);
}

TEST_F(SwiftTest, Mark_MeansNothing) {
  AckFeedback feedback;
  feedback.newly_received_bytes = 4096;
  feedback.ce = true;
  feedback.rtt = microseconds(13);
  swift.on_ack(feedback, at(100));
  EXPECT_EQ(swift.window_bytes(), 225'000U);
}

TEST_F(SwiftTest, Loss_HalvesOncePerRoundTrip) {
  for (int i = 0; i < 5; ++i) swift.on_inferred_loss(4096, LossCause::Path, at(100));
  EXPECT_EQ(swift.window_bytes(), 112'500U);
  swift.on_nack(wire::NackCode::Trimmed, 4096, false, std::nullopt, at(113));
  EXPECT_EQ(swift.window_bytes(), 56'250U);
  swift.on_nack(wire::NackCode::NoPktBuffer, 4096, false, std::nullopt, at(200));
  EXPECT_EQ(swift.window_bytes(), 56'250U);  // CMS-131
}

TEST_F(SwiftTest, SpuriousLoss_RestoresTheWindow) {
  swift.on_sent(4096, at(90));
  swift.on_inferred_loss(4096, LossCause::Path, at(100));
  swift.on_inferred_loss(4096, LossCause::Path, at(120));
  EXPECT_EQ(swift.window_bytes(), 56'250U);
  swift.on_spurious_loss(4096);
  EXPECT_EQ(swift.window_bytes(), 225'000U);
  EXPECT_EQ(swift.inflight_bytes(), 0);
}

TEST_F(SwiftTest, TimeoutsInARow_LeaveOnePacket) {
  for (int i = 0; i < 4; ++i) swift.on_inferred_loss(4096, LossCause::Rto, at(100));
  EXPECT_EQ(swift.window_bytes(), 112'500U);
  swift.on_inferred_loss(4096, LossCause::RepeatedRto, at(101));
  EXPECT_EQ(swift.window_bytes(), 4096U);
}

TEST_F(SwiftTest, Cms301_BusyDestinationStopsTheIncrease) {
  shrink_to(100'000);
  swift.on_sent(90'000, at(now_us));
  AckFeedback feedback;
  feedback.newly_received_bytes = 4096;
  feedback.rtt = microseconds(12);
  feedback.rcv_cwnd_pend = 64;
  const std::uint64_t before = swift.window_bytes();
  swift.on_ack(feedback, at(now_us + 12));
  EXPECT_LT(swift.window_bytes(), before);
}

TEST_F(SwiftTest, Cms142_LongerPathRaisesTheBase) {
  p.tuning.raise_after_rtts = 10;
  Swift other(p, Time{});
  bool raised = false;
  AckFeedback feedback;
  feedback.newly_received_bytes = 4096;
  feedback.rtt = microseconds(60);
  for (double us = 0; us < 300; us += 20) raised |= other.on_ack(feedback, at(us));
  EXPECT_TRUE(raised);
  EXPECT_EQ(other.base_rtt(), Duration(microseconds(48)));  // four times the configured one
  other.on_probe_answer(microseconds(20));
  EXPECT_EQ(other.base_rtt(), Duration(microseconds(20)));
}

TEST(SwiftMeasured, Cms710_EightSamplesMakeABase) {
  Parameters p = network();
  p.base_rtt.reset();
  Swift swift(p, Time{});
  EXPECT_EQ(swift.base_rtt(), std::nullopt);
  AckFeedback feedback;
  feedback.newly_received_bytes = 4096;
  for (unsigned i = 0; i < BaseRttMeasurement::kSamples; ++i) {
    EXPECT_EQ(swift.base_rtt(), std::nullopt);
    feedback.rtt = microseconds(30 + i);
    swift.on_ack(feedback, Time{} + i * microseconds(40));
  }
  EXPECT_EQ(swift.base_rtt(), Duration(microseconds(30)));
  EXPECT_NEAR(static_cast<double>(swift.largest_window_bytes()), 1.5 * 12'500 * 30, 10);
}

TEST(SwiftMeasured, Cms141_EarlierBaseIsTaken) {
  Parameters p = network();
  p.base_rtt.reset();
  EXPECT_NEAR(Swift(p, Time{}, microseconds(20)).target_us(), 20 + 0.75 * 20, 1);
}

// The paper's claim in small: a full link, equal shares, a queue near the target.
TEST(SwiftClosedLoop, IncastIsFullAndFair) {
  test::Bottleneck::Config config;
  config.parameters = network();
  config.flows = 8;
  test::Bottleneck port(config);
  port.run_until(5000);
  port.reset_counters();
  port.run_until(20'000);
  double sum = 0;
  for (std::size_t i = 0; i < config.flows; ++i) sum += port.delivered(i);
  EXPECT_GT(sum, 0.97 * port.port_rate() * 15'000);
  EXPECT_GT(port.jain(), 0.95);
  EXPECT_LT(port.mean_queue_delay_us(), 25);
}

}  // namespace
}  // namespace uet::cms
