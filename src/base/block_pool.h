// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Equal arrays for those who need one at times, as many as may ever need one. Last in, first out,
// so that those at work share a few that are in the caches, and memory never needed is never
// touched.
#pragma once

#include <cstddef>
#include <memory>

#include "base/zeroed_array.h"
#include "uet/base/check.h"

namespace uet {

template <class T>
class BlockPool {
 public:
  // `count` blocks of `block_size` objects each.
  BlockPool(std::size_t block_size, std::size_t count)
      : objects_(block_size * count),
        free_(std::make_unique_for_overwrite<T*[]>(count)),
        block_size_(block_size) {}
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // All zero bytes, or as it was given back. There must be one.
  T* take() {
    if (free_count_ > 0) return free_[--free_count_];
    UET_ASSERT((fresh_ + 1) * block_size_ <= objects_.size());
    return &objects_[fresh_++ * block_size_];
  }
  void give_back(T* block) { free_[free_count_++] = block; }
  std::size_t block_size() const { return block_size_; }
  std::size_t in_use() const { return fresh_ - free_count_; }

 private:
  ZeroedArray<T> objects_;
  std::unique_ptr<T*[]> free_;
  std::size_t block_size_;
  std::size_t fresh_ = 0;  // blocks that were ever taken
  std::size_t free_count_ = 0;
};

}  // namespace uet
