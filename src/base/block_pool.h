// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Equal arrays for those who need one at times. Memory for as many as may need one is reserved as
// their number grows. Last in, first out, so that those at work share a few that are in the caches,
// and memory never needed is never touched.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#include "uet/base/check.h"

namespace uet {

// `kZeroed`: fresh blocks are all zero bytes; otherwise they hold anything.
template <class T, bool kZeroed = true>
class BlockPool {
 public:
  // All zero bytes must be a T.
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

  // `count` blocks of `block_size` objects each at most.
  BlockPool(std::size_t block_size, std::size_t count) : block_size_(block_size), count_(count) {}
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // From now on `blocks` can be taken at a time; never fewer again. May throw bad_alloc.
  void reserve(std::size_t blocks) {
    UET_ASSERT(blocks <= count_);
    while (reserved_ < blocks) grow();
  }
  // Fresh, or as it was given back. One must be reserved.
  T* take() {
    UET_ASSERT(free_count_ > 0);
    ++in_use_;
    return free_[--free_count_];
  }
  void give_back(T* block) {
    free_[free_count_++] = block;
    --in_use_;
  }
  std::size_t block_size() const { return block_size_; }
  std::size_t in_use() const { return in_use_; }

 private:
  struct Free {
    void operator()(T* objects) const { std::free(objects); }
  };

  // As many again, so that there are few allocations.
  void grow() {
    const std::size_t more = std::clamp<std::size_t>(reserved_, 1, count_ - reserved_);
    auto free = std::make_unique_for_overwrite<T*[]>(reserved_ + more);
    chunks_.reserve(chunks_.size() + 1);
    const std::size_t bytes = more * block_size_ * sizeof(T);
    std::unique_ptr<T, Free> chunk(
        static_cast<T*>(kZeroed ? std::calloc(1, bytes) : std::malloc(bytes)));
    if (chunk == nullptr) throw std::bad_alloc();
    for (std::size_t i = 0; i < more; ++i) free[i] = chunk.get() + (more - 1 - i) * block_size_;
    std::copy_n(free_.get(), free_count_, free.get() + more);
    free_ = std::move(free);
    free_count_ += more;
    reserved_ += more;
    chunks_.push_back(std::move(chunk));
  }

  std::unique_ptr<T*[]> free_;  // as many as are reserved; the last one is taken next
  std::size_t free_count_ = 0;
  std::size_t in_use_ = 0;
  std::size_t reserved_ = 0;
  const std::size_t block_size_;
  const std::size_t count_;
  std::vector<std::unique_ptr<T, Free>> chunks_;
};

}  // namespace uet
