// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A long range of addresses behind which lie the same few pages again and again: the memory that
// all simulated hosts read from and write to. Its contents mean nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uet::netsim {

class SharedPages {
 public:
  // Throws std::bad_alloc if the system cannot map so many addresses.
  explicit SharedPages(std::uint64_t bytes);
  ~SharedPages();
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;

  std::byte* data() const { return data_; }
  std::uint64_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
};

}  // namespace uet::netsim
