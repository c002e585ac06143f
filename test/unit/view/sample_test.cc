// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Speeds are those between two updates of the same domain.
#include "uet_top/sample.h"

#include <gtest/gtest.h>

#include "unit/view/view_harness.h"

namespace uet::top {
namespace {

using view::Domain;
using view::make_domain;

constexpr double kElapsed_s = 1;

std::vector<Sample> second_sample(const Domain& before, const Domain& now) {
  return take_samples(take_samples({}, {before}, 0), {now}, kElapsed_s);
}

double peer_rate(const Sample& sample, std::string_view column) {
  return sample.peer_rates.at(0).at(view::peer_column(column));
}

TEST(Samples, GrowthBecomesSpeed) {
  Domain now = make_domain();
  now.monotonic_ns += 500'000'000;
  now.counters[0].value += 10;
  now.counters[2].value += 10;  // a gauge
  value_of(now.peers[0], "bytes_sent") += 100;
  value_of(now.peers[0], "window_bytes") += 100;
  const Sample sample = second_sample(make_domain(), now).at(0);
  EXPECT_DOUBLE_EQ(sample.counter_rates[0], 20);
  EXPECT_DOUBLE_EQ(sample.counter_rates[2], 0);
  EXPECT_DOUBLE_EQ(peer_rate(sample, "bytes_sent"), 200);
  EXPECT_DOUBLE_EQ(peer_rate(sample, "window_bytes"), 0);
}

TEST(Samples, DomainThatHasRestedGrewWithinTheInterval) {
  Domain now = make_domain();
  now.monotonic_ns += 50'000'000'000;
  now.counters[0].value += 10;
  EXPECT_DOUBLE_EQ(second_sample(make_domain(), now).at(0).counter_rates[0], 10);
}

TEST(Samples, NoSpeedWithoutUpdate) {
  Domain now = make_domain();
  now.counters[0].value += 10;
  EXPECT_EQ(second_sample(make_domain(), now).at(0).counter_rates[0], 0);
}

TEST(Samples, NewDomainAndNewPeerHaveNoSpeedYet) {
  Domain now = make_domain();
  now.start_time += 1;
  now.monotonic_ns += 500'000'000;
  now.counters[0].value += 10;
  EXPECT_EQ(second_sample(make_domain(), now).at(0).counter_rates[0], 0);
  Domain without = make_domain();
  without.peers.clear();
  now = make_domain();
  now.monotonic_ns += 500'000'000;
  EXPECT_EQ(peer_rate(second_sample(without, now).at(0), "bytes_sent"), 0);
}

}  // namespace
}  // namespace uet::top
