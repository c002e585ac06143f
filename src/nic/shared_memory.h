// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory that two processes share: one makes it and hands its descriptor over, the other maps it.
// It can neither shrink nor grow, so that no access can meet a hole that the other side made.
#pragma once

#include <cstddef>
#include <span>

#include "nic/socket.h"
#include "uet/base/result.h"

namespace uet::nic {

class SharedMemory {
 public:
  // False: create() would exceed the file size limit of this process (ulimit -f).
  static bool is_allowed(std::size_t bytes);
  // `bytes` of zeros, of which only those that are used cost memory. Error::NoMemory.
  static Result<SharedMemory> create(std::size_t bytes);
  // Maps what create() made in another process. Error::Invalid if `fd` is not such memory of
  // exactly `bytes`, Error::NoMemory.
  static Result<SharedMemory> attach(FileDescriptor fd, std::size_t bytes);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  std::span<std::byte> bytes() const { return bytes_; }
  int fd() const { return fd_.get(); }  // -1 after attach() and close_fd()
  // The mapping stays.
  void close_fd() { FileDescriptor closed = std::move(fd_); }

 private:
  SharedMemory(FileDescriptor fd, std::span<std::byte> bytes) : fd_(std::move(fd)), bytes_(bytes) {}
  static Result<SharedMemory> map(FileDescriptor fd, std::size_t bytes);

  FileDescriptor fd_;
  std::span<std::byte> bytes_;
};

}  // namespace uet::nic
