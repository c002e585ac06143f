// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Mapped once, synchronised around every copy as linux/dma-buf.h asks; a file that needs no
// synchronisation refuses that, and nothing is lost.
#include "hmem/dmabuf.h"

#include <fcntl.h>
#include <linux/dma-buf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace uet::prov {

std::unique_ptr<Dmabuf> Dmabuf::map(int fd, std::uint64_t offset, std::size_t bytes,
                                    std::byte* base) {
  std::unique_ptr<Dmabuf> buffer(new Dmabuf);
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t before = offset % page;
  buffer->fd_ = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  void* mapping = mmap(nullptr, bytes + before, PROT_READ | PROT_WRITE, MAP_SHARED, buffer->fd_,
                       static_cast<off_t>(offset - before));
  if (mapping == MAP_FAILED) return nullptr;
  buffer->mapping_ = mapping;
  buffer->mapped_bytes_ = bytes + before;
  buffer->memory_ = static_cast<std::byte*>(mapping) + before;
  buffer->base_ = base;
  return buffer;
}

Dmabuf::~Dmabuf() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_bytes_);
  if (fd_ >= 0) close(fd_);
}

void Dmabuf::synchronise(std::uint64_t what) const noexcept {
  dma_buf_sync sync{.flags = what};
  ioctl(fd_, DMA_BUF_IOCTL_SYNC, &sync);
}

void Dmabuf::place(std::byte* there, std::span<const std::byte> bytes) noexcept {
  synchronise(DMA_BUF_SYNC_START | DMA_BUF_SYNC_WRITE);
  std::memcpy(here(there), bytes.data(), bytes.size());
  synchronise(DMA_BUF_SYNC_END | DMA_BUF_SYNC_WRITE);
}

void Dmabuf::fetch(std::span<std::byte> bytes, const std::byte* there) noexcept {
  synchronise(DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ);
  std::memcpy(bytes.data(), here(there), bytes.size());
  synchronise(DMA_BUF_SYNC_END | DMA_BUF_SYNC_READ);
}

}  // namespace uet::prov
