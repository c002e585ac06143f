// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Level L holds entries that are 64^L to 64^(L+1) ticks away, in slots of 64^L ticks. When time
// enters a slot of level 1 to 3 its entries move down (cascade); a slot of level 0 is one tick.
// With bit masks of occupied slots, time jumps over empty slots.
#include "base/timer_wheel.h"

#include <algorithm>
#include <bit>

namespace uet {

namespace {

std::uint64_t tick_before(Time t) {
  return static_cast<std::uint64_t>(to_ns(t) / TimerWheel::kTick.count());
}

// Rounded up, so that nothing fires early.
std::uint64_t tick_after(Time t) {
  const bool whole = to_ns(t) % TimerWheel::kTick.count() == 0;
  return tick_before(t) + (whole ? 0 : 1);
}

}  // namespace

TimerWheel::TimerWheel(Time now) : now_tick_(tick_before(now)) {}

void TimerWheel::insert(TimerEntry& entry, Time deadline) {
  UET_ASSERT(to_ns(deadline) >= 0);
  prepare();
  entry.deadline_ = deadline;
  place(entry, std::max(tick_after(deadline), now_tick_ + 1));
  ++size_;
}

void TimerWheel::move(TimerEntry& entry, Time deadline) {
  cancel(entry);
  insert(entry, deadline);
}

void TimerWheel::cancel(TimerEntry& entry) {
  if (entry.armed()) unlink(entry);
}

Time TimerWheel::next_deadline() const {
  const std::uint64_t tick = next_event_tick();
  return tick == kNoTick ? kNever : Time(kTick * static_cast<std::int64_t>(tick));
}

TimerEntry* TimerWheel::pop_due(std::uint64_t target) {
  for (;;) {
    // Insertions go to later ticks, so what is in the slot of now_tick_ is due.
    List& due = (*slots_)[0][now_tick_ % kSlots];
    if (!due.empty()) {
      TimerEntry& entry = due.front();
      unlink(entry);
      return &entry;
    }
    const std::uint64_t next = next_event_tick();
    quiet_until_ = next;
    if (next > target) break;
    advance(next);
  }
  now_tick_ = std::max(now_tick_, target);
  return nullptr;
}

// tick >= now_tick_
void TimerWheel::place(TimerEntry& entry, std::uint64_t tick) {
  const std::uint64_t away = std::min(tick - now_tick_, kReachTicks - 1);
  const std::uint64_t at = now_tick_ + away;
  unsigned level = 0;
  while (away >> ((level + 1) * kSlotBits) != 0) ++level;
  const std::uint64_t slot = (at >> (level * kSlotBits)) % kSlots;
  entry.level_ = static_cast<std::uint8_t>(level);
  entry.slot_ = static_cast<std::uint8_t>(slot);
  (*slots_)[level][slot].push_back(entry);
  occupied_[level] |= 1ULL << slot;
  quiet_until_ = std::min(quiet_until_, (at >> (level * kSlotBits)) << (level * kSlotBits));
}

void TimerWheel::unlink(TimerEntry& entry) {
  List::remove(entry);
  if ((*slots_)[entry.level_][entry.slot_].empty()) {
    occupied_[entry.level_] &= ~(1ULL << entry.slot_);
  }
  --size_;
}

void TimerWheel::advance(std::uint64_t tick) {
  now_tick_ = tick;
  for (unsigned level = kLevels - 1; level > 0; --level) {
    const std::uint64_t slot_ticks = 1ULL << (level * kSlotBits);
    if (tick % slot_ticks == 0) cascade(level);
  }
}

void TimerWheel::cascade(unsigned level) {
  const std::uint64_t slot = (now_tick_ >> (level * kSlotBits)) % kSlots;
  // Taken out first: an entry beyond the reach of the wheel may come back to this very slot.
  List leaving;
  while (!(*slots_)[level][slot].empty()) leaving.push_back((*slots_)[level][slot].pop_front());
  occupied_[level] &= ~(1ULL << slot);
  while (!leaving.empty()) {
    TimerEntry& entry = leaving.pop_front();
    place(entry, std::max(tick_after(entry.deadline_), now_tick_));
  }
}

// The next tick at which an entry is due or a slot cascades.
std::uint64_t TimerWheel::next_event_tick() const {
  std::uint64_t first = kNoTick;
  for (unsigned level = 0; level < kLevels; ++level) {
    if (occupied_[level] == 0) continue;
    const std::uint64_t current = now_tick_ >> (level * kSlotBits);
    const std::uint64_t ahead =
        std::rotr(occupied_[level], static_cast<int>((current + 1) % kSlots));
    const auto slots_away = static_cast<std::uint64_t>(std::countr_zero(ahead)) + 1;
    first = std::min(first, (current + slots_away) << (level * kSlotBits));
  }
  return first;
}

}  // namespace uet
