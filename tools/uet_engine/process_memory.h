// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The memory of an application, which its engine reads and writes by copies.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "nic/socket.h"
#include "uet/base/device_memory.h"

namespace uet::engine {

class ProcessMemory final : public DeviceMemory {
 public:
  // Of the process `pid`, which must be running. False: `why` says why its memory is out of reach.
  bool open(pid_t pid, std::string& why);

  // Bytes that the process does not have are lost, or read as zeros; failures() counts that.
  void place(std::byte* there, std::span<const std::byte> bytes) noexcept override;
  void fetch(std::span<std::byte> bytes, const std::byte* there) noexcept override;
  bool wants_long_copies() const noexcept override { return true; }
  bool executes_atomics() const noexcept override { return true; }

  // Readable when the process has ended.
  int ended_fd() const { return process_.get(); }
  std::uint64_t failures() const { return failures_.load(std::memory_order_relaxed); }

 private:
  bool runs() const noexcept;

  pid_t pid_ = 0;
  nic::FileDescriptor process_;  // a pidfd: the number may be another process's later
  std::atomic<std::uint64_t> failures_{0};
};

}  // namespace uet::engine
