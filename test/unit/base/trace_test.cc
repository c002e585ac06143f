// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet/base/trace.h"

#include <gtest/gtest.h>

namespace uet {
namespace {

TEST(Trace, DumpHasOneLinePerEventOldestFirst) {
  Trace trace(4);
  trace.add(time_from_ns(1'234'567), "rto", 1, 2, 3, 4);
  trace.add(time_from_ns(2'000'005), "nack", 18'446'744'073'709'551'615U);
  EXPECT_EQ(trace.dump(),
            "1234.567 us rto 1 2 3 4\n"
            "2000.005 us nack 18446744073709551615 0 0 0\n");
}

TEST(Trace, KeepsTheLastEventsWhenFull) {
  Trace trace(3);
  for (std::uint64_t i = 0; i < 7; ++i) trace.add(time_from_ns(0), "event", i);
  EXPECT_EQ(trace.size(), 3U);
  EXPECT_EQ(trace.total(), 7U);
  EXPECT_EQ(trace.at(0).numbers[0], 4U);
  EXPECT_EQ(trace.at(2).numbers[0], 6U);
}

TEST(Trace, EmptyTraceDumpsNothing) {
  const Trace trace(0);
  EXPECT_EQ(trace.capacity(), 1U);
  EXPECT_EQ(trace.size(), 0U);
  EXPECT_EQ(trace.dump(), "");
}

}  // namespace
}  // namespace uet
