// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CUDA through the driver API of libcuda.so.1, which is loaded when it is first asked for: there is
// nothing to build or link with, and where it is missing there is no memory of FI_HMEM_CUDA.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "hmem/hmem.h"

namespace uet::prov {

struct CudaFunctions;

// Copies between one device's memory and the CPU's, through a pinned buffer of its own where the
// CPU's is not pinned. Calls may come from any thread.
class CudaMemory final : public Hmem {
 public:
  // `context`: the device's primary one (CUcontext).
  CudaMemory(const CudaFunctions& functions, void* context);

  void place(std::byte* there, std::span<const std::byte> bytes) noexcept override;
  void fetch(std::span<std::byte> bytes, const std::byte* there) noexcept override;
  // Lies all of this in one allocation of a device?
  bool holds(const void* address, std::size_t bytes) noexcept;
  // Page-locked, kept for the next one who needs as much when it comes back.
  std::byte* take_staging(std::size_t bytes) noexcept override;
  void give_back_staging(std::byte* memory, std::size_t bytes) noexcept override;
  void fetch_staged(std::byte* staging, const std::byte* there,
                    std::size_t bytes) noexcept override;

 private:
  struct Pinned {
    std::byte* memory;
    std::size_t bytes;
  };
  static std::size_t room_for(std::size_t bytes);
  template <class Call>
  int in_context(Call call) noexcept;
  template <class Copy>
  int by_parts(std::size_t bytes, Copy copy) noexcept;
  void warn(const char* what, int result) noexcept;

  const CudaFunctions& functions_;
  void* const context_;
  std::mutex mutex_;  // of all that follows
  std::byte* bounce_ = nullptr;
  std::vector<Pinned> spare_;
  std::size_t spare_bytes_ = 0;
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
