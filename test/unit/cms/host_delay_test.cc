// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// NSCC where processes wait for cores: time in the hosts is part of the control loop and no queue.
#include "cms/host_delay.h"

#include <gtest/gtest.h>

#include "cms/nscc.h"
#include "unit/cms/bottleneck.h"

namespace uet::cms {
namespace {

Time at(double us) { return time_from_ns(std::llround(us * 1000)); }
Duration us(double value) { return Duration(std::llround(value * 1000)); }

// A virtual network of 10 Gb/s, nothing configured.
Parameters virtual_network() {
  Parameters p;
  p.mtu_bytes = 1152;
  p.max_window_bytes = 2 << 20;
  return p;
}

// Two processes that are seldom on a core together: what one sends in its turn the other takes up
// in its own, `turn_us` later. Nothing is lost, and the network needs `network_us`.
class SlowHosts {
 public:
  explicit SlowHosts(const Parameters& parameters) : nscc(parameters, at(0)) {}

  // One message and its answer, both processes awake: what base RTT and window are learnt from.
  void ping(double rtt_us) {
    nscc.on_sent(156, at(now_us));
    now_us += rtt_us + 3;
    acknowledge(156, rtt_us, rtt_us + 3);
  }
  // Sends what it may, waits for its next turn and takes the answers. `outlier`: it lost its core
  // while it sent, so that some packets seem to have been long in the network. `timed_out`: the
  // retransmission timer was faster than the peer.
  void bulk(double turn_us, bool outlier, bool timed_out) {
    std::uint32_t packets = 0;
    for (; nscc.may_send(1152); ++packets) nscc.on_sent(1152, at(now_us));
    now_us += turn_us;
    delivered_bytes += packets * 1152.0;
    if (timed_out) {
      for (std::uint32_t i = 0; i < packets; ++i) {
        nscc.on_inferred_loss(1152, i % 8 == 0 ? LossCause::RepeatedRto : LossCause::Rto,
                              at(now_us));
      }
      for (std::uint32_t i = 0; i < packets; ++i) nscc.on_spurious_loss(1152);
    }
    for (; packets > 0; --packets) {
      acknowledge(1152, outlier && packets % 16 < 3 ? 3000 : network_us + packets % 3, turn_us);
    }
  }

  Nscc nscc;
  double network_us = 10;
  double now_us = 0;
  double delivered_bytes = 0;

