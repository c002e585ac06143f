// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Many senders to one receiver whose link is the bottleneck: shares, losses and the reaction of
// each congestion control algorithm.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "sim/stage.h"

namespace uet::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using wire::CpType;

constexpr std::uint64_t kLinkRateBps = 10'000'000'000;

struct Incast {
  double jain = 0;          // of the senders' goodput while all of them send
  double goodput_gbps = 0;  // of all together
  std::uint64_t dropped = 0;
  std::uint64_t fallbacks = 0;
};

struct IncastConfig {
  cms::Algorithm algorithm{};
  int senders = 0;
  double loss = 0;
  std::size_t bytes = 1 << 20;  // of each sender
};

// Each sender writes to a place of its own. One link into node 0 is shared: the senders' packets
// meet at its NIC, which the simulated world gives a queue for each pair, so that the sum of what
// arrives is paced by credit alone.
Incast run(const IncastConfig& incast) {
  StageConfig config;
  config.nodes = incast.senders + 1;
  config.memory_bytes = incast.bytes * static_cast<std::size_t>(incast.senders);
  config.fep.pds.pdc_count = 64;
  config.fep.cms.algorithm = incast.algorithm;
  config.fep.cms.link_rate_bps = kLinkRateBps;
  config.fep.cms.base_rtt = microseconds(30);
  config.link.latency = microseconds(10);
  config.link.rate_bps = kLinkRateBps;
  config.link.loss = incast.loss;
  Stage stage(config);
  for (int i = 1; i <= incast.senders; ++i) {
    const auto offset = static_cast<std::uint64_t>(i - 1) * incast.bytes;
    EXPECT_TRUE(stage.write(i, 0, offset, incast.bytes).ok());
  }
  const Time start = stage.world().now();
  std::vector<double> rates(static_cast<std::size_t>(incast.senders));
  std::size_t done = 0;
  Time last = start;
  while (done < rates.size() && stage.world().now() - start < std::chrono::seconds(20)) {
    stage.world().run_for(microseconds(20));
    for (std::size_t i = 0; i < rates.size(); ++i) {
      if (rates[i] != 0 || stage.actor(static_cast<int>(i) + 1).sink.completions.empty()) continue;
      last = stage.world().now();
      rates[i] = static_cast<double>(incast.bytes) / to_us(last - start);
      ++done;
    }
  }
  EXPECT_EQ(done, rates.size());
  Incast result;
  double sum = 0;
  double squares = 0;
  for (const double rate : rates) {
    sum += rate;
    squares += rate * rate;
  }
  result.jain = sum * sum / (static_cast<double>(rates.size()) * squares);
  const double total = static_cast<double>(incast.bytes) * static_cast<double>(rates.size());
  result.goodput_gbps = total * 8 / 1000 / to_us(last - start);
  for (int i = 1; i <= incast.senders; ++i) {
    result.fallbacks += stage.counters(i).credit_fallbacks;
  }
  return result;
}

// CMS-225, S5 of CMS 8.2: equal shares, and the receiver's link is full but not overrun.
TEST(IncastTest, Cms225_RcccKeepsSendersFair) {
  for (const cms::Algorithm algorithm : {cms::Algorithm::Rccc, cms::Algorithm::Both}) {
    for (const int senders : {2, 7}) {
      const Incast incast = run({.algorithm = algorithm, .senders = senders});
      EXPECT_GE(incast.jain, 0.999) << senders;
      EXPECT_GE(incast.goodput_gbps, 8.2) << senders;  // 1,024 of 1,134 bytes, and the first RTT
      EXPECT_LE(incast.goodput_gbps, 10.5) << senders;
      EXPECT_EQ(incast.fallbacks, 0U);
    }
  }
}

// CMS-203: what is lost of requests, ACKs, credits and their requests costs time only.
TEST(IncastTest, Cms203_RcccRecoversFromLoss) {
  for (const cms::Algorithm algorithm : {cms::Algorithm::Rccc, cms::Algorithm::Both}) {
    const Incast incast = run({.algorithm = algorithm, .senders = 4, .loss = 0.01});
    EXPECT_GE(incast.goodput_gbps, 0.3);
  }
}

}  // namespace
}  // namespace uet::sim
