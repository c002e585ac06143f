// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A socket of AF_XDP on the first receive queue, and its four rings. The program that gives it its
// packets is uet's.
#include <linux/if_xdp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <xdp/xsk.h>

#include <cerrno>
#include <cstdio>

#include "nic/guard_map.h"
#include "nic/socket.h"
#include "nic/xdp_program.h"
#include "raw_frame.h"

namespace uet::bench {
namespace {

constexpr std::uint32_t kChunkBytes = 4096;
constexpr std::uint32_t kReceiveChunks = 2048;
constexpr std::uint32_t kChunksOfFrame = 4;  // to send; one after the other
constexpr std::uint32_t kFrames = 256;
constexpr std::uint32_t kSendChunks = kFrames * kChunksOfFrame;
constexpr std::size_t kBytes = std::size_t{kReceiveChunks + kSendChunks} * kChunkBytes;
constexpr std::uint32_t kMostInOneChunk = 3800;  // of which the kernel takes some
constexpr std::uint8_t kUdpProtocol = 17;
// Of Linux 6.6, younger than the headers of Debian 12: XDP_USE_SG and XDP_PKT_CONTD.
constexpr std::uint16_t kUseSeveralChunks = 1U << 4;
constexpr std::uint32_t kContinued = 1U << 0;

class RawXdp final : public RawWire {
 public:
  RawXdp(const RawFrame& frame, nic::XdpProgram program)
      : frame_(frame), program_(std::move(program)) {}
  ~RawXdp() override {
    if (socket_ != nullptr) xsk_socket__delete(socket_);
    if (umem_ != nullptr) xsk_umem__delete(umem_);
    if (memory_ != nullptr) ::munmap(memory_, kBytes);
  }

  bool open(const RawChoice& choice) {
    void* const mapped = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (mapped == MAP_FAILED) return false;
    memory_ = static_cast<std::byte*>(mapped);
    xsk_umem_config memory{};
    memory.fill_size = kReceiveChunks;
    memory.comp_size = kSendChunks;
    memory.frame_size = kChunkBytes;
    xsk_socket_config config{};
    config.rx_size = kReceiveChunks;
    config.tx_size = kSendChunks;
    config.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD;
    config.bind_flags = XDP_USE_NEED_WAKEUP;
    if (program_.generic()) config.bind_flags |= XDP_COPY;
    if (frame_.bytes(true) > kMostInOneChunk) config.bind_flags |= kUseSeveralChunks;
    int error = xsk_umem__create(&umem_, memory_, kBytes, &fill_, &completed_, &memory);
    if (error == 0) {
      error = xsk_socket__create(&socket_, choice.interface.c_str(), 0, umem_, &received_,
                                 &to_send_, &config);
    }
    if (error != 0) {
      errno = -error;
      return false;
    }
    std::uint32_t place = 0;
    xsk_ring_prod__reserve(&fill_, kReceiveChunks, &place);
    for (std::uint32_t i = 0; i < kReceiveChunks; ++i) {
      *xsk_ring_prod__fill_addr(&fill_, place + i) = std::uint64_t{i} * kChunkBytes;
    }
    xsk_ring_prod__submit(&fill_, kReceiveChunks);
    guard_ = nic::GuardMap::make();
    if (guard_ == nullptr) return false;
    return program_.give_queue(0, {.socket = xsk_socket__fd(socket_),
                                   .guard = guard_->fd(),
                                   .self = {choice.self, kRawPort},
                                   .protocol = kUdpProtocol});
  }

