// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a destination that fills up tells its sources (CMS 4.1), and what it grants (CMS 3.4).
#include "cms/destination.h"

#include <gtest/gtest.h>

namespace uet::cms {
namespace {

using std::chrono::microseconds;

TEST(DestinationPressure, Cms304_TableOfOccupancies) {
  const DestinationPressure pressure{Tuning{}};
  EXPECT_EQ(pressure.pend_of(0), 0);
  EXPECT_EQ(pressure.pend_of(0.20), 0);
  EXPECT_EQ(pressure.pend_of(0.25), 0);
  EXPECT_EQ(pressure.pend_of(0.30), 13);
  EXPECT_EQ(pressure.pend_of(0.50), 64);
  EXPECT_EQ(pressure.pend_of(0.70), 114);
  EXPECT_EQ(pressure.pend_of(0.75), 127);
  EXPECT_EQ(pressure.pend_of(1), 127);
}

TEST(DestinationPressure, LimitsAsTuned) {
  Tuning tuning;
  tuning.pend_low = 0.5;
  tuning.pend_high = 0.9;
  tuning.restore_below = 0.4;
  DestinationPressure pressure(tuning);
  EXPECT_EQ(pressure.pend_of(0.49), 0);
  EXPECT_EQ(pressure.pend_of(0.75), 79);  // 127 x 0.625
  EXPECT_EQ(pressure.pend_of(0.9), 127);
  pressure.update(0.41);
  EXPECT_FALSE(pressure.relieved());
  pressure.update(0.39);
  EXPECT_TRUE(pressure.relieved());
}

TEST(DestinationReport, Cms305_RestoreForEightAcksOnceTheCauseIsGone) {
  DestinationPressure pressure{Tuning{}};
  DestinationReport report;
  EXPECT_FALSE(report.next(pressure).restore);  // there was no penalty
  pressure.update(0.5);
  EXPECT_EQ(report.next(pressure).pend, 64);
  pressure.update(0.2);  // no penalty any more, but not gone for good
  EXPECT_EQ(report.next(pressure).pend, 0);
  EXPECT_FALSE(report.next(pressure).restore);
  pressure.update(0.09);
  for (int ack = 0; ack < 8; ++ack) EXPECT_TRUE(report.next(pressure).restore) << ack;
  EXPECT_FALSE(report.next(pressure).restore);
}

TEST(DestinationReport, Cms305_ANewPenaltyEndsTheRestore) {
  DestinationPressure pressure{Tuning{}};
  DestinationReport report;
  pressure.update(0.5);
  report.next(pressure);
  pressure.update(0);
  EXPECT_TRUE(report.next(pressure).restore);
  pressure.update(0.9);
  const DestinationReport::Fields fields = report.next(pressure);
  EXPECT_EQ(fields.pend, 127);
  EXPECT_FALSE(fields.restore);
  pressure.update(0.2);
  EXPECT_FALSE(report.next(pressure).restore);
  pressure.update(0);
  EXPECT_TRUE(report.next(pressure).restore);
}

// A source that never heard of a penalty has no window to restore.
TEST(DestinationReport, Cms306_OnlyPenalisedSourcesAreTold) {
  DestinationPressure pressure{Tuning{}};
  DestinationReport told, spared;
  pressure.update(0.5);
  told.next(pressure);
  pressure.update(0);
  EXPECT_TRUE(told.next(pressure).restore);
  EXPECT_FALSE(spared.next(pressure).restore);
}

TEST(Backlog, Cms231_FactorsOfTheWorkedExample) {
  const Tuning tuning;
  const auto factor = [&](double megabytes) {
    return backlog_rate_factor(tuning, static_cast<std::uint64_t>(megabytes * 1e6));
  };
  EXPECT_EQ(factor(0), 1);
  EXPECT_EQ(factor(1), 1);
  EXPECT_NEAR(factor(2), 0.5625, 1e-9);
  EXPECT_NEAR(factor(3), 0.25, 1e-9);
  EXPECT_NEAR(factor(4), 0.0625, 1e-9);
  EXPECT_NEAR(factor(4.7), 0.005625, 1e-9);
  EXPECT_EQ(factor(4.8), 0.001);
  EXPECT_EQ(factor(50), 0.001);
}

TEST(OversubscriptionControl, Cms230_WorkedExample) {
  OversubscriptionControl control{Tuning{}};
  control.on_period({100, 0, 0, 100});
  EXPECT_NEAR(control.rate(), 0.85, 1e-9);
  EXPECT_EQ(control.marked_average(), 0);
  control.on_period({100, 50, 0, 50});
  EXPECT_NEAR(control.rate(), 0.78625, 1e-9);
  EXPECT_NEAR(control.marked_average(), 0.5, 1e-9);
  control.on_period({100, 100, 0, 0});
  EXPECT_NEAR(control.rate(), 0.86625, 1e-9);
  control.on_period({100, 100, 0, 0});
  EXPECT_NEAR(control.rate(), 0.94625, 1e-9);
  control.on_period({100, 100, 0, 0});
  EXPECT_NEAR(control.marked_average(), 0.9375, 1e-9);
  EXPECT_NEAR(control.rate(), 0.9409273, 1e-6);
  control.on_period({100, 0, 50, 0});  // trimmed at the last hop: credit's affair
  EXPECT_EQ(control.rate(), 1);
}

TEST(OversubscriptionControl, Cms230_StaysWithinItsBounds) {
  OversubscriptionControl control{Tuning{}};
  for (int i = 0; i < 100; ++i) control.on_period({100, 0, 0, 100});
  EXPECT_EQ(control.rate(), 0.01);
  for (int i = 0; i < 100; ++i) control.on_period({100, 0, 0, 0});
  EXPECT_EQ(control.rate(), 1);
  control.on_period({0, 0, 0, 0});  // silence says nothing
  EXPECT_EQ(control.rate(), 1);
}

TEST(OversubscriptionControl, Cms230_Period_OneRttPlusMinusQuarter) {
  const OversubscriptionControl control{Tuning{}};
  Rng rng(1);
  Duration shortest = Duration::max(), longest{};
  for (int i = 0; i < 1000; ++i) {
    const Duration period = control.period(microseconds(100), rng);
    shortest = std::min(shortest, period);
    longest = std::max(longest, period);
  }
  EXPECT_GE(shortest, std::chrono::nanoseconds(75'000));
  EXPECT_LE(longest, std::chrono::nanoseconds(125'000));
  EXPECT_LT(shortest, microseconds(77));
  EXPECT_GT(longest, microseconds(123));
}

}  // namespace
}  // namespace uet::cms
