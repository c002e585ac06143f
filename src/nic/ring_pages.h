// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Maps the pages of a ring some time before they are used, many in one call: a page fault for each
// costs ten times as much, and the first pass through a ring would have one for each page.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace uet::nic {

class RingPages {
 public:
  enum class Use : std::uint8_t { Write, Read };

  // `data`: page aligned, and a multiple of kFirst long.
  RingPages(std::span<std::byte> data, Use use) : data_(data), use_(use) {}

  // Before bytes up to the place `end` are used.
  void reach(std::uint64_t end) {
    if (end > mapped_) [[unlikely]]
      map(end);
  }
  std::uint64_t mapped() const { return mapped_; }

 private:
  // Each step is as long as what is mapped, so that a ring which is hardly used has few pages.
  static constexpr std::uint64_t kFirst = 16 * 1024;
  static constexpr std::uint64_t kLongestStep = 256 * 1024;

  // The kernel may refuse (Linux before 5.14, no memory): then there are page faults.
  [[gnu::noinline]] void map(std::uint64_t end) {
    const std::uint64_t before = mapped_;
    while (mapped_ < end) mapped_ += std::clamp(mapped_, kFirst, kLongestStep);
    mapped_ = std::min<std::uint64_t>(mapped_, data_.size());
    const int advice = use_ == Use::Write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
    ::madvise(data_.data() + before, mapped_ - before, advice);
  }

  std::span<std::byte> data_;
  Use use_;
  std::uint64_t mapped_ = 0;
};

}  // namespace uet::nic
