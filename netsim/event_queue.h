// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What is going to happen, earliest first. At equal times the events themselves decide, not who
// was first to create them: a network that is divided over ranks (Lockstep) takes the events of
// each node in the same order as a whole one (CMS-800). Knows nothing of what the events mean.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "netsim/clock.h"

namespace uet::netsim {

struct NetPacket;

// In the order in which events of one time are taken.
enum class EventKind : std::uint8_t {
  Fault,      // number `subject` of the plan of faults
  FlowStart,  // flow `subject`
  Arrival,    // `packet` reaches the far end of port `subject`
  PortFree,   // port `subject` has sent its packet
  Drain,      // host `subject` takes up its next packet
  Wake,       // host `subject` asked for it
};

struct Event {
  Picoseconds at = 0;
  std::uint64_t key = 0;    // event_key(): decides at equal times
  std::uint64_t order = 0;  // of creation; decides between events of one kind and subject only
  NetPacket* packet = nullptr;

  EventKind kind() const { return static_cast<EventKind>(key >> 32); }
  std::uint32_t subject() const { return static_cast<std::uint32_t>(key); }
  bool before(const Event& other) const {
    if (at != other.at) return at < other.at;
    return key != other.key ? key < other.key : order < other.order;
  }
};

inline std::uint64_t event_key(EventKind kind, std::uint32_t subject) {
  return std::uint64_t{static_cast<std::uint8_t>(kind)} << 32 | subject;
}

// A heap with four children per node: half as deep as a binary one, and the four lie together.
class EventHeap {
 public:
  bool empty() const { return heap_.empty(); }
  const Event& top() const { return heap_.front(); }

  void push(const Event& event) {
    std::size_t hole = heap_.size();
    heap_.push_back(event);
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / kChildren;
      if (!event.before(heap_[parent])) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = event;
  }

  Event pop() {
    const Event result = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
    return result;
  }

 private:
  static constexpr std::size_t kChildren = 4;

  void sink(const Event& event) {
    std::size_t hole = 0;
    for (;;) {
      const std::size_t first = hole * kChildren + 1;
      if (first >= heap_.size()) break;
      const std::size_t end = first + kChildren < heap_.size() ? first + kChildren : heap_.size();
      std::size_t least = first;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (heap_[child].before(heap_[least])) least = child;
      }
      if (!heap_[least].before(event)) break;
      heap_[hole] = heap_[least];
      hole = least;
    }
    heap_[hole] = event;
  }

  std::vector<Event> heap_;
};

// A calendar. Of thousands of hosts more events wait than the caches hold, and a heap of them all
// would wait for memory at each of its levels. Here an event is only put down on the last page of
// its day, and a day is put in order when it comes: then it is small enough to stay near.
class EventQueue {
 public:
  EventQueue() : days_(kDays) {}

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  std::uint64_t pushed() const { return order_; }

  void push(Picoseconds at, EventKind kind, std::uint32_t subject, NetPacket* packet = nullptr) {
    const Event event{
        .at = at, .key = event_key(kind, subject), .order = order_++, .packet = packet};
    ++size_;
    const std::int64_t day = day_of(at);
    if (day <= today_) {
      late_.push(event);
    } else if (day - today_ < kDays) {
      put_down(days_[place_of(day)], event);
    } else {
      far_.push(event);
    }
  }

  // The earliest. Not of an empty queue, as pop().
  const Event& top() {
    if (day_is_over()) open_next_day();
    return late_first() ? late_.top() : in_order_[next_];
  }

  Event pop() {
    if (day_is_over()) open_next_day();
    --size_;
    return late_first() ? late_.pop() : in_order_[next_++];
  }

  // One that comes soon, `ahead` places after the earliest if nothing gets between; nullptr if
  // that is not known yet.
  const Event* upcoming(std::size_t ahead) const {
    return next_ + ahead < in_order_.size() ? &in_order_[next_ + ahead] : nullptr;
  }

 private:
  static constexpr int kDayBits = 14;          // of the time in ps: 16 ns
  static constexpr std::int64_t kDays = 4096;  // 67 us: little but time-outs is further away

  struct Page {
    Page* before = nullptr;  // of the same day, full; or of those that are free
    std::size_t used = 0;
    std::array<Event, 15> events;
  };

  static std::int64_t day_of(Picoseconds at) { return at >> kDayBits; }
  static std::size_t place_of(std::int64_t day) { return static_cast<std::size_t>(day % kDays); }

  bool day_is_over() const { return next_ == in_order_.size() && late_.empty(); }
  bool late_first() const {
    if (late_.empty()) return false;
    return next_ == in_order_.size() || late_.top().before(in_order_[next_]);
  }

  void put_down(Page*& last, const Event& event) {
    if (last == nullptr || last->used == last->events.size()) {
      if (free_ == nullptr) free_ = &pages_.emplace_back();
      Page* page = std::exchange(free_, free_->before);
      page->before = std::exchange(last, page);
      page->used = 0;
    }
    last->events[last->used++] = event;
    ++in_days_;
  }

  // All of the day's go to in_order_.
  void take_up(Page*& last) {
    while (last != nullptr) {
      Page* page = std::exchange(last, last->before);
      in_order_.insert(in_order_.end(), page->events.begin(),
                       page->events.begin() + static_cast<std::ptrdiff_t>(page->used));
      in_days_ -= page->used;
      page->before = std::exchange(free_, page);
    }
  }

  // The next on which something happens.
  void open_next_day() {
    const auto far_comes = [this] { return !far_.empty() && day_of(far_.top().at) <= today_; };
    in_order_.clear();
    next_ = 0;
    today_ = in_days_ > 0 ? today_ + 1 : day_of(far_.top().at);
    while (days_[place_of(today_)] == nullptr && !far_comes()) ++today_;
    take_up(days_[place_of(today_)]);
    while (far_comes()) in_order_.push_back(far_.pop());
    std::sort(in_order_.begin(), in_order_.end(),
              [](const Event& a, const Event& b) { return a.before(b); });
  }

  std::int64_t today_ = -1;
  std::vector<Event> in_order_;  // of today; from next_ on they are to come
  std::size_t next_ = 0;
  EventHeap late_;           // of today, since it began
  std::vector<Page*> days_;  // the last page of each of the next ones, by number modulo kDays
  std::size_t in_days_ = 0;
  std::deque<Page> pages_;
  Page* free_ = nullptr;
  EventHeap far_;  // of days that have no place yet
  std::size_t size_ = 0;
  std::uint64_t order_ = 0;
};

}  // namespace uet::netsim
