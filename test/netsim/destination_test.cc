// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Hosts that do not keep up with what arrives: S35 of CMS 8.2, with and without credit.
#include <gtest/gtest.h>

#include "netsim/run_line.h"

namespace uet::netsim {
namespace {

constexpr double kRttUs = 14.02;
constexpr double kPacketShare = 4086.0 / 4150;  // of what is on the wire

// CMS-300 to 305: 25 Gb/s drained of 100, a pool of 1 MB.
TEST(SlowReceiver, S35_Cms301_TenRoundTrips_NoLossAndDrainUsed) {
  for (const int senders : {1, 4}) {
    const Results results = run_line("--incast " + std::to_string(senders) +
                                     " --size 8000000 --drain-gbps 25 --receive-pool 1000000");
    EXPECT_EQ(results.pend_sent > 0, senders > 1) << senders;  // one alone is slow by its delay
    EXPECT_LE(results.last_receive_drop_us, 10 * kRttUs) << senders;
    EXPECT_GE(results.goodput_gbps, 0.95 * 25 * kPacketShare) << senders;
    EXPECT_LE(results.most_unread_bytes, 1'000'000U) << senders;
  }
}

// CMS-302: the window comes back. 1 ms at 25 Gb/s, the rest at 100.
TEST(SlowReceiver, S35_Cms302_DrainAsFastAsLink_Recovers) {
  const Results results =
      run_line("--incast 4 --size 4000000 --drain-gbps 25 --drain-until-us 1000");
  const double wire_bytes = 16e6 / kPacketShare;
  const double ideal_us = 1000 + (wire_bytes - 1000 * 25 * 125) / (100 * 125) + kRttUs;
  EXPECT_GT(results.restores_sent, 0U);
  EXPECT_GT(results.cms.restores_received, 0U);
  EXPECT_LE(results.fct.worst, ideal_us + 20 * kRttUs);
}

// CMS-232, CMS-233: the pacer grants at the rate that the backlog of the host leaves.
TEST(SlowReceiver, Cms231_CreditFollowsTheBacklog) {
  const Results results =
      run_line("--incast 4 --cc rccc --size 8000000 --drain-gbps 25 --receive-pool 4000000");
  EXPECT_EQ(results.receive_drops, 0U);
  EXPECT_GE(results.goodput_gbps, 0.95 * 25 * kPacketShare);
}

TEST(SlowReceiver, FastReceiverSendsNoPenalty) {
  const Results results = run_line("--incast 8");
  EXPECT_EQ(results.pend_sent, 0U);
  EXPECT_EQ(results.restores_sent, 0U);
}

// CMS 9.5: time that data waits for a window, or for credit.
TEST(Blocked, ByWindowOrByCredit) {
  const Results nscc = run_line("--incast 4");
  EXPECT_GT(nscc.blocked_by_window_ns, 100'000U);
  EXPECT_EQ(nscc.blocked_by_credit_ns, 0U);
  const Results rccc = run_line("--incast 4 --cc rccc");
  EXPECT_GT(rccc.blocked_by_credit_ns, 100'000U);
  EXPECT_EQ(rccc.blocked_by_window_ns, 0U);
}

}  // namespace
}  // namespace uet::netsim
