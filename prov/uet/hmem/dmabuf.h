// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Device memory that came as a dmabuf (FI_MR_DMABUF) and that the CPU can map: the application goes
// on to name it by the device's addresses, the bytes are those of the mapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "uet/base/device_memory.h"

namespace uet::prov {

class Dmabuf final : public DeviceMemory {
 public:
  // Maps `bytes` from `offset` of `fd` on, which the device knows at `base`. nullptr: it cannot be
  // mapped, errno says why.
  static std::unique_ptr<Dmabuf> map(int fd, std::uint64_t offset, std::size_t bytes,
                                     std::byte* base);
  ~Dmabuf() override;
  Dmabuf(const Dmabuf&) = delete;
  Dmabuf& operator=(const Dmabuf&) = delete;

  void place(std::byte* there, std::span<const std::byte> bytes) noexcept override;
  void fetch(std::span<std::byte> bytes, const std::byte* there) noexcept override;
  // Where the CPU has this address of the device.
  std::byte* here(const std::byte* there) const { return memory_ + (there - base_); }

 private:
  Dmabuf() = default;
  void synchronise(std::uint64_t what) const noexcept;

  int fd_ = -1;  // our own
  void* mapping_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::byte* memory_ = nullptr;  // within the mapping
  const std::byte* base_ = nullptr;
};

}  // namespace uet::prov
