// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A Nic over a device that moves whole frames: puts Ethernet, IP and UDP (or the native form) in
// front of packets, parses what arrives, and finds next hops. Beside the device it keeps a kernel
// UDP socket at the same address and port, which
//   - reserves the port, so that processes with different back ends cannot have the same one,
//   - keeps the kernel from answering packets that it sees too with "port unreachable",
//   - carries packets that the device cannot: to peers on this host or behind another interface,
//   - carries the first packets to a neighbour, which makes the kernel find its MAC address.
// The socket's filter drops packets that arrive over the device's interface, unless the device
// takes its frames away from the kernel.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "nic/framed/frame_device.h"
#include "nic/framed/next_hops.h"
#include "nic/registry.h"
#include "nic/socket.h"
#include "nic/udp.h"

namespace uet::nic {

// Is the word "native" (the form without UDP) in this list of NIC options? The others are added to
// `rest`, as they are.
bool take_native(std::string_view options, std::string& rest);

// Not thread-safe: the caller's lock covers it. Its descriptors are close-on-exec.
class FramedNic final : public Nic {
 public:
  // Which of the interface's packets reach the kernel too.
  enum class KernelSees : std::uint8_t {
    Copies,   // of all packets that the device takes: they are filtered out
    TheRest,  // packets for this FEP that the device has not taken: the socket receives them
  };

  // Opens the kernel's socket beside the device: UdpNic::open, unless processes share the port.
  using OpenKernelNic =
      std::function<Result<std::unique_ptr<UdpNic>>(const UdpOptions&, std::string& message)>;

  // The interface is the one that holds config.ip. Of config.options this takes "native" (the form
  // without UDP) and leaves the rest to the device. The native form brings its own CRC trailer if
  // config.crc asks for one, since it covers other headers (WIRE 1.4). Errors: NoDevice (loopback,
  // or no interface holds the address), Invalid (options), and those of UdpNic::open,
  // NextHops::open and the device; `message` as for Module::open.
  static Result<std::unique_ptr<Nic>> open(const NicConfig& config, const OpenFrameDevice& open,
                                           std::string& message,
                                           KernelSees kernel_sees = KernelSees::Copies,
                                           const OpenKernelNic& open_kernel = UdpNic::open);

  // Implements Module::ip_mtu for devices that carry all packets that the interface carries: the
  // MTU, or an error if it is not an Ethernet interface.
  static Result<std::uint32_t> interface_mtu(const NicConfig& config, const Interface& interface,
                                             std::string& message);

  std::size_t rx_burst(std::span<RxPacket> out, Time now) override;
  std::size_t tx_burst(std::span<const Packet* const> in) override;
  // Under transport security (config.secure) the native form is told by port 0, here and in
  // RxPacket::source, because each form has an AAD of its own (TSS-4, TSS-6).
  std::uint16_t source_port_for(const Packet& packet) override;
  std::uint64_t register_memory(std::span<const std::byte> memory) override {
    return device_->register_memory(memory);
  }
  void forget_memory(std::uint64_t id) override { device_->forget_memory(id); }
  // Not with a CRC, which the CPU computes.
  bool reads_device_memory() const override {
    return device_->traits().reads_device_memory && !format_.crc;
  }
  std::uint64_t register_device_memory(const DmabufRange& range) override {
    return reads_device_memory() ? device_->register_device_memory(range) : 0;
  }
  PdcGuard* guard() override { return device_->guard(); }
  int wait_fd() const override { return epoll_.get(); }
  bool prepare_wait() override;
  Time next_deadline() const override { return kernel_->next_deadline(); }
  const NicCaps& caps() const override { return caps_; }
  FepAddress local_address() const override { return local_; }
  NicCounters counters() const override;

 private:
  struct Parts {
    std::unique_ptr<UdpNic> kernel;
    std::unique_ptr<NextHops> hops;
    std::unique_ptr<FrameDevice> device;
    FileDescriptor protocol_holder;  // native form: a raw socket that takes nothing
    FileDescriptor epoll;
    FileDescriptor timer;
  };
  // A device without a descriptor is polled this often while all threads sleep.
  static constexpr Duration kNap = std::chrono::microseconds(100);
  static constexpr Duration kRefreshInterval = std::chrono::milliseconds(1);
  // The kernel's socket is looked at in every burst for this long after it had something, ...
  static constexpr Duration kKernelActive = std::chrono::milliseconds(1);
  // ... and otherwise this often.
  static constexpr Duration kKernelInterval = std::chrono::microseconds(50);
  // How long packets wait for a next hop in the native form, and how long they are then dropped.
  static constexpr Duration kResolveWait = std::chrono::milliseconds(2);
  static constexpr Duration kResolvePause = std::chrono::milliseconds(500);

  FramedNic(Parts parts, const NicConfig& config, const Interface& interface,
            const wire::FrameFormat& format);

  std::size_t send_frames(std::span<const Packet* const> in, std::size_t& offered);
  void build_frame(std::size_t place, const Packet& packet, const wire::MacAddress& mac);
  std::size_t send_through_kernel(std::span<const Packet* const> in);
  std::size_t send_copy_through_kernel(const Packet& packet);
  void let_kernel_ask(const FepAddress& to) const;
  bool hold_until_resolved(const Packet& packet);
  std::size_t receive_frames(std::span<RxPacket> out);
  bool is_host(const FabricAddress& source) const;
  bool read_frame(const ArrivedFrame& frame, RxPacket& out);
  void nap();

  std::unique_ptr<UdpNic> kernel_;
  std::unique_ptr<NextHops> hops_;
  std::unique_ptr<FrameDevice> device_;
  FileDescriptor protocol_holder_;
  FileDescriptor epoll_;
  FileDescriptor timer_;  // only where the device has no descriptor

  FepAddress local_;
  NicCaps caps_;
  NicCounters counters_;
  wire::FrameFormat format_;
  bool tells_native_;  // the native form, and transport security above
  wire::TrimMarks marks_;
  wire::MacAddress mac_;
  std::uint32_t host_bits_;            // of our IPv4 subnet, 0: it has no broadcast address
  std::optional<std::uint16_t> vlan_;  // as in FrameDeviceTraits
  std::uint32_t max_packet_bytes_;     // above IP and UDP

  Time next_refresh_{};
  Time next_kernel_look_{};
  Time kernel_active_until_{};
  Time resolve_until_{};  // native form: since when a next hop is looked for

  std::array<ArrivedFrame, kRxBurst> arrived_{};
  std::array<FrameToSend, kTxBurst> frames_{};
  std::array<std::array<std::byte, wire::kMaxFrameHeaderBytes>, kTxBurst> headers_;
  std::array<std::array<std::byte, wire::kCrcTrailerBytes>, kTxBurst> trailers_;
};

}  // namespace uet::nic
