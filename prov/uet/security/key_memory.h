// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory for keys and key schedules: in no core file, and not on a swap device where the limits
// allow it (TSS-60). Knows no key.
#pragma once

#include <memory_resource>

namespace uet::prov {

// Pages that are mapped for their own sake: the advice to the kernel is for whole pages.
class KeyPages final : public std::pmr::memory_resource {
 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* pages, std::size_t bytes, std::size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }
};

class KeyMemory {
 public:
  // Pieces of any size. Not for several threads at a time.
  std::pmr::memory_resource& resource() { return pool_; }

 private:
  KeyPages pages_;
  std::pmr::unsynchronized_pool_resource pool_{&pages_};
};

}  // namespace uet::prov
