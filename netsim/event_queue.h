// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What is going to happen, earliest first; at equal times in the order of creation, so that a run
// is a function of its configuration and seed (CMS-800). Knows nothing of what the events mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "netsim/clock.h"

namespace uet::netsim {

struct NetPacket;

enum class EventKind : std::uint8_t {
  Arrival,    // `packet` reaches the far end of port `subject`
  PortFree,   // port `subject` has sent its packet
  Wake,       // host `subject` asked for it
  FlowStart,  // flow `subject`
  Drain,      // host `subject` takes up its next packet
  Fault,      // number `subject` of the plan of faults
};

struct Event {
  Picoseconds at = 0;
  std::uint64_t order = 0;
  NetPacket* packet = nullptr;
  std::uint32_t subject = 0;
  EventKind kind{};

  bool before(const Event& other) const {
    return at != other.at ? at < other.at : order < other.order;
  }
};

// A heap with four children per node: half as deep as a binary one, and the four lie together.
class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  const Event& top() const { return heap_.front(); }
  std::uint64_t pushed() const { return order_; }

  void push(Picoseconds at, EventKind kind, std::uint32_t subject, NetPacket* packet = nullptr) {
    const Event event{
        .at = at, .order = order_++, .packet = packet, .subject = subject, .kind = kind};
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
  std::uint64_t order_ = 0;
};

}  // namespace uet::netsim
