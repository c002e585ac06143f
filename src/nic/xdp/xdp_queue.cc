// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A socket, its rings and its chunks. The first chunks are the kernel's to receive into, the others
// ours to send from.
#include <fcntl.h>
#include <linux/if_xdp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <xdp/libxdp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "nic/xdp_device.h"

namespace uet::nic {
namespace {

constexpr std::uint32_t kChunkBytes = 4096;
constexpr std::uint64_t kChunkMask = ~std::uint64_t{kChunkBytes - 1};
// The kernel sends a limited number of frames in one call; what is left after so many waits.
constexpr int kMostKicks = 8;
// Between two tries to have a queue.
constexpr std::chrono::milliseconds kPause(5);
// Since Linux 6.6; Debian 12's headers are older: the frame goes on in the next descriptor.
constexpr std::uint32_t kContinued = 1U << 0;

bool later(int error) { return error == EAGAIN || error == EBUSY || error == ENOBUFS; }

}  // namespace

void XdpQueue::Unmap::operator()(std::byte* memory) const { ::munmap(memory, bytes); }

XdpQueue::~XdpQueue() = default;

std::unique_ptr<XdpQueue> XdpQueue::open(const Request& request, int& error) {
  std::unique_ptr<XdpQueue> queue(new XdpQueue);
  if (!queue->make_memory(request)) {
    error = errno;
    return nullptr;
  }
  const std::size_t bytes = queue->memory_.get_deleter().bytes;
  xsk_umem_config memory{};
  memory.fill_size = request.receive_chunks;
  memory.comp_size = std::max(request.send_chunks, 1U);
  memory.frame_size = kChunkBytes;
  xsk_umem* umem = nullptr;
  error = -xsk_umem__create(&umem, queue->memory_.get(), bytes, &queue->fill_, &queue->completed_,
                            &memory);
  if (error != 0) return nullptr;
  queue->umem_.reset(umem);

  error = queue->make_socket(request);
  while (error == EBUSY && std::chrono::steady_clock::now() < request.until) {
    std::this_thread::sleep_for(kPause);
    error = queue->make_socket(request);
  }
  if (error != 0) return nullptr;

  std::uint32_t place = 0;
  xsk_ring_prod__reserve(&queue->fill_, request.receive_chunks, &place);
  for (std::uint32_t i = 0; i < request.receive_chunks; ++i) {
    *xsk_ring_prod__fill_addr(&queue->fill_, place + i) = std::uint64_t{i} * kChunkBytes;
  }
  xsk_ring_prod__submit(&queue->fill_, request.receive_chunks);
  for (std::uint32_t i = 0; i < request.send_chunks; ++i) {
    queue->free_.push_back(std::uint64_t{request.receive_chunks + i} * kChunkBytes);
  }
  return queue;
}

// Returns 0 or errno.
int XdpQueue::make_socket(const Request& request) {
  xsk_socket_config config{};
  config.rx_size = request.receive_chunks;
  config.tx_size = request.send_chunks;
  config.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD;
  config.bind_flags = request.bind_flags;
  xsk_socket* socket = nullptr;
  const int result =
      xsk_socket__create(&socket, request.interface.name.c_str(), request.queue, umem_.get(),
                         &received_, request.send_chunks > 0 ? &to_send_ : nullptr, &config);
  if (result != 0) return -result;
  socket_.reset(socket);
  ::fcntl(fd(), F_SETFD, FD_CLOEXEC);  // a program that is executed would keep the queue
  return 0;
}

bool XdpQueue::make_memory(const Request& request) {
  const std::size_t bytes = std::size_t{request.receive_chunks + request.send_chunks} * kChunkBytes;
  // Shared, so that a child does not get a copy while the kernel writes to ours.
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (mapped == MAP_FAILED) return false;
  memory_ = {static_cast<std::byte*>(mapped), Unmap{bytes}};
  return true;
}

void XdpQueue::give_back() {
  std::uint32_t place = 0;
  // There is a place for every chunk.
  const auto count = static_cast<std::uint32_t>(lent_count_);
  if (count > 0 && xsk_ring_prod__reserve(&fill_, count, &place) == count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      *xsk_ring_prod__fill_addr(&fill_, place + i) = lent_[i];
    }
    xsk_ring_prod__submit(&fill_, count);
    lent_count_ = 0;
  }
  if (xsk_ring_prod__needs_wakeup(&fill_) != 0) {
    ::recvfrom(fd(), nullptr, 0, MSG_DONTWAIT, nullptr, nullptr);
  }
}

