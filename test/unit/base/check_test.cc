// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet/base/check.h"

#include <gtest/gtest.h>

#include "base/timer_wheel.h"

namespace uet {
namespace {

TEST(AssertionDeathTest, ViolatedConditionEndsTheProcess) {
  const int value = 3;
  UET_ASSERT(value == 3);
  EXPECT_DEATH(UET_ASSERT(value == 4), "check_test.cc:.*value == 4");
}

// Compiled into the archive of the module, as for every program that is linked with it.
TEST(AssertionDeathTest, ModuleIsCompiledWithAssertions) {
  TimerWheel wheel(Time{});
  TimerEntry entry;
  EXPECT_DEATH(wheel.insert(entry, Time(Duration(-1))), "timer_wheel.cc");
}

}  // namespace
}  // namespace uet
