// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An order of slot numbers (SlotArray), each at most once; add, remove and first are O(1). Beside
// the objects, so that they need not grow by two links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "uet/base/check.h"

namespace uet {

class SlotList {
 public:
  // Slots are below `count`.
  explicit SlotList(std::size_t count) : links_(count + 1), end_(static_cast<Number>(count)) {
    links_[end_] = {end_, end_};
  }

  bool empty() const { return links_[end_].next == end_; }
  // The one that was added first; there must be one.
  std::size_t front() const {
    UET_ASSERT(!empty());
    return links_[end_].next;
  }
  void push_back(std::size_t slot) {
    remove(slot);
    const Number last = links_[end_].before;
    links_[slot] = {end_, last};
    links_[last].next = links_[end_].before = static_cast<Number>(slot);
  }
  // Without effect if it is not there.
  void remove(std::size_t slot) {
    Link& link = links_[slot];
    if (link.next == kNone) return;
    links_[link.before].next = link.next;
    links_[link.next].before = link.before;
    link = {};
  }

 private:
  using Number = std::uint32_t;
  static constexpr Number kNone = ~Number{0};
  struct Link {
    Number next = kNone;
    Number before = kNone;
  };
  std::vector<Link> links_;
  Number end_;
};

}  // namespace uet
