// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Scenarios of CMS 8.2 that belong to CI (8.3), with the pass criteria of the table. NSCC; those
// that need other algorithms or path schemes are not here.
#include <gtest/gtest.h>

#include "netsim/run_line.h"

namespace uet::netsim {
namespace {

constexpr double kRttUs = 14.02;
constexpr double kLinkGbps = 100;

// Of N flows of 2 MB through one link (section 8.2).
double ideal_us(int flows) { return flows * 490 * 4150 * 8e-3 / kLinkGbps + kRttUs; }

std::string incast_line(int flows) { return "--incast " + std::to_string(flows); }

TEST(Scenario, S1_SingleFlow) {
  const Results results = run_line(incast_line(1));
  EXPECT_LE(results.fct.worst, 185);
  EXPECT_EQ(results.retransmissions, 0U);
}

TEST(Scenario, S2_SingleFlowBySize) {
  const std::pair<int, double> anchors[] = {
      {64, 12.1}, {65'536, 19.0}, {1 << 20, 98.9}, {16 << 20, 1376.9}};
  for (const auto& [bytes, anchor_us] : anchors) {
    const Results results = run_line(incast_line(1) + " --size " + std::to_string(bytes));
    EXPECT_LE(results.fct.worst, 1.05 * anchor_us) << bytes;
    EXPECT_EQ(results.retransmissions, 0U) << bytes;
  }
}

TEST(Scenario, S3_BothDirections) {
  const Results results =
      run_line("", "Nodes 16\n0->13 start 0 size 2000000\n13->0 start 0 size 2000000\n");
  EXPECT_LE(results.fct.worst, 190);
}

class Incast : public testing::TestWithParam<int> {};

TEST_P(Incast, S4_S7_NsccWithTrimming) {
  const Results results = run_line(incast_line(GetParam()));
  EXPECT_LE(results.fct.worst / ideal_us(GetParam()), 1.05);
  EXPECT_GE(results.jain, 0.96);
  EXPECT_GE(results.goodput_gbps, GetParam() == 2 ? 91 : 93);
  EXPECT_LE(results.last_hop_queue.mean, 175'250);
  EXPECT_LE(results.last_hop_queue.max, 178'450);
  EXPECT_EQ(results.control_drops, 0U);
}
INSTANTIATE_TEST_SUITE_P(Scenario, Incast, testing::Values(2, 4, 8, 16));

TEST(Scenario, S8_IncastOf15) {
  const Results results = run_line("--incast 15 --hosts 16");
  EXPECT_LE(results.fct.worst, 2550);
}

TEST(Scenario, S13_SprayingAgainstASinglePath) {
  const Results spread = run_line("--permutation --paths oblivious");
  const Results single = run_line("--permutation --paths single");
  EXPECT_GE(single.fct.worst / spread.fct.worst, 2.5);
}

TEST(Scenario, S17_Outcast) {
  for (const int flows : {2, 4, 8}) {
    const Results results = run_line("--outcast " + std::to_string(flows));
    EXPECT_LE(results.fct.worst / ideal_us(flows), 1.01) << flows;
    EXPECT_GE(results.jain, 0.999) << flows;
  }
}

}  // namespace
}  // namespace uet::netsim
