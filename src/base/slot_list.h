// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An order of slot numbers (SlotArray), each at most once; add, remove and first are O(1). Beside
// the objects, so that they need not grow by two links.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "uet/base/check.h"

namespace uet {

class SlotList {
 public:
  SlotList() : links_{{kEnd, kEnd}} {}

  // Takes memory for the slot and those below it, before its first push_back(). May throw
  // bad_alloc.
  void prepare(std::size_t slot) {
    if (slot + 1 >= links_.size()) links_.resize(std::max(slot + 2, 2 * links_.size()));
  }
  bool empty() const { return links_[kEnd].next == kEnd; }
  // The one that was added first; there must be one.
  std::size_t front() const {
    UET_ASSERT(!empty());
    return links_[kEnd].next - 1;
  }
  void push_back(std::size_t slot) {
    UET_ASSERT(slot + 1 < links_.size());
    remove(slot);
    const auto added = static_cast<Number>(slot + 1);
    const Number last = links_[kEnd].before;
    links_[added] = {kEnd, last};
    links_[last].next = links_[kEnd].before = added;
  }
  // Without effect if it is not there.
  void remove(std::size_t slot) {
    if (slot + 1 >= links_.size()) return;
    Link& link = links_[slot + 1];
    if (link.next == kNone) return;
    links_[link.before].next = link.next;
    links_[link.next].before = link.before;
    link = {};
  }

 private:
  using Number = std::uint32_t;
  static constexpr Number kNone = ~Number{0};
  static constexpr Number kEnd = 0;
  struct Link {
    Number next = kNone;
    Number before = kNone;
  };
  std::vector<Link> links_;  // of slot 0 behind that of the end
};

}  // namespace uet
