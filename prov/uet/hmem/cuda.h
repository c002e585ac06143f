// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CUDA through the driver API of libcuda.so.1, which is loaded when it is first asked for: there is
// nothing to build or link with, and where it is missing there is no memory of FI_HMEM_CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "uet/base/device_memory.h"

namespace uet::prov {

struct CudaFunctions;

// Copies between one device's memory and the CPU's, through a pinned buffer of its own where the
// CPU's is not pinned. Gives pinned memory to copy to. Calls may come from any thread.
class CudaMemory final : public DeviceMemory, public StagingMemory {
 public:
  // `context`: the device's primary one (CUcontext).
  CudaMemory(const CudaFunctions& functions, void* context);

  void place(std::byte* there, std::span<const std::byte> bytes) noexcept override;
  void fetch(std::span<std::byte> bytes, const std::byte* there) noexcept override;
  // Lies all of this in one allocation of a device?
  bool holds(const void* address, std::size_t bytes) noexcept;
  // A dmabuf of the allocation that holds this address, and the address's offset in it; the caller
  // closes it. -1: the driver or the device has none.
  int export_dmabuf(const void* address, std::uint64_t& offset) noexcept;
  StagingMemory& staging() noexcept override { return *this; }
  void fetch_staged(std::span<std::byte> bytes, const std::byte* there) noexcept override;
  void place_staged(std::byte* there, std::span<const std::byte> bytes) noexcept override;
  bool wants_long_copies() const noexcept override { return true; }
  // Pinned.
  std::byte* take(std::size_t bytes) noexcept override;
  void give_back(std::byte* memory, std::size_t bytes) noexcept override;

 private:
  template <class Call>
  int in_context(Call call) noexcept;
  template <class Copy>
  int by_parts(std::size_t bytes, Copy copy) noexcept;
  void warn(const char* what, int result) noexcept;

  const CudaFunctions& functions_;
  void* const context_;
  std::mutex mutex_;  // of the buffer
  std::byte* bounce_ = nullptr;
};

class Cuda {
 public:
  // nullptr: no driver, or no device. The first call loads and initialises the driver.
  static Cuda* driver() noexcept;
  // nullptr: there is no such device, or it cannot be used.
  CudaMemory* memory_of(int device) noexcept;

  // For driver() alone.
  Cuda(std::unique_ptr<CudaFunctions> functions, int devices);
  ~Cuda();

 private:
  const std::unique_ptr<CudaFunctions> functions_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<CudaMemory>> memories_;  // by device, made when first asked for
};

}  // namespace uet::prov