 private:
  void acknowledge(std::uint32_t bytes, double rtt_us, double loop_us) {
    AckFeedback feedback;
    feedback.newly_received_bytes = bytes;
    feedback.rtt = us(rtt_us);
    feedback.loop = us(loop_us);
    nscc.on_ack(feedback, at(now_us));
  }
};

TEST(NsccHostDelay, ProcessesThatWaitForACoreKeepTheirWindow) {
  SlowHosts hosts(virtual_network());
  for (int i = 0; i < 1000; ++i) hosts.ping(10 + i % 2);
  EXPECT_LT(hosts.nscc.window_bytes(), 40'000U) << "the hosts are quick: a window of the network";
  for (int i = 0; i < 10; ++i) hosts.bulk(50'000, i % 3 == 0, i % 2 == 0);
  hosts.delivered_bytes = 0;
  const double start_us = hosts.now_us;
  for (int i = 0; i < 100; ++i) hosts.bulk(50'000, i % 3 == 0, i % 2 == 0);
  // A window of 1.5 base RTT would be 19 KB, 0.4 bytes per us.
  EXPECT_GT(hosts.delivered_bytes / (hosts.now_us - start_us), 35);
}

// A veth: hosts that carry 5,000 bytes per us, and a network that counts as 100 Gb/s and takes next
// to no time.
TEST(NsccHostDelay, AStreamHasItsWindowWithinMilliseconds) {
  Parameters veth = virtual_network();
  veth.link_rate_bps = 100'000'000'000;
  SlowHosts hosts(veth);
  hosts.network_us = 1;
  for (int i = 0; i < 1000; ++i) hosts.ping(hosts.network_us);
  EXPECT_LT(hosts.nscc.window_bytes(), 100'000U);
  const double start_us = hosts.now_us;
  while (hosts.nscc.window_bytes() < 1'000'000 && hosts.now_us < start_us + 100'000) {
    hosts.bulk(10 + static_cast<double>(hosts.nscc.window_bytes()) / 5000, false, false);
  }
  EXPECT_LT(hosts.now_us - start_us, 20'000);
}

TEST(NsccHostDelay, QuickHosts_WindowReturnsToNetworkSize) {
  SlowHosts hosts(virtual_network());
  for (int i = 0; i < 8; ++i) hosts.ping(10);
  for (int i = 0; i < 10; ++i) hosts.bulk(50'000, false, false);
  EXPECT_EQ(hosts.nscc.window_bytes(), 2U << 20);
  for (int i = 0; i < 100'000; ++i) hosts.ping(10);
  EXPECT_LT(hosts.nscc.window_bytes(), 40'000U);
}

TEST(NsccHostDelay, RareDelaysOfAHostMoveItLittle) {
  for (const double network_us : {1.0, 100.0}) {
    HostDelay host;
    for (int i = 1; i < 10'000; ++i) host.add(i % 100 == 0 ? 3000 : 20, network_us, at(i * 100.0));
    EXPECT_GT(host.us(), 20);
    EXPECT_LT(host.us(), 60);
  }
}

TEST(NsccHostDelay, ALossThatWasNoneGivesTheWindowBack) {
  const NsccConstants c = nscc_constants(virtual_network(), us(100));
  NsccState s = nscc_start(c, at(0));
  nscc_on_sent(s, c, 4608, at(0));
  const double window = s.cwnd_bytes;
  for (int i = 0; i < 3; ++i) nscc_on_inferred_loss(s, 1152, LossCause::Rto, at(1));
  nscc_on_inferred_loss(s, 1152, LossCause::RepeatedRto, at(2));
  EXPECT_EQ(s.cwnd_bytes, 1152);  // CMS-135
  for (int i = 0; i < 4; ++i) nscc_on_spurious_loss(s, 1152);
  EXPECT_EQ(s.inflight_bytes, 4608);
  EXPECT_EQ(s.cwnd_bytes, window);
}

TEST(NsccHostDelay, AnAckAfterACollapseMakesItFinal) {
  const NsccConstants c = nscc_constants(virtual_network(), us(100));
  NsccState s = nscc_start(c, at(0));
  nscc_on_sent(s, c, 4608, at(0));
  nscc_on_inferred_loss(s, 1152, LossCause::Rto, at(1));
  nscc_on_inferred_loss(s, 1152, LossCause::RepeatedRto, at(2));
  nscc_on_ack(s, c, AckFeedback{}, at(3));
  nscc_on_spurious_loss(s, 1152);
  EXPECT_EQ(s.cwnd_bytes, 2 * 1152);
}

// One late sample is a mark only where hosts add no time (CMS-703); a queue that lasts always is.
TEST(NsccHostDelay, ADelayMustLastWhereHostsAddTime) {
  const Parameters p = virtual_network();
  const NsccConstants c = nscc_constants(p, us(100));
  NsccState s = nscc_start(c, at(0));
  AckFeedback feedback;
  feedback.newly_received_bytes = 1152;
  feedback.rtt = us(100);
  feedback.loop = us(5000);
  double t = 0;
  for (; t < 500'000; t += 5000) nscc_on_ack(s, c, feedback, at(t));
  feedback.rtt = us(1000);
  EXPECT_EQ(nscc_on_ack(s, c, feedback, at(t)), NsccReaction::Fair);
  feedback.rtt = us(100);
  nscc_on_ack(s, c, feedback, at(t + 10));
  feedback.rtt = us(1000);
  EXPECT_EQ(nscc_on_ack(s, c, feedback, at(t + 20)), NsccReaction::Fair);
  EXPECT_EQ(nscc_on_ack(s, c, feedback, at(t + 119)), NsccReaction::Fair);
  EXPECT_EQ(nscc_on_ack(s, c, feedback, at(t + 120)), NsccReaction::Cut);
}

// Noise that was measured long ago would make a flow more patient than its neighbours for ever.
TEST(NsccHostDelay, Cms711_NoiseIsForgottenUnderLoad) {
  const NsccConstants c = nscc_constants(virtual_network(), us(100));
  NsccState s = nscc_start(c, at(0));
  AckFeedback feedback;
  double t = 0;
  for (int i = 0; i < 16; ++i) {
    feedback.rtt = us(i % 2 == 0 ? 100 : 150);
    nscc_on_ack(s, c, feedback, at(t += 10));
  }
  EXPECT_EQ(s.noise.jitter_us(), 50);
  nscc_on_sent(s, c, 100'000, at(t));
  for (int i = 0; i < 1000; ++i) nscc_on_ack(s, c, feedback, at(t += 90));
  EXPECT_EQ(s.noise.jitter_us(), 50);
  for (int i = 0; i < 1000; ++i) nscc_on_ack(s, c, feedback, at(t += 90));
  EXPECT_EQ(s.noise.jitter_us(), 0);
}

// Answers of a full window that are taken up together leave little in flight, and are no light
// load.
TEST(NsccHostDelay, Cms711_NoNoiseFromABatchOfAnswers) {
  const NsccConstants c = nscc_constants(virtual_network(), us(100));
  NsccState s = nscc_start(c, at(0));
  nscc_on_sent(s, c, 100'000, at(0));
  AckFeedback feedback;
  feedback.newly_received_bytes = 100'000;
  for (int i = 0; i < 40; ++i) {
    feedback.rtt = us(i % 2 == 0 ? 100 : 150);
    nscc_on_ack(s, c, feedback, at(100));
    feedback.newly_received_bytes = 0;
  }
  EXPECT_EQ(s.noise.jitter_us(), 0);
}

// The peer kept the packet longer than it can say: no sample, but the hosts are slow.
TEST(NsccHostDelay, AnswerWithoutSample_UpdatesHostDelay) {
  const NsccConstants c = nscc_constants(virtual_network(), us(100));
  NsccState s = nscc_start(c, at(0));
  AckFeedback feedback;
  feedback.newly_received_bytes = 1152;
  feedback.loop = us(20'100);
  for (int i = 0; i < 20; ++i) nscc_on_ack(s, c, feedback, at(i * 20'000));
  EXPECT_NEAR(s.host.us(), 20'000, 500);
  EXPECT_EQ(s.max_bytes, 2 << 20);
}

// An NSCC context whose window is one packet, with a noise of 500 us and 1 ms of host delay.
struct Noisy {
  Noisy() {
    for (int i = 0; i < 16; ++i) acknowledge(50'000, 100, 0);
    for (int i = 0; i < 32; ++i) acknowledge(10, i % 2 == 0 ? 100 : 600, 0);
    EXPECT_NEAR(state.host.us(), 1000, 1);
    EXPECT_EQ(state.noise.jitter_us(), 500);
    state.set_cwnd(0);
  }
  // `later_us` than the last one.
  void acknowledge(double later_us, double rtt_us, std::uint32_t bytes, bool ecn = false) {
    AckFeedback feedback;
    feedback.newly_received_bytes = bytes;
    feedback.ce = ecn;
    feedback.rtt = us(rtt_us);
    feedback.loop = us(rtt_us + 1000);
    nscc_on_ack(state, constants, feedback, at(now_us += later_us));
  }

  NsccConstants constants = nscc_constants(virtual_network(), us(100));
  NsccState state = nscc_start(constants, at(0));
  double now_us = 0;
};

// A noise of 500 us widens the target to 2 ms: RISE alone would make it 380 KB at once.
TEST(NsccHostDelay, OneAnswerDoublesASmallWindowAtMost) {
  Noisy noisy;
  noisy.acknowledge(10'000, 100, 1152);
  EXPECT_EQ(noisy.state.cwnd_bytes, 2 * 1152);
  noisy.acknowledge(10'000, 100, 1152);
  EXPECT_EQ(noisy.state.cwnd_bytes, 3 * 1152) << "no more than has arrived";
}

// CMS-122: eta is made for the whole loop, so it is added once per loop.
TEST(NsccHostDelay, TheUnconditionalIncreaseComesOncePerLoop) {
  Noisy noisy;
  noisy.state.set_cwnd(100'000);
  const double window_bytes = noisy.state.cwnd_bytes;
  noisy.acknowledge(10'000, 100, 1000, true);  // HOLD: no other increase
  const double once_bytes = noisy.state.cwnd_bytes;
  EXPECT_GT(once_bytes, window_bytes);
  noisy.acknowledge(500, 100, 1000, true);  // half a loop, five configured RTTs
  EXPECT_EQ(noisy.state.cwnd_bytes, once_bytes);
}

// Queues in the network are held short in spite of slow hosts, with marks and without.
class NsccHostDelayQueue : public testing::TestWithParam<bool> {};

TEST_P(NsccHostDelayQueue, IncastStaysFullFairAndShort) {
  test::Bottleneck::Config config;
  config.parameters.mtu_bytes = 4096;
  config.parameters.link_rate_bps = 100'000'000'000;
  config.parameters.base_rtt = us(12);
  config.flows = 8;
  config.ecn = GetParam();
  config.host_us = 12;
  test::Bottleneck port(config);
  port.run_until(2000);
  port.reset_counters();
  port.run_until(8000);
  double sum = 0;
  for (std::size_t i = 0; i < config.flows; ++i) sum += port.delivered(i);
  EXPECT_GE(sum / (6000 * port.port_rate()), 0.85);
  EXPECT_GE(port.jain(), 0.9);
  EXPECT_LE(port.mean_queue_delay_us(), 30);
}

// The senders believe in 10 Gb/s where the port has 200 Mb/s, and wait for cores.
TEST_P(NsccHostDelayQueue, ASlowPortIsNotOverrun) {
  test::Bottleneck::Config config;
  config.parameters.mtu_bytes = 4096;
  config.parameters.base_rtt = us(100);
  config.slower = 50;
  config.flows = 4;
  config.ecn = GetParam();
  config.one_way_us = 50;
  config.host_us = 300;
  test::Bottleneck port(config);
  port.run_until(200'000);
  port.reset_counters();
  port.run_until(2'000'000);
  double sum = 0;
  for (std::size_t i = 0; i < config.flows; ++i) sum += port.delivered(i);
  EXPECT_GE(sum / (1'800'000 * port.port_rate()), 0.9);
  EXPECT_GE(port.jain(), 0.9);
  EXPECT_LE(port.lost() / sum, 0.01);
  EXPECT_LE(port.mean_queue_delay_us(), GetParam() ? 1500 : 4000);  // four packets take 655 us
}

INSTANTIATE_TEST_SUITE_P(Marks, NsccHostDelayQueue, testing::Bool());

}  // namespace
}  // namespace uet::cms
