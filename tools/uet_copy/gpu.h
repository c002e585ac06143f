// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory of a CUDA device, through the driver API of libcuda.so.1, which is loaded at run time. The
// CPU never touches it: all access is by these functions. Calls may come from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

namespace uet::copy {

class Gpu {
 public:
  // Throws Failure if there is no driver or no such device.
  explicit Gpu(int device);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  // All throw Failure; NoSpace: the device has not so much memory.
  std::byte* allocate(std::size_t bytes);
  void free(std::byte* memory) noexcept;
  void put(std::byte* there, std::span<const std::byte> bytes);
  void get(std::span<std::byte> bytes, const std::byte* there);
  // Within the device.
  void copy(std::byte* to, const std::byte* from, std::size_t bytes);
  std::uint32_t crc32c(const std::byte* there, std::size_t bytes);

  int device() const { return device_; }

 private:
  struct Functions;
  template <class Call>
  void in_context(const char* what, Call call);

  const int device_;
  std::unique_ptr<Functions> functions_;
  void* context_ = nullptr;
  std::mutex mutex_;             // of the buffer
  std::byte* buffer_ = nullptr;  // pinned
};

}  // namespace uet::copy
