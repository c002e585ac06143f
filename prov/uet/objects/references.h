// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Counts the users of an object: fi_close answers -FI_EBUSY while there is one.
#pragma once

#include <atomic>
#include <utility>

namespace uet::prov {

class References {
 public:
  bool any() const { return count_.load(std::memory_order_acquire) > 0; }

 private:
  friend class Hold;
  std::atomic<int> count_{0};
};

// One dependant's hold on an object, as long as it lives.
class Hold {
 public:
  Hold() = default;
  explicit Hold(References& references) : references_(&references) {
    references_->count_.fetch_add(1, std::memory_order_relaxed);
  }
  Hold(Hold&& other) noexcept : references_(std::exchange(other.references_, nullptr)) {}
  Hold& operator=(Hold&& other) noexcept {
    std::swap(references_, other.references_);
    return *this;
  }
  ~Hold() {
    if (references_ != nullptr) references_->count_.fetch_sub(1, std::memory_order_release);
  }

 private:
  References* references_ = nullptr;
};

}  // namespace uet::prov