std::size_t XdpQueue::receive(std::span<ArrivedFrame> out, std::span<std::byte> room,
                              std::size_t frame_bytes, std::uint64_t& truncated) {
  std::uint32_t place = 0;
  const auto most = static_cast<std::uint32_t>(kMostLent - lent_count_);
  const std::uint32_t there = xsk_ring_cons__peek(&received_, most, &place);
  std::size_t filled = 0;
  std::uint32_t used = 0;  // descriptors of whole frames
  std::size_t length = 0;  // of the frame so far
  std::uint32_t pieces = 0;
  for (std::uint32_t i = 0; i < there && filled < out.size(); ++i) {
    const xdp_desc& piece = *xsk_ring_cons__rx_desc(&received_, place + i);
    const std::byte* const data = memory_.get() + piece.addr;
    const bool last = (piece.options & kContinued) == 0;
    ++pieces;
    if (last && pieces == 1) {
      out[filled++].bytes = {data, piece.len};
    } else {
      std::byte* const frame = room.data() + filled * frame_bytes;
      if (length + piece.len <= frame_bytes && room.size() >= (filled + 1) * frame_bytes) {
        std::memcpy(frame + length, data, piece.len);
      }
      length += piece.len;
      if (last && length <= frame_bytes && !room.empty()) {
        out[filled++].bytes = {frame, length};
      } else if (last) {
        ++truncated;
      }
    }
    lent_[lent_count_ + i] = piece.addr & kChunkMask;
    if (!last) continue;
    used = i + 1;
    length = 0;
    pieces = 0;
  }
  // The rest of a frame that is still coming stays in the ring. Peeking looks for more only when it
  // knows of none.
  xsk_ring_cons__cancel(&received_, there - used);
  received_.cached_prod = received_.cached_cons;
  if (used > 0) xsk_ring_cons__release(&received_, used);
  lent_count_ += used;
  return filled;
}

void XdpQueue::take_back_sent() {
  std::uint32_t place = 0;
  const std::uint32_t count = xsk_ring_cons__peek(&completed_, completed_.size, &place);
  for (std::uint32_t i = 0; i < count; ++i) {
    free_.push_back(*xsk_ring_cons__comp_addr(&completed_, place + i) & kChunkMask);
  }
  if (count > 0) xsk_ring_cons__release(&completed_, count);
}

std::size_t XdpQueue::send(std::span<const FrameToSend> in) {
  take_back_sent();
  std::size_t taken = 0;
  for (const FrameToSend& frame : in) {
    const std::uint32_t chunks = (frame.length + kChunkBytes - 1) / kChunkBytes;
    std::uint32_t place = 0;
    if (free_.size() < chunks || xsk_ring_prod__reserve(&to_send_, chunks, &place) == 0) break;
    xsk_ring_prod__submit(&to_send_, put(frame, place));
    ++taken;
  }
  return taken;
}

// Copies a frame into chunks and describes it in the ring. Returns how many chunks it took.
std::uint32_t XdpQueue::put(const FrameToSend& frame, std::uint32_t place) {
  std::uint32_t chunks = 0;
  std::uint32_t left = frame.length;
  xdp_desc* piece = nullptr;
  const auto append = [&](const std::byte* data, std::size_t length) {
    while (length > 0) {
      if (piece == nullptr || piece->len == kChunkBytes) {
        piece = xsk_ring_prod__tx_desc(&to_send_, place + chunks++);
        *piece = {.addr = free_.back(), .len = 0, .options = left > kChunkBytes ? kContinued : 0};
        free_.pop_back();
      }
      const std::size_t count = std::min<std::size_t>(length, kChunkBytes - piece->len);
      std::memcpy(memory_.get() + piece->addr + piece->len, data, count);
      piece->len += static_cast<std::uint32_t>(count);
      left -= static_cast<std::uint32_t>(count);
      data += count;
      length -= count;
    }
  };
  append(frame.headers.data(), frame.headers.size());
  for (const Slice& slice : frame.pieces) append(slice.data, slice.length);
  return chunks;
}

int XdpQueue::kick() {
  for (int i = 0; i < kMostKicks; ++i) {
    if (xsk_ring_prod__needs_wakeup(&to_send_) == 0) return 0;
    if (xsk_prod_nb_free(&to_send_, to_send_.size) == to_send_.size) return 0;
    if (::sendto(fd(), nullptr, 0, MSG_DONTWAIT, nullptr, 0) < 0 && errno != EAGAIN) {
      return later(errno) ? EAGAIN : errno;
    }
  }
  return xsk_prod_nb_free(&to_send_, to_send_.size) == to_send_.size ? 0 : EAGAIN;
}

bool XdpQueue::zero_copy() const {
  xdp_options options{};
  socklen_t length = sizeof options;
  ::getsockopt(fd(), SOL_XDP, XDP_OPTIONS, &options, &length);
  return (options.flags & XDP_OPTIONS_ZEROCOPY) != 0;
}

std::uint64_t XdpQueue::overflows() const {
  xdp_statistics statistics{};
  socklen_t length = sizeof statistics;
  if (::getsockopt(fd(), SOL_XDP, XDP_STATISTICS, &statistics, &length) != 0) return 0;
  return statistics.rx_dropped + statistics.rx_ring_full;
}

}  // namespace uet::nic
