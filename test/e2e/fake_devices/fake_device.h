// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The memory of a stand-in device: no instruction of the CPU can touch it at its address. It counts
// the bytes that are copied. One in each stand-in library.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>

namespace fake_device {

inline constexpr std::size_t kMemoryBytes = std::size_t{1} << 28;
inline constexpr std::size_t kAlignment = 256;

struct Device {
  std::mutex mutex;
  std::byte* addresses = nullptr;  // what the application sees: not to be touched
  std::byte* memory = nullptr;     // what is there
  std::size_t used = 0;
  std::map<std::uintptr_t, std::size_t> allocations;
  std::size_t copied = 0;
};

inline Device& device() {
  static Device* const one = [] {
    auto* const made = new Device;
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    made->addresses =
        static_cast<std::byte*>(mmap(nullptr, kMemoryBytes, PROT_NONE, kFlags, -1, 0));
    made->memory =
        static_cast<std::byte*>(mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE, kFlags, -1, 0));
    return made;
  }();
  return *one;
}

inline bool is_inside(const void* address) {
  const auto* at = static_cast<const std::byte*>(address);
  return at >= device().addresses && at < device().addresses + kMemoryBytes;
}

// The bytes behind an address of the device; else the address itself.
inline std::byte* behind(const void* address) {
  auto* at = static_cast<std::byte*>(const_cast<void*>(address));
  return is_inside(address) ? device().memory + (at - device().addresses) : at;
}

inline std::byte* allocate(std::size_t bytes) {
  const std::lock_guard lock(device().mutex);
  std::byte* const address = device().addresses + device().used;
  device().used += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  device().allocations[reinterpret_cast<std::uintptr_t>(address)] = bytes;
  return address;
}

// The allocation that holds the address; false: there is none.
inline bool find(const void* address, void** base, std::size_t* bytes) {
  const std::lock_guard lock(device().mutex);
  auto after = device().allocations.upper_bound(reinterpret_cast<std::uintptr_t>(address));
  if (after == device().allocations.begin()) return false;
  --after;
  if (reinterpret_cast<std::uintptr_t>(address) - after->first >= after->second) return false;
  *base = reinterpret_cast<void*>(after->first);
  *bytes = after->second;
  return true;
}

inline void copy(void* to, const void* from, std::size_t bytes) {
  const std::lock_guard lock(device().mutex);
  std::memcpy(behind(to), behind(from), bytes);
  device().copied += bytes;
}

}  // namespace fake_device

// For tests, of each library.
extern "C" {
inline __attribute__((used, visibility("default"))) std::byte* fake_device_allocate(
    std::size_t bytes) {
  return fake_device::allocate(bytes);
}
inline __attribute__((used, visibility("default"))) std::byte* fake_device_behind(
    const void* address) {
  return fake_device::behind(address);
}
inline __attribute__((used, visibility("default"))) std::size_t fake_device_copied() {
  return fake_device::device().copied;
}
}
