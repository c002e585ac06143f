// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// All timers of a FEP: insert, move and cancel in O(1) without allocation, and a time until which
// the owner may sleep. Knows nothing of what the timers mean.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "uet/base/intrusive_list.h"
#include "uet/base/time.h"

namespace uet {

struct TimerTag;

// An entry of a TimerWheel, on one wheel once at a time: classes with a timer derive from it or
// hold one. Must be cancelled before it is destroyed.
class TimerEntry : public ListNode<TimerTag> {
 public:
  bool armed() const { return linked(); }
  // When it was asked to fire; meaningful while armed and in the callback.
  Time deadline() const { return deadline_; }

 private:
  friend class TimerWheel;
  Time deadline_{};
  std::uint8_t level_ = 0;
  std::uint8_t slot_ = 0;
};

// A hierarchy of 4 wheels of 64 slots. An entry never fires before its deadline and is due at most
// one tick after it; expire decides how soon after that. Deadlines further away than the wheel
// reaches (about 268 s) are kept and placed again until they come near. Times must not be negative.
class TimerWheel {
 public:
  static constexpr Duration kTick = std::chrono::microseconds(16);

  // `now`: from where on time is counted.
  explicit TimerWheel(Time now);
  // Takes the memory that insert() needs, so that it cannot fail. May throw bad_alloc.
  void prepare() {
    if (slots_ == nullptr) slots_ = std::make_unique<Slots>();
  }

  // Arms `entry`, which must not be armed. A deadline that has passed is due at the next tick. May
  // throw bad_alloc before the first prepare().
  void insert(TimerEntry& entry, Time deadline);
  // Arms `entry` or, if it is armed, gives it another deadline.
  void move(TimerEntry& entry, Time deadline);
  // Disarms `entry`; nothing happens if it is not armed.
  void cancel(TimerEntry& entry);

  // Calls callback(TimerEntry&) for every entry that is due at `now`, in order of ticks, disarmed
  // before its call. The callback may insert, move and cancel any entry. A `now` before that of an
  // earlier call does nothing.
  template <class Callback>
  void expire(Time now, Callback&& callback) {
    const auto tick = static_cast<std::uint64_t>(to_ns(now) / kTick.count());
    if (tick < quiet_until_) {  // mostly: called in every pass
      now_tick_ = std::max(now_tick_, tick);
      return;
    }
    while (TimerEntry* entry = pop_due(tick)) callback(*entry);
  }

  // No entry is due before this time; kNever when none is armed. It may be earlier than the first
  // due entry: then expire finds nothing and a later time is named. Not for callbacks of expire.
  Time next_deadline() const;

  std::size_t size() const { return size_; }

 private:
  using List = IntrusiveList<TimerEntry, TimerTag>;
  static constexpr unsigned kLevels = 4;
  static constexpr unsigned kSlotBits = 6;
  static constexpr std::uint64_t kSlots = 1U << kSlotBits;
  static constexpr std::uint64_t kReachTicks = 1ULL << (kLevels * kSlotBits);
  static constexpr std::uint64_t kNoTick = ~0ULL;

  TimerEntry* pop_due(std::uint64_t target);
  void place(TimerEntry& entry, std::uint64_t tick);
  void unlink(TimerEntry& entry);
  void advance(std::uint64_t tick);
  void cascade(unsigned level);
  std::uint64_t next_event_tick() const;

  using Slots = std::array<std::array<List, kSlots>, kLevels>;
  std::unique_ptr<Slots> slots_;                   // none before the first entry
  std::array<std::uint64_t, kLevels> occupied_{};  // bit = slot is not empty
  std::uint64_t now_tick_;                         // everything up to it has been handed out
  std::uint64_t quiet_until_ = kNoTick;            // nothing is due and no slot cascades before it
  std::size_t size_ = 0;
};

}  // namespace uet
