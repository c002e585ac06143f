// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Persistent memory that the CPU writes like other memory (FI_RMA_PMEM): each remote write is
// followed by the write-back of its cache lines, so that the bytes are in the memory before the
// target answers. The medium must need no more than that: a DAX mapping, not a file's page cache.
#pragma once

#include <cstddef>
#include <span>

#include "uet/base/device_memory.h"

namespace uet::prov {

class PersistentMemory final : public DeviceMemory {
 public:
  // nullptr: this CPU has no instruction for it.
  static PersistentMemory* of_this_cpu() noexcept;

  // `write_back`: starts the write-back of the cache line that holds this byte. `fence`: waits
  // until all have ended.
  PersistentMemory(void (*write_back)(const std::byte*), void (*fence)())
      : write_back_(write_back), fence_(fence) {}

  void place(std::byte* there, std::span<const std::byte> bytes) noexcept override;
  void fetch(std::span<std::byte> bytes, const std::byte* there) noexcept override;

  static constexpr std::size_t kLineBytes = 64;

 private:
  void (*const write_back_)(const std::byte*);
  void (*const fence_)();
};

}  // namespace uet::prov