  std::size_t send(std::span<const RawMessage> messages, bool with_payload) override {
    std::uint32_t place = 0;
    const std::uint32_t done = xsk_ring_cons__peek(&completed_, kSendChunks, &place);
    if (done > 0) xsk_ring_cons__release(&completed_, done);
    in_flight_ -= done;
    const auto bytes = static_cast<std::uint32_t>(frame_.bytes(with_payload));
    const std::uint32_t chunks = (bytes + kChunkBytes - 1) / kChunkBytes;
    std::size_t sent = 0;
    for (; sent < messages.size(); ++sent) {
      // All frames in flight have places of their own, since they leave in order.
      if (in_flight_ + chunks > kFrames) break;
      if (xsk_ring_prod__reserve(&to_send_, chunks, &place) == 0) break;
      const std::uint64_t at =
          (std::uint64_t{kReceiveChunks} + next_ * kChunksOfFrame) * kChunkBytes;
      frame_.write(memory_ + at, messages[sent], with_payload);
      for (std::uint32_t i = 0; i < chunks; ++i) {
        const bool last = i + 1 == chunks;
        *xsk_ring_prod__tx_desc(&to_send_, place + i) = {
            .addr = at + std::uint64_t{i} * kChunkBytes,
            .len = last ? bytes - i * kChunkBytes : kChunkBytes,
            .options = last ? 0 : kContinued};
      }
      xsk_ring_prod__submit(&to_send_, chunks);
      in_flight_ += chunks;
      next_ = (next_ + 1) % kFrames;
    }
    // One call sends a part of them.
    while (xsk_ring_prod__needs_wakeup(&to_send_) != 0 &&
           xsk_prod_nb_free(&to_send_, kSendChunks) < kSendChunks) {
      if (::sendto(xsk_socket__fd(socket_), nullptr, 0, MSG_DONTWAIT, nullptr, 0) < 0 &&
          errno != EAGAIN) {
        break;
      }
    }
    return sent;
  }

  std::size_t receive(std::span<RawMessage> out) override {
    std::uint32_t place = 0;
    std::uint32_t back = 0;
    const auto most = static_cast<std::uint32_t>(out.size());
    const std::uint32_t there = xsk_ring_cons__peek(&received_, most, &place);
    if (there == 0 || xsk_ring_prod__reserve(&fill_, there, &back) != there) return 0;
    std::size_t filled = 0;
    for (std::uint32_t i = 0; i < there; ++i) {
      const xdp_desc& piece = *xsk_ring_cons__rx_desc(&received_, place + i);
      if (first_ && frame_.read({memory_ + piece.addr, piece.len}, out[filled])) ++filled;
      first_ = (piece.options & kContinued) == 0;
      *xsk_ring_prod__fill_addr(&fill_, back + i) = piece.addr & ~std::uint64_t{kChunkBytes - 1};
    }
    xsk_ring_cons__release(&received_, there);
    xsk_ring_prod__submit(&fill_, there);
    if (xsk_ring_prod__needs_wakeup(&fill_) != 0) {
      ::recvfrom(xsk_socket__fd(socket_), nullptr, 0, MSG_DONTWAIT, nullptr, nullptr);
    }
    return filled;
  }

 private:
  RawFrame frame_;
  nic::XdpProgram program_;
  std::unique_ptr<nic::GuardMap> guard_;  // not started: every packet passes
  std::byte* memory_ = nullptr;
  xsk_umem* umem_ = nullptr;
  xsk_socket* socket_ = nullptr;
  xsk_ring_prod fill_{};
  xsk_ring_cons completed_{};
  xsk_ring_cons received_{};
  xsk_ring_prod to_send_{};
  std::uint32_t in_flight_ = 0;  // chunks
  std::uint32_t next_ = 0;       // frame to send
  bool first_ = true;            // what arrives next begins a frame
};

}  // namespace

std::unique_ptr<RawWire> open_raw_xdp(const RawChoice& choice) {
  const auto frame = RawFrame::open(choice);
  if (!frame) return nullptr;
  std::string message;
  const bool generic = choice.nic.find("generic") != std::string::npos;
  auto program = nic::XdpProgram::open(frame->interface(), generic, message);
  if (program) {
    auto wire = std::make_unique<RawXdp>(*frame, std::move(program).value());
    if (wire->open(choice)) return wire;
    message = "AF_XDP: " + nic::error_text(errno);
  }
  std::fprintf(stderr, "%s\n", message.c_str());
  return nullptr;
}

}  // namespace uet::bench
