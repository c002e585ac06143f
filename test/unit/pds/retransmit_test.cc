// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pds/retransmit.h"

#include <gtest/gtest.h>

namespace uet::pds {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Rto, Pds120_DoublesUpToTheCap) {
  const Parameters parameters;  // 20 ms, cap 1 s
  const int expected_ms[] = {20, 40, 80, 160, 320, 640, 1000, 1000, 1000};
  for (std::uint32_t k = 0; k < std::size(expected_ms); ++k) {
    EXPECT_EQ(rto(parameters, k), milliseconds(expected_ms[k])) << k;
  }
}

TEST(Rto, Pds120_HugeCountStaysAtTheCap) { EXPECT_EQ(rto(Parameters{}, UINT32_MAX), seconds(1)); }

TEST(Rto, Pds120_InitialTimeAboveTheCapIsCut) {
  Parameters parameters;
  parameters.rto_init = seconds(5);
  EXPECT_EQ(rto(parameters, 0), seconds(1));
}

TEST(Mpr, Cms310_CoversTheLargestWindow) {
  EXPECT_EQ(mpr_for_window(100'000, 4096), 8) << "the least";
  // 100 Gb/s x 120 us in packets of 1,400 B: 1,024 PSNs cover 0.96 BDP.
  EXPECT_EQ(mpr_for_window(1'500'000 * 3 / 2, 1400), 13);
  EXPECT_EQ(mpr_for_window(128 * 9 * 4096, 4096), 9);
  EXPECT_EQ(mpr_for_window(128 * 9 * 4096 + 1, 4096), 10);
  EXPECT_EQ(mpr_for_window(UINT32_MAX, 1024), 32) << "no header can say more";
}

TEST(RtoExhausted, Pds121_OneMoreThanTheLimit) {
  Parameters parameters;
  parameters.max_rto_retransmissions = 5;
  EXPECT_FALSE(rto_exhausted(parameters, 4));
  EXPECT_TRUE(rto_exhausted(parameters, 5));
}

TEST(RtoExhausted, Pds121_LargestValueMeansUnlimited) {
  Parameters parameters;
  parameters.max_rto_retransmissions = kUnlimited;
  EXPECT_FALSE(rto_exhausted(parameters, UINT32_MAX - 1));
  EXPECT_FALSE(rto_exhausted(parameters, UINT32_MAX));
}

TEST(TimeToFailure, Pds137_TableOfTheReference) {
  struct Row {
    std::int64_t init_us;
    std::uint32_t retries;
    Duration cap;
    std::int64_t total_us;
  };
  const Row rows[] = {{1000, 5, seconds(8), 63'000},
                      {4000, 5, seconds(8), 252'000},
                      {5000, 5, milliseconds(5), 30'000},
                      {100, 7, seconds(8), 25'500},
                      {20'000, 8, seconds(1), 4'260'000}};
  for (const Row& row : rows) {
    Parameters parameters;
    parameters.rto_init = std::chrono::microseconds(row.init_us);
    parameters.rto_cap = row.cap;
    parameters.max_rto_retransmissions = row.retries;
    EXPECT_EQ(time_to_failure(parameters), std::chrono::microseconds(row.total_us));
  }
}

LossEvidence fresh() {
  LossEvidence evidence;
  evidence.enough_above = Parameters{}.out_of_order_threshold;
  evidence.since_inferred = Duration::max();
  return evidence;
}

TEST(PresumedLost, Pds129_NothingReportedProvesNothing) {
  EXPECT_FALSE(presumed_lost(Parameters{}, fresh()));
}

TEST(PresumedLost, Pds130_ThresholdOfPsnsReportedAbove) {
  LossEvidence evidence = fresh();
  evidence.sacked_above = 63;
  EXPECT_FALSE(presumed_lost(Parameters{}, evidence));
  evidence.sacked_above = 64;
  EXPECT_TRUE(presumed_lost(Parameters{}, evidence));
}

TEST(PresumedLost, Pds130_LargestWindowAboveThreshold_Counts) {
  constexpr std::uint32_t kRange = 512;
  EXPECT_EQ(out_of_order_threshold(Parameters{}, 10, kRange), 64U);
  EXPECT_EQ(out_of_order_threshold(Parameters{}, 64, kRange), 64U);
  EXPECT_EQ(out_of_order_threshold(Parameters{}, 160, kRange), 160U);
  EXPECT_EQ(out_of_order_threshold(Parameters{}, std::uint64_t{1} << 40, kRange), 256U)
      << "more than half of the peer's window may never be reported above a gap";
  EXPECT_EQ(out_of_order_threshold(Parameters{}, 160, 32), 64U);
}

TEST(PresumedLost, Pds131_OneLaterPacketOnTheSamePathSuffices) {
  LossEvidence evidence = fresh();
  evidence.sacked_above = 1;
  evidence.later_on_same_path = true;
  EXPECT_TRUE(presumed_lost(Parameters{}, evidence));
}

TEST(PresumedLost, Pds132_AtMostOncePerRto) {
  LossEvidence evidence = fresh();
  evidence.later_on_same_path = true;
  evidence.sacked_above = 1000;
  evidence.since_inferred = milliseconds(20) - Duration(1);
  EXPECT_FALSE(presumed_lost(Parameters{}, evidence));
  evidence.since_inferred = milliseconds(20);
  EXPECT_TRUE(presumed_lost(Parameters{}, evidence));
}

TEST(PresumedLost, Pds89_ReportedPacketIsNotLost) {
  LossEvidence evidence = fresh();
  evidence.later_on_same_path = true;
  evidence.sacked_above = 1000;
  evidence.sacked = true;
  EXPECT_FALSE(presumed_lost(Parameters{}, evidence));
}

}  // namespace
}  // namespace uet::pds
