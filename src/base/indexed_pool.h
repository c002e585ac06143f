// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Objects handed out by a 16-bit number, where a pointer would be too big to keep. Memory comes in
// small parts as it is needed, and is kept.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <vector>

#include "uet/base/check.h"

namespace uet {

template <class T>
class IndexedPool {
 public:
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

  // capacity <= 65536. Objects hold nothing until they are assigned, and keep their address.
  explicit IndexedPool(std::size_t capacity) : capacity_(capacity) {
    UET_ASSERT(capacity <= 65536);
  }

  // Nothing if all are in use, or if there is no memory for one more.
  std::optional<std::uint16_t> take() {
    if (!ready()) return std::nullopt;
    if (free_count_ > 0) return free_[--free_count_];
    return static_cast<std::uint16_t>(fresh_++);
  }
  // The next take() has one.
  bool ready() {
    if (free_count_ > 0 || fresh_ < reserved_) return true;
    return fresh_ < capacity_ && grow();
  }
  void give_back(std::uint16_t index) {
    UET_ASSERT(index < fresh_ && in_use() > 0);
    free_[free_count_++] = index;
  }
  T& operator[](std::uint16_t index) {
    return reinterpret_cast<T*>(parts_[index / kPart].get())[index % kPart];
  }
  std::size_t in_use() const { return fresh_ - free_count_; }
  std::size_t available() const { return capacity_ - in_use(); }

 private:
  static constexpr std::size_t kPart =
      std::bit_floor(std::clamp<std::size_t>(2048 / sizeof(T), 8, 64));

  [[gnu::noinline, gnu::cold]] bool grow() {
    try {
      const std::size_t more = std::min(kPart, capacity_ - reserved_);
      std::vector<std::uint16_t> free(reserved_ + more);
      parts_.reserve(parts_.size() + 1);
      parts_.push_back(std::make_unique_for_overwrite<std::byte[]>(kPart * sizeof(T)));
      free_ = std::move(free);  // none is free
      reserved_ += more;
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  std::vector<std::unique_ptr<std::byte[]>>
      parts_;                        // T are implicit-lifetime types: they live here
  std::vector<std::uint16_t> free_;  // as many as are reserved
  std::size_t capacity_;
  std::size_t reserved_ = 0;
  std::size_t fresh_ = 0;
  std::size_t free_count_ = 0;
};

}  // namespace uet
