// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Frames through AF_XDP sockets: half the latency of UDP. Each free receive queue of the interface,
// or as many as the options say, gets a socket with memory of its own; the first one also sends.
// The kernel sees only packets that are not for our endpoint, or arrive in other queues.
#pragma once

#include <xdp/xsk.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nic/framed/frame_device.h"
#include "nic/guard_map.h"
#include "nic/registry.h"
#include "nic/socket.h"
#include "nic/xdp_program.h"

namespace uet::nic {

// The options behind "xdp:", separated by commas.
struct XdpOptions {
  bool generic = false;                // "generic": XDP behind the driver
  bool copy = false;                   // "copy": no zero-copy, although the driver could
  bool zero_copy = false;              // "zerocopy": fail where the driver cannot
  std::optional<std::uint32_t> queue;  // "queue=N": this one, or from this one on
  std::uint32_t queues = 0;            // "queues=N": so many; 0 = all that are free
};

// Error::Invalid, with a message, if `text` holds anything else.
Result<XdpOptions> parse_xdp_options(std::string_view text, std::string& message);

// One AF_XDP socket: the memory of its packets, in chunks of a page, and its rings. Owns neither
// program nor maps.
class XdpQueue {
 public:
  struct Request {
    const Interface& interface;
    std::uint32_t queue;
    std::uint32_t receive_chunks;  // a power of two
    std::uint32_t send_chunks;     // a power of two; 0 = receives only
    std::uint16_t bind_flags;
    // A queue that is taken is tried again until then.
    std::chrono::steady_clock::time_point until;
  };
  // Returns errno in `error` when it fails; EBUSY: the queue is taken still.
  static std::unique_ptr<XdpQueue> open(const Request& request, int& error);
  XdpQueue(const XdpQueue&) = delete;
  XdpQueue& operator=(const XdpQueue&) = delete;
  ~XdpQueue();

  // Gives the kernel the chunks again whose frames the latest receive handed out.
  void give_back();
  // Fills `out` from the front with frames that have arrived. Frames of several chunks are joined
  // in `room`, which has `frame_bytes` for each element of `out`; longer frames are dropped
  // and counted in `truncated`.
  std::size_t receive(std::span<ArrivedFrame> out, std::span<std::byte> room,
                      std::size_t frame_bytes, std::uint64_t& truncated);
  // Takes a prefix. To be followed by kick().
  std::size_t send(std::span<const FrameToSend> in);
  // Makes the kernel send frames that it has not sent yet. Returns 0, EAGAIN (frames are left for
  // later), or the errno of a call that failed.
  int kick();

  int fd() const { return xsk_socket__fd(socket_.get()); }
  bool zero_copy() const;
  std::uint64_t overflows() const;  // frames lost for lack of chunks

 private:
  static constexpr std::size_t kMostLent = 4 * kRxBurst;  // chunks handed out by one receive

  struct Unmap {
    std::size_t bytes;
    void operator()(std::byte* memory) const;
  };
  struct UmemDelete {
    void operator()(xsk_umem* umem) const { xsk_umem__delete(umem); }
  };
  struct SocketDelete {
    void operator()(xsk_socket* socket) const { xsk_socket__delete(socket); }
  };

  XdpQueue() = default;
  bool make_memory(const Request& request);
  int make_socket(const Request& request);
  void take_back_sent();
  std::uint32_t put(const FrameToSend& frame, std::uint32_t place);

  xsk_ring_prod fill_{};
  xsk_ring_cons completed_{};
  xsk_ring_cons received_{};
  xsk_ring_prod to_send_{};
  std::unique_ptr<std::byte, Unmap> memory_;
  std::unique_ptr<xsk_umem, UmemDelete> umem_;
  std::unique_ptr<xsk_socket, SocketDelete> socket_;
  std::vector<std::uint64_t> free_;  // chunks to send from
  std::array<std::uint64_t, kMostLent> lent_{};
  std::size_t lent_count_ = 0;
};

class XdpDevice final : public FrameDevice {
 public:
  // If a living process has the queue, open() fails at once; if the kernel has not freed it yet,
  // open() waits. Errors: Invalid (options), NotSupported (no right, a kernel or driver that
  // cannot), NoMemory (limit of locked memory), AddressInUse (no queue is free, or other software
  // has an XDP program there).
  static Result<std::unique_ptr<FrameDevice>> open(const FrameDeviceRequest& request,
                                                   std::string& message);
  // Implements Module::ip_mtu: a kernel before 6.6 carries no more than fits a chunk.
  static Result<std::uint32_t> ip_mtu(const NicConfig& config, const Interface& interface,
                                      std::string& message);

  std::size_t receive(std::span<ArrivedFrame> out) override;
  std::size_t send(std::span<const FrameToSend> in) override;
  int wait_fd() const override;
  bool prepare_wait() override;
  const FrameDeviceTraits& traits() const override { return traits_; }
  PdcGuard* guard() override { return guard_.get(); }
  NicCounters counters() const override;

 private:
  explicit XdpDevice(XdpProgram program) : program_(std::move(program)) {}
  Result<bool> open_queues(const FrameDeviceRequest& request, const XdpOptions& options,
                           std::string& message);
  int open_queue(const XdpQueue::Request& request, const FepAddress& self, std::uint8_t protocol);
  void describe(const Interface& interface, const std::vector<bool>& ours);
  void kick();

  XdpProgram program_;
  std::unique_ptr<GuardMap> guard_;                // of all queues
  std::vector<std::unique_ptr<XdpQueue>> queues_;  // the first one sends
  FileDescriptor epoll_;                           // of several queues
  FrameDeviceTraits traits_;
  std::vector<std::byte> room_;  // for frames of several chunks: one for each of a burst
  std::uint32_t frame_bytes_ = 0;
  std::size_t first_ = 0;      // whose turn it is to be looked at first
  bool send_pending_ = false;  // the kernel has not sent everything
  NicCounters counters_;
};

}  // namespace uet::nic
