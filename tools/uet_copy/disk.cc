// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "disk.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#if defined(UET_COPY_URING)
#include <liburing.h>
#endif

namespace uet::copy {

#if defined(UET_COPY_URING)
struct Disk::Ring {
  io_uring ring{};
};
#else
struct Disk::Ring {};
#endif

Disk::Disk(unsigned tags) : operations_(tags) {
#if defined(UET_COPY_URING)
  auto ring = std::make_unique<Ring>();
  if (const int result = ::io_uring_queue_init(tags, &ring->ring, 0); result == 0) {
    ring_ = std::move(ring);
  } else {
    why_ = std::string("the kernel refuses io_uring (") + std::strerror(-result) + ")";
  }
#else
  why_ = "built without liburing";
#endif
}

Disk::~Disk() {
  drain();
#if defined(UET_COPY_URING)
  if (ring_ != nullptr) ::io_uring_queue_exit(&ring_->ring);
#endif
}

void Disk::read(unsigned tag, int fd, void* to, std::size_t bytes, std::uint64_t offset) {
  begin(tag, {.write = false,
              .running = true,
              .fd = fd,
              .memory = static_cast<std::byte*>(to),
              .bytes = bytes,
              .offset = offset,
              .done = 0});
}

void Disk::write(unsigned tag, int fd, const void* from, std::size_t bytes, std::uint64_t offset) {
  begin(tag, {.write = true,
              .running = true,
              .fd = fd,
              .memory = static_cast<std::byte*>(const_cast<void*>(from)),
              .bytes = bytes,
              .offset = offset,
              .done = 0});
}

void Disk::begin(unsigned tag, const Operation& operation) {
  operations_[tag] = operation;
  if (ring_ != nullptr) {
    submit(tag);
  } else {
    run_now(tag);
  }
}

void Disk::submit(unsigned tag) {
#if defined(UET_COPY_URING)
  const Operation& operation = operations_[tag];
  // As many entries as tags, so that there is always one.
  io_uring_sqe* entry = ::io_uring_get_sqe(&ring_->ring);
  std::byte* memory = operation.memory + operation.done;
  const auto bytes = static_cast<unsigned>(operation.bytes - operation.done);
  const std::uint64_t offset = operation.offset + operation.done;
  if (operation.write) {
    ::io_uring_prep_write(entry, operation.fd, memory, bytes, offset);
  } else {
    ::io_uring_prep_read(entry, operation.fd, memory, bytes, offset);
  }
  entry->user_data = tag;
  ::io_uring_submit(&ring_->ring);
#else
  run_now(tag);
#endif
}

void Disk::run_now(unsigned tag) {
  const Operation& operation = operations_[tag];
  ssize_t result = 0;
  do {
    std::byte* memory = operation.memory + operation.done;
    const std::size_t bytes = operation.bytes - operation.done;
    const auto offset = static_cast<off_t>(operation.offset + operation.done);
    result = operation.write ? ::pwrite(operation.fd, memory, bytes, offset)
                             : ::pread(operation.fd, memory, bytes, offset);
    if (result < 0) result = -errno;
  } while (!part_done(tag, result));
}

bool Disk::part_done(unsigned tag, ssize_t result) {
  Operation& operation = operations_[tag];
  if (result == -EINTR || result == -EAGAIN) return false;
  if (result > 0) operation.done += static_cast<std::size_t>(result);
  // A read that ends within a block has reached the end of the file: asking for the rest, at an
  // offset that is not aligned, would fail with EINVAL.
  const bool at_end = result == 0 || (!operation.write && operation.done % 512 != 0);
  if (result > 0 && operation.done < operation.bytes && !at_end) return false;
  if (result == 0 && operation.write && operation.done < operation.bytes) result = -EIO;
  operation.running = false;
  outcomes_.push_back({tag, result < 0 ? result : static_cast<ssize_t>(operation.done)});
  return true;
}

void Disk::reap(std::vector<Outcome>& out) {
#if defined(UET_COPY_URING)
  if (ring_ != nullptr) {
    io_uring_cqe* entry = nullptr;
    while (::io_uring_peek_cqe(&ring_->ring, &entry) == 0) {
      const auto tag = static_cast<unsigned>(entry->user_data);
      const ssize_t result = entry->res;
      ::io_uring_cqe_seen(&ring_->ring, entry);
      if (!part_done(tag, result)) submit(tag);
    }
  }
#endif
  out.insert(out.end(), outcomes_.begin(), outcomes_.end());
  outcomes_.clear();
}

void Disk::drain() {
  std::vector<Outcome> ignored;
  const auto running = [](const Operation& operation) { return operation.running; };
  while (std::any_of(operations_.begin(), operations_.end(), running)) {
#if defined(UET_COPY_URING)
    io_uring_cqe* entry = nullptr;
    if (ring_ != nullptr) ::io_uring_wait_cqe(&ring_->ring, &entry);
#endif
    reap(ignored);
  }
}

int Disk::fd() const {
#if defined(UET_COPY_URING)
  if (ring_ != nullptr) return ring_->ring.ring_fd;
#endif
  return -1;
}

}  // namespace uet::copy
