// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How payload gets to where the application wants it. The host implements both interfaces; the core
// only calls them where it would have copied itself.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <span>

namespace uet {

// Gives memory of the CPU to which a device's bytes are copied before they are sent.
class StagingMemory {
 public:
  virtual ~StagingMemory() = default;
  // nullptr: there is none.
  virtual std::byte* take(std::size_t bytes) noexcept = 0;
  // `bytes`: as for take().
  virtual void give_back(std::byte* memory, std::size_t bytes) noexcept = 0;
};

// For a device whose driver copies to any memory of the CPU.
class HeapStaging final : public StagingMemory {
 public:
  std::byte* take(std::size_t bytes) noexcept override {
    return new (std::nothrow) std::byte[bytes];
  }
  void give_back(std::byte* memory, std::size_t) noexcept override { delete[] memory; }
  // Never destroyed: objects may be closed when the process ends.
  static HeapStaging& shared() {
    static HeapStaging* const kShared = new HeapStaging;
    return *kShared;
  }
};

// Memory that the CPU does not reach at its address, such as that of a GPU.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  // Both have ended when they return. `there` lies in the device's memory, with all of the bytes.
  virtual void place(std::byte* there, std::span<const std::byte> bytes) noexcept = 0;
  virtual void fetch(std::span<std::byte> bytes, const std::byte* there) noexcept = 0;
  // Outlives every FEP that has sent from this memory.
  virtual StagingMemory& staging() noexcept { return HeapStaging::shared(); }
  // As fetch, to memory of staging().
  virtual void fetch_staged(std::span<std::byte> bytes, const std::byte* there) noexcept {
    fetch(bytes, there);
  }
  // As place, from memory of staging().
  virtual void place_staged(std::byte* there, std::span<const std::byte> bytes) noexcept {
    place(there, bytes);
  }
  // A copy costs much more than its bytes, so that few long copies are better than many short ones.
  virtual bool wants_long_copies() const noexcept { return false; }
  // The NIC reads the bytes itself at the device's addresses, so that packets may point to them
  // (Packet::device).
  virtual bool is_read_by_nic() const noexcept { return false; }
  // Atomics of peers may be executed on a copy that is placed again: no other atomics than those of
  // this FEP touch the memory.
  virtual bool executes_atomics() const noexcept { return false; }
};

// Joins received bytes that follow one another in a device's memory to one copy.
class DeviceRun {
 public:
  static constexpr std::size_t kBytes = 256 << 10;

  DeviceRun() = default;
  DeviceRun(const DeviceRun&) = delete;
  DeviceRun& operator=(const DeviceRun&) = delete;
  ~DeviceRun() { replace(nullptr); }

  // Has ended at the next end() at the latest.
  void add(DeviceMemory& device, std::byte* there, std::span<const std::byte> bytes) noexcept {
    const bool follows = &device == device_ && there == there_ + used_;
    if (!follows || bytes.size() > kBytes - used_) begin(device, there);
    if (buffer_ == nullptr || bytes.size() > kBytes) return device.place(there, bytes);
    std::memcpy(buffer_ + used_, bytes.data(), bytes.size());
    used_ += bytes.size();
  }
  void end() noexcept {
    if (used_ == 0) return;
    device_->place_staged(there_, {buffer_, used_});
    there_ += used_;
    used_ = 0;
  }

 private:
  void begin(DeviceMemory& device, std::byte* there) noexcept {
    end();
    device_ = &device;
    there_ = there;
    replace(&device.staging());
  }
  void replace(StagingMemory* memory) noexcept {
    if (memory == memory_ && buffer_ != nullptr) return;
    if (buffer_ != nullptr) memory_->give_back(buffer_, kBytes);
    memory_ = memory;
    buffer_ = memory != nullptr ? memory->take(kBytes) : nullptr;
  }

  DeviceMemory* device_ = nullptr;
  std::byte* there_ = nullptr;  // where the bytes of the buffer go
  std::size_t used_ = 0;
  StagingMemory* memory_ = nullptr;  // that has given the buffer
  std::byte* buffer_ = nullptr;
};

// Copies to memory of the CPU, for a host that knows when something is faster than memcpy: the core
// has no clock to find out. And how bytes for a device wait for the bytes that follow.
class HostCopy {
 public:
  // For less it is not asked.
  static constexpr std::size_t kLeastBytes = 2048;

  virtual ~HostCopy() = default;
  // Has ended when it returns. The two do not overlap.
  virtual void copy(std::byte* there, std::span<const std::byte> bytes) noexcept = 0;

  // Packets are being taken: bytes for a device may wait in `run`, which ends before the ACKs
  // leave, and before a completion or a read that depends on the bytes.
  bool joins = false;
  DeviceRun run;
};

// Bytes of devices that wait are where they belong when it returns.
inline void end_run(HostCopy* host) {
  if (host != nullptr) host->run.end();
}

// `device`: nullptr for memory of the CPU; `host`: nullptr for memcpy. No bytes need no memory:
// `there` may be nullptr then, which memcpy does not allow.
inline void place(DeviceMemory* device, HostCopy* host, std::byte* there,
                  std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (device != nullptr) [[unlikely]] {
    const bool joins = host != nullptr && host->joins && device->wants_long_copies();
    if (joins) host->run.add(*device, there, bytes);
    if (!joins) device->place(there, bytes);
  } else if (host != nullptr && bytes.size() >= HostCopy::kLeastBytes) {
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
