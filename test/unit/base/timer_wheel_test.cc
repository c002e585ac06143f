// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/timer_wheel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/rng.h"

namespace uet {
namespace {

using namespace std::chrono_literals;

constexpr Time kStart = time_from_ns(1'000'000'007);  // not on a tick

struct Timer : TimerEntry {
  int fired = 0;
};

// Expires the wheel at `now` and answers how many entries fired.
int fire(TimerWheel& wheel, Time now) {
  int count = 0;
  wheel.expire(now, [&](TimerEntry& entry) {
    EXPECT_FALSE(entry.armed());
    ++static_cast<Timer&>(entry).fired;
    ++count;
  });
  return count;
}

TEST(TimerWheel, EmptyWheelHasNoDeadline) {
  TimerWheel wheel(kStart);
  EXPECT_EQ(wheel.next_deadline(), kNever);
  EXPECT_EQ(fire(wheel, kStart + 1h), 0);
}

TEST(TimerWheel, Timer_FiresWithinOneTickAfterDeadline) {
  for (Duration after :
       {Duration(1), Duration(15999), Duration(16000), Duration(16001), Duration(1ms),
        Duration(1100us), Duration(70ms), Duration(5s), Duration(250s), Duration(1000s)}) {
    TimerWheel wheel(kStart);
    Timer timer;
    wheel.insert(timer, kStart + after);
    EXPECT_EQ(fire(wheel, kStart + after - 1ns), 0) << after.count();
    EXPECT_EQ(fire(wheel, kStart + after + TimerWheel::kTick), 1) << after.count();
    EXPECT_EQ(wheel.size(), 0U);
  }
}

TEST(TimerWheel, ADeadlineOfThePastIsDueAtTheNextTick) {
  TimerWheel wheel(kStart);
  Timer timer;
  wheel.insert(timer, kStart - 1ms);
  EXPECT_EQ(fire(wheel, kStart), 0);
  EXPECT_EQ(fire(wheel, kStart + TimerWheel::kTick), 1);
}

TEST(TimerWheel, TimeInWhichNothingIsDueCounts) {
  TimerWheel wheel(kStart);
  Timer later, timer;
  wheel.insert(later, kStart + 1s);
  EXPECT_EQ(fire(wheel, kStart + 10ms), 0);
  wheel.insert(timer, kStart + 5ms);
  EXPECT_EQ(fire(wheel, kStart + 10ms), 0);
  EXPECT_EQ(fire(wheel, kStart + 10ms + TimerWheel::kTick), 1);
  EXPECT_EQ(timer.fired, 1);
  wheel.cancel(later);
}

TEST(TimerWheel, NeverIsKeptAndNeverFires) {
  TimerWheel wheel(kStart);
  Timer timer;
  wheel.insert(timer, kNever);
  EXPECT_EQ(fire(wheel, kStart + 3h), 0);
  EXPECT_TRUE(timer.armed());
  EXPECT_LT(wheel.next_deadline(), kNever);
  wheel.cancel(timer);
}

TEST(TimerWheel, CancelledEntryDoesNotFire) {
  TimerWheel wheel(kStart);
  Timer one;
  Timer two;
  wheel.insert(one, kStart + 1ms);
  wheel.insert(two, kStart + 1ms);
  wheel.cancel(one);
  wheel.cancel(one);
  EXPECT_FALSE(one.armed());
  EXPECT_EQ(wheel.size(), 1U);
  EXPECT_EQ(fire(wheel, kStart + 2ms), 1);
  EXPECT_EQ(two.fired, 1);
  EXPECT_EQ(wheel.next_deadline(), kNever);
}

TEST(TimerWheel, MovedEntryFiresAtItsNewDeadlineOnly) {
  TimerWheel wheel(kStart);
  Timer timer;
  wheel.move(timer, kStart + 1ms);
  wheel.move(timer, kStart + 10s);
  EXPECT_EQ(timer.deadline(), kStart + 10s);
  EXPECT_EQ(fire(wheel, kStart + 9s), 0);
  wheel.move(timer, kStart + 9s + 1ms);
  EXPECT_EQ(fire(wheel, kStart + 9s + 2ms), 1);
  EXPECT_EQ(fire(wheel, kStart + 11s), 0);
}

TEST(TimerWheel, CallbackMayInsertMoveAndCancel) {
  TimerWheel wheel(kStart);
  Timer first;
  Timer same_tick;
  Timer later;
  wheel.insert(first, kStart + 1ms);
  wheel.insert(same_tick, kStart + 1ms);
  wheel.insert(later, kStart + 1s);
  std::vector<TimerEntry*> order;
  wheel.expire(kStart + 5ms, [&](TimerEntry& entry) {
    order.push_back(&entry);
    if (&entry != &first || order.size() > 1) return;
    wheel.cancel(same_tick);
    wheel.move(later, kStart + 2ms);
    wheel.insert(first, kStart + 3ms);
  });
  EXPECT_EQ(order, (std::vector<TimerEntry*>{&first, &later, &first}));
  EXPECT_EQ(wheel.size(), 0U);
}

TEST(TimerWheel, TimeThatGoesBackDoesNothing) {
  TimerWheel wheel(kStart);
  Timer timer;
  EXPECT_EQ(fire(wheel, kStart + 1s), 0);
  wheel.insert(timer, kStart + 1s + 1ms);
  EXPECT_EQ(fire(wheel, kStart), 0);
  EXPECT_EQ(fire(wheel, kStart + 1s + 2ms), 1);
}

// Sleeping until next_deadline() again and again reaches every entry in time in few steps.
TEST(TimerWheel, NextDeadlineIsGoodEnoughToSleepOn) {
  for (Duration after : {Duration(20us), Duration(3ms), Duration(900ms), Duration(200s)}) {
    TimerWheel wheel(kStart);
    Timer timer;
    wheel.insert(timer, kStart + after);
    Time now = kStart;
    int wakes = 0;
    while (timer.fired == 0 && ++wakes < 10) {
      EXPECT_GT(wheel.next_deadline(), now);
      now = wheel.next_deadline();
      fire(wheel, now);
    }
    EXPECT_LE(wakes, 4);
    EXPECT_GE(now, kStart + after);
    EXPECT_LE(now, kStart + after + TimerWheel::kTick);
  }
}

// Random insertions, moves, cancellations and steps of time against a sorted map.
TEST(TimerWheel, AgreesWithASortedMap) {
  Rng rng(21);
  constexpr int kTimers = 64;
  std::vector<std::unique_ptr<Timer>> timers;
  for (int i = 0; i < kTimers; ++i) timers.push_back(std::make_unique<Timer>());
  TimerWheel wheel(kStart);
  std::map<Timer*, Time> model;
  Time now = kStart;
  for (int step = 0; step < 20000; ++step) {
    Timer* timer = timers[rng.below(kTimers)].get();
    // Spread over all levels: up to 2^38 ns, about 275 s.
    const auto after = Duration(static_cast<std::int64_t>(rng.next() >> (26 + rng.below(30))));
    const auto action = rng.below(4);
    if (action == 0) {
      wheel.cancel(*timer);
      model.erase(timer);
    } else if (action < 3) {
      wheel.move(*timer, now + after);
      model[timer] = now + after;
    } else {
      now += after / 8;
      wheel.expire(now, [&](TimerEntry& entry) {
        auto& fired = static_cast<Timer&>(entry);
        ASSERT_TRUE(model.contains(&fired));
        EXPECT_LE(model[&fired], now);
        model.erase(&fired);
      });
      for (const auto& [waiting, deadline] : model) {
        EXPECT_GT(deadline + TimerWheel::kTick, now) << "late";
        EXPECT_TRUE(waiting->armed());
        EXPECT_LE(wheel.next_deadline(), deadline + TimerWheel::kTick);
      }
    }
    ASSERT_EQ(wheel.size(), model.size());
  }
}

}  // namespace
}  // namespace uet
