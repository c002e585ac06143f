// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory that the CPU does not reach at its address, such as that of a GPU: how bytes get there and
// back. The host implements it; the core only calls it where it would have copied itself.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

namespace uet {

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  // Both have ended when they return. `there` lies in the device's memory, with all of the bytes.
  virtual void place(std::byte* there, std::span<const std::byte> bytes) noexcept = 0;
  virtual void fetch(std::span<std::byte> bytes, const std::byte* there) noexcept = 0;
};

// `device`: nullptr for memory of the CPU.
inline void place(DeviceMemory* device, std::byte* there, std::span<const std::byte> bytes) {
  if (device == nullptr) [[likely]] {
    std::memcpy(there, bytes.data(), bytes.size());
  } else {
    device->place(there, bytes);
  }
}

inline void fetch(DeviceMemory* device, std::span<std::byte> bytes, const std::byte* there) {
  if (device == nullptr) [[likely]] {
    std::memcpy(bytes.data(), there, bytes.size());
  } else {
    device->fetch(bytes, there);
  }
}

}  // namespace uet
