// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How payload gets to where the application wants it. The host implements both interfaces; the core
// only calls them where it would have copied itself.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

namespace uet {

// Memory that the CPU does not reach at its address, such as that of a GPU.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  // Both have ended when they return. `there` lies in the device's memory, with all of the bytes.
  virtual void place(std::byte* there, std::span<const std::byte> bytes) noexcept = 0;
  virtual void fetch(std::span<std::byte> bytes, const std::byte* there) noexcept = 0;
};

// Memory of the CPU, for a host that knows when something is quicker than memcpy: the core has no
// clock to find out.
class HostCopy {
 public:
  // For less it is not asked.
  static constexpr std::size_t kLeastBytes = 2048;

  virtual ~HostCopy() = default;
  // Has ended when it returns. The two do not overlap.
  virtual void copy(std::byte* there, std::span<const std::byte> bytes) noexcept = 0;

  // The packet being taken came through memory that is shared with its sender; else it is not asked
  // either: what the kernel or a device has just written is quickest stored.
  bool through_memory = false;
};

// `device`: nullptr for memory of the CPU; `host`: nullptr for memcpy. No bytes need no memory:
// `there` may be nullptr then, which memcpy does not allow.
inline void place(DeviceMemory* device, HostCopy* host, std::byte* there,
                  std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (device != nullptr) [[unlikely]] {
    device->place(there, bytes);
  } else if (host != nullptr && host->through_memory && bytes.size() >= HostCopy::kLeastBytes) {
    host->copy(there, bytes);
  } else {
    std::memcpy(there, bytes.data(), bytes.size());
  }
}

inline void fetch(DeviceMemory* device, std::span<std::byte> bytes, const std::byte* there) {
  if (bytes.empty()) return;
  if (device == nullptr) [[likely]] {
    std::memcpy(bytes.data(), there, bytes.size());
  } else {
    device->fetch(bytes, there);
  }
}

}  // namespace uet
