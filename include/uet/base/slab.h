// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Objects handed out by pointer, up to a capacity; taking and giving back is O(1). Memory comes in
// chunks and is kept for the next object. Last in, first out, so that few objects in use touch
// little memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "uet/base/check.h"

namespace uet {

template <class T>
class Slab {
 public:
  // `capacity`: objects in use at a time. Their memory comes when it is first needed, in chunks of
  // 2 to 64 KiB, each about a quarter of what there is, and goes with the slab.
  explicit Slab(std::size_t capacity) : capacity_(capacity) {}
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  ~Slab() {
    UET_ASSERT(in_use_ == 0);
    while (chunks_ != nullptr) delete[] std::exchange(chunks_, chunks_->next);
  }

  // nullptr when all objects are in use, or when there is no memory for one more.
  template <class... Arguments>
  T* take(Arguments&&... arguments) {
    Cell* cell = free_;
    if (cell != nullptr) {
      free_ = cell->next;
    } else if (in_use_ < capacity_ && has_fresh()) {
      cell = &chunks_[fresh_++];
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

  // The next take() has an object; else there is none now.
  bool ready() { return free_ != nullptr || (in_use_ < capacity_ && has_fresh()); }

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
  static constexpr std::size_t cells_in(std::size_t bytes, std::size_t least) {
    return std::max(bytes / sizeof(Cell), least);
  }
  static constexpr std::size_t kFirstCells = cells_in(std::size_t{2} << 10, 4);
  static constexpr std::size_t kMostCells = cells_in(std::size_t{64} << 10, 8);

  bool has_fresh() { return fresh_ <= chunk_cells_ || grow(); }
  // The first cell of a chunk holds the address of the chunk before.
  bool grow() {
    const std::size_t cells = std::clamp(cells_ / 4, kFirstCells, kMostCells);
    const std::size_t count = std::min(cells, capacity_);
    Cell* chunk = new (std::nothrow) Cell[count + 1];
    if (chunk == nullptr) return false;
    chunk_cells_ = count;
    cells_ += count;
    chunk->next = std::exchange(chunks_, chunk);
    fresh_ = 1;
    return true;
  }

  std::size_t capacity_;
  Cell* chunks_ = nullptr;        // the newest
  std::size_t chunk_cells_ = 0;   // it has so many
  std::size_t cells_ = 0;         // of all chunks
  std::size_t fresh_ = SIZE_MAX;  // its next cell that has not been taken yet
  Cell* free_ = nullptr;
  std::size_t in_use_ = 0;
};

}  // namespace uet
