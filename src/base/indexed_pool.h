// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A fixed number of objects handed out by a 16-bit number, where a pointer would be too big to
// keep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>

#include "uet/base/check.h"

namespace uet {

template <class T>
class IndexedPool {
 public:
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

  // capacity <= 65536. Objects hold nothing until they are assigned; memory is touched only then.
  explicit IndexedPool(std::size_t capacity)
      : storage_(std::make_unique_for_overwrite<std::byte[]>(capacity * sizeof(T))),
        objects_(reinterpret_cast<T*>(storage_.get())),
        free_(std::make_unique_for_overwrite<std::uint16_t[]>(capacity)),
        capacity_(capacity) {
    UET_ASSERT(capacity <= 65536);
  }

  std::optional<std::uint16_t> take() {
    if (free_count_ > 0) return free_[--free_count_];
    if (fresh_ < capacity_) return static_cast<std::uint16_t>(fresh_++);
    return std::nullopt;
  }
  void give_back(std::uint16_t index) {
    UET_ASSERT(index < fresh_ && in_use() > 0);
    free_[free_count_++] = index;
  }
  T& operator[](std::uint16_t index) { return objects_[index]; }
  std::size_t in_use() const { return fresh_ - free_count_; }
  std::size_t available() const { return capacity_ - in_use(); }

 private:
  std::unique_ptr<std::byte[]> storage_;  // T are implicit-lifetime types: they begin to live here
  T* objects_;
  std::unique_ptr<std::uint16_t[]> free_;
  std::size_t capacity_;
  std::size_t fresh_ = 0;
  std::size_t free_count_ = 0;
};

}  // namespace uet
