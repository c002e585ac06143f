// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Destination flow control from end to end (CMS 4.1): unexpected messages fill the memory of their
// target, which reports a penalty to its sources and lifts it when the application has received
// the messages.
#include <gtest/gtest.h>

#include <algorithm>

#include "pds/ccc_pool.h"
#include "sim/stage.h"

namespace uet::sim {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kLength = 1024;
constexpr std::size_t kPool = 64 * kLength;
constexpr int kSenders = 3;

class DestinationFlowControl : public testing::TestWithParam<cms::Algorithm> {
 protected:
  static StageConfig config() {
    StageConfig config;
    config.nodes = kSenders + 1;
    config.fep.cms.algorithm = GetParam();
    config.fep.cms.base_rtt = std::chrono::microseconds(30);
    config.fep.cms.link_rate_bps = 10'000'000'000;
    config.link.latency = std::chrono::microseconds(10);
    config.fep.ses.unexpected_bytes_per_context = kPool;
    return config;
  }
  DestinationFlowControl() : stage_(config()) {}

  // Each sender sends so many messages; what they have counted afterwards.
  void send_from_all(int messages) {
    for (int i = 0; i < messages; ++i) {
      for (int node = 1; node <= kSenders; ++node) {
        ASSERT_TRUE(stage_.send(node, 0, 0, kLength).ok());
      }
      stage_.world().run_for(std::chrono::microseconds(50));
    }
    sent_ += static_cast<std::size_t>(messages * kSenders);
  }
  cms::Counters source(int node) { return stage_.fep(node).stats().cms; }
  std::uint64_t window(int node) {
    std::uint64_t bytes = 0;
    stage_.fep(node).contexts().for_each(
        [&](const pds::SharedCcc& shared) { bytes = shared.ccc->window_bytes(); });
    return bytes;
  }

  Stage stage_;
  std::size_t sent_ = 0;
};

TEST_P(DestinationFlowControl, Cms300_Cms301_Cms302_FullPoolSlows_EmptyRestores) {
  send_from_all(4);
  EXPECT_EQ(stage_.counters(0).pend_sent, 0U) << "three sixteenths of the pool";
  const std::uint64_t before = window(1);

  send_from_all(10);  // two thirds
  EXPECT_GT(stage_.counters(0).pend_sent, 0U);
  EXPECT_EQ(stage_.counters(0).restores_sent, 0U);
  for (int node = 1; node <= kSenders; ++node) {
    EXPECT_GT(source(node).pend_received, 0U) << node;
    EXPECT_EQ(source(node).restores_received, 0U) << node;
    EXPECT_LT(window(node), before) << node;
  }

  for (std::size_t i = 0; i < sent_; ++i) ASSERT_TRUE(stage_.receive(0, 0, kLength).ok());
  ASSERT_TRUE(stage_.completes(0, sent_));
  const std::size_t taken = sent_;
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(stage_.receive(0, 0, kLength).ok());
  send_from_all(4);
  ASSERT_TRUE(stage_.completes(0, taken + 12));
  EXPECT_GT(stage_.counters(0).restores_sent, 0U);
  for (int node = 1; node <= kSenders; ++node) {
    EXPECT_GT(source(node).restores_received, 0U) << node;
    EXPECT_GE(window(node), before) << node;
    const auto& completions = stage_.actor(node).sink.completions;
    EXPECT_EQ(completions.size(), sent_ / kSenders) << node;
    EXPECT_TRUE(std::all_of(completions.begin(), completions.end(), [](const auto& completion) {
      return completion.status == ses::Status::Ok;
    }));
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, DestinationFlowControl,
                         testing::Values(cms::Algorithm::Nscc, cms::Algorithm::None));

}  // namespace
}  // namespace uet::sim
