// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Frames through the kernel's packet sockets (AF_PACKET) with rings of version TPACKET_V2: half the
// latency of UDP, over any Ethernet interface, with CAP_NET_RAW alone. The kernel goes on seeing
// every packet. TPACKET_V3 is no choice: it hands received frames over in blocks, half a
// millisecond late.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "nic/framed/frame_device.h"
#include "nic/socket.h"

struct tpacket2_hdr;

namespace uet::nic {

class PacketDevice final : public FrameDevice {
 public:
  // Errors: NotSupported (no right, or a kernel that refuses), NoDevice, NoMemory; Invalid (an
  // option: there are none).
  static Result<std::unique_ptr<FrameDevice>> open(const FrameDeviceRequest& request,
                                                   std::string& message);
  // The same with another filter: it makes a packet socket take what is for request.self only, or
  // returns false with errno.
  using SetFilter = std::function<bool(int socket, const FrameDeviceRequest& request)>;
  static Result<std::unique_ptr<FrameDevice>> open_filtered(const FrameDeviceRequest& request,
                                                            const SetFilter& set_filter,
                                                            std::string& message);

  std::size_t receive(std::span<ArrivedFrame> out) override;
  std::size_t send(std::span<const FrameToSend> in) override;
  int wait_fd() const override { return rx_.socket.get(); }
  const FrameDeviceTraits& traits() const override { return traits_; }
  NicCounters counters() const override;

 private:
  // One direction: a socket and the frames that it shares with the kernel, in order of their use.
  struct Ring {
    Ring() = default;
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;
    ~Ring();
    bool open(int option, std::uint32_t wished_frame_bytes, std::uint32_t wished_bytes);
    tpacket2_hdr* frame(std::size_t index) const;
    std::size_t after(std::size_t index) const { return index + 1 == frames ? 0 : index + 1; }

    FileDescriptor socket;
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    std::size_t frame_bytes = 0;
    std::size_t frames_per_block = 0;
    std::size_t frames = 0;
  };
  PacketDevice() = default;
  void give_back();
  void tell_kernel();

  Ring rx_;
  Ring tx_;
  FrameDeviceTraits traits_;
  std::size_t rx_next_ = 0;    // the frame that arrives next
  std::size_t rx_handed_ = 0;  // the first of those handed out by the latest receive
  std::size_t rx_lent_ = 0;    // how many those are
  std::size_t tx_next_ = 0;
  std::size_t tx_last_ = 0;  // the latest one that was filled
  bool tx_pending_ = false;  // the kernel has not been asked to send all frames
  Duration clock_offset_{};  // arrival_clock_offset()
  mutable NicCounters counters_;
};

}  // namespace uet::nic
