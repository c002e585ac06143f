// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Drawn configurations of the whole core (workload.h), in cases that ctest runs side by side. A
// failure prints the command line that repeats it.
#include <gtest/gtest.h>

#include <cstdint>

#include "sim/workload.h"

namespace uet::sim {
namespace {

constexpr int kCases = 10;
#ifdef UET_SIM_FEW_SEEDS  // a build with sanitizers; in one, seed 7013 alone takes five minutes
constexpr std::uint64_t kSeedsPerCase = 12;
#else
constexpr std::uint64_t kSeedsPerCase = 150;
#endif

class DrawnConfigurations : public testing::TestWithParam<int> {};

TEST_P(DrawnConfigurations, EveryOracleIsContent) {
  for (std::uint64_t i = 0; i < kSeedsPerCase; ++i) {
    const std::uint64_t seed = static_cast<std::uint64_t>(GetParam()) * 1000 + i;
    const Outcome outcome = run_seed(seed);
    ASSERT_TRUE(outcome.failure.empty()) << "seed " << seed << ": " << outcome.failure;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, DrawnConfigurations, testing::Range(1, kCases + 1));

TEST(Determinism, SameSeedGivesTheSameTrace) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Outcome first = run_seed(seed), second = run_seed(seed);
    EXPECT_EQ(first.trace_hash, second.trace_hash) << "seed " << seed;
    EXPECT_EQ(first.packets, second.packets) << "seed " << seed;
    EXPECT_EQ(first.virtual_time, second.virtual_time) << "seed " << seed;
    EXPECT_NE(first.trace_hash, run_seed(seed + 100).trace_hash) << "seed " << seed;
  }
}

}  // namespace
}  // namespace uet::sim
