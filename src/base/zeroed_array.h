// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A large table that begins as all zero bytes and of which most is never used: the system gives its
// pages only when they are touched, so that it costs nothing to make.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

#include "uet/base/check.h"

namespace uet {

template <class T>
class ZeroedArray {
 public:
  // All zero bytes must be a T, one without anything in it.
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

  explicit ZeroedArray(std::size_t count)
      // T may be a pointer. NOLINTNEXTLINE(bugprone-sizeof-expression)
      : items_(static_cast<T*>(std::calloc(count, sizeof(T)))), count_(count) {
    if (items_ == nullptr) throw std::bad_alloc();
  }
  T& operator[](std::size_t index) {
    UET_ASSERT(index < count_);
    return items_.get()[index];
  }
  const T& operator[](std::size_t index) const {
    UET_ASSERT(index < count_);
    return items_.get()[index];
  }
  std::size_t size() const { return count_; }

 private:
  struct Free {
    void operator()(T* items) const { std::free(items); }
  };
  std::unique_ptr<T, Free> items_;
  std::size_t count_;
};

}  // namespace uet
