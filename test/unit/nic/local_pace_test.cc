// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "nic/local_pace.h"

#include <gtest/gtest.h>

namespace uet::nic {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
constexpr Time kNow{std::chrono::seconds(1)};

TEST(LocalPace, FirstLookIsDueAtOnce) { EXPECT_TRUE(LocalPace().is_due(Time{})); }

TEST(LocalPace, LookIsDueWhileTheNicBelowHasPackets) {
  LocalPace pace;
  pace.looked(kNow, true);
  EXPECT_TRUE(pace.is_due(kNow));
}

TEST(LocalPace, SilentNicIsLookedAtOncePerInterval) {
  LocalPace pace;
  pace.looked(kNow, false);
  EXPECT_FALSE(pace.is_due(kNow + LocalPace::kInterval - nanoseconds(1)));
  EXPECT_TRUE(pace.is_due(kNow + LocalPace::kInterval));
}

TEST(LocalPace, BusyRings_IntervalIsAnEighthOfSilence) {
  LocalPace pace;
  pace.looked(kNow, true);
  const Time later = kNow + microseconds(80);
  pace.rings_had_packets(later);
  pace.looked(later, false);
  EXPECT_FALSE(pace.is_due(later + microseconds(10) - nanoseconds(1)));
  EXPECT_TRUE(pace.is_due(later + microseconds(10)));
}

TEST(LocalPace, StretchedIntervalHasABound) {
  LocalPace pace;
  pace.looked(kNow, true);
  const Time later = kNow + std::chrono::seconds(1);
  pace.rings_had_packets(later);
  pace.looked(later, false);
  EXPECT_FALSE(pace.is_due(later + LocalPace::kLongestInterval - nanoseconds(1)));
  EXPECT_TRUE(pace.is_due(later + LocalPace::kLongestInterval));
}

TEST(LocalPace, RingsAreBusyForAWhileOnly) {
  LocalPace pace;
  pace.looked(kNow, true);
  pace.rings_had_packets(kNow + microseconds(80));
  const Time later = kNow + microseconds(80) + LocalPace::kRingsBusy;
  pace.looked(later, false);
  EXPECT_TRUE(pace.is_due(later + LocalPace::kInterval));
}

}  // namespace
}  // namespace uet::nic
