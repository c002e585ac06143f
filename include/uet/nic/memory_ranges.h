// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A set of ranges of memory that do not overlap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace uet::nic {

class MemoryRanges {
 public:
  using Range = std::span<const std::byte>;

  // The next add() of up to so many ranges in all does not allocate. May throw bad_alloc.
  void reserve(std::size_t ranges) { ranges_.reserve(ranges); }
  // `range` is not empty. May throw bad_alloc.
  void add(Range range) { ranges_.insert(behind(range.data()), range); }
  // The range that begins there; none: nothing happens.
  void remove(const std::byte* begin) {
    std::erase_if(ranges_, [begin](Range range) { return range.data() == begin; });
  }
  bool contains(const std::byte* at) const {
    const auto next = behind(at);
    return next != ranges_.begin() && std::less<>()(at, next[-1].data() + next[-1].size());
  }

 private:
  std::vector<Range>::const_iterator behind(const std::byte* at) const {
    return std::upper_bound(
        ranges_.begin(), ranges_.end(), at,
        [](const std::byte* a, Range range) { return std::less<>()(a, range.data()); });
  }

  std::vector<Range> ranges_;  // by address
};

}  // namespace uet::nic
