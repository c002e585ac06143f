// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A fixed number of objects, made once and handed out by pointer; taking and giving back is O(1)
// and allocates nothing. Last in, first out, so that memory never needed is never touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "uet/base/check.h"

namespace uet {

template <class T>
class Slab {
 public:
  explicit Slab(std::size_t capacity)
      : storage_(std::make_unique_for_overwrite<Cell[]>(capacity)), capacity_(capacity) {}
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  ~Slab() { UET_ASSERT(in_use_ == 0); }

  // nullptr when all objects are in use.
  template <class... Arguments>
  T* take(Arguments&&... arguments) {
    Cell* cell = free_;
    if (cell != nullptr) {
      free_ = cell->next;
    } else if (fresh_ < capacity_) {
      cell = &storage_[fresh_++];
    } else {
      return nullptr;
    }
    ++in_use_;
    if constexpr (sizeof...(Arguments) == 0) {
      return new (static_cast<void*>(cell->bytes)) T;  // not T(): that would clear a big one first
    } else {
      return new (static_cast<void*>(cell->bytes)) T(std::forward<Arguments>(arguments)...);
    }
  }

  void give_back(T* object) {
    UET_ASSERT(in_use_ > 0);
    object->~T();
    Cell* cell = reinterpret_cast<Cell*>(object);
    cell->next = free_;
    free_ = cell;
    --in_use_;
  }

  std::size_t capacity() const { return capacity_; }
  std::size_t in_use() const { return in_use_; }
  std::size_t available() const { return capacity_ - in_use_; }

 private:
  union Cell {
    Cell() {}  // bytes stay untouched until taken
    ~Cell() {}
    Cell* next;
    alignas(T) std::byte bytes[sizeof(T)];
  };
  std::unique_ptr<Cell[]> storage_;
  std::size_t capacity_;
  std::size_t fresh_ = 0;
  Cell* free_ = nullptr;
  std::size_t in_use_ = 0;
};

}  // namespace uet
