// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two packet sockets with a ring each. A frame of a ring belongs to the kernel or to us, which its
// status says.
#include "nic/packet_device.h"

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "nic/clock.h"
#include "nic/framed/socket_filter.h"

namespace uet::nic {
namespace {

constexpr std::uint32_t kBlockBytes = 256 * 1024;
// In front of what the kernel writes into a frame, and where it expects what it shall send.
constexpr std::uint32_t kReceiveHeadroom = TPACKET_ALIGN(TPACKET2_HDRLEN + 16);
constexpr std::uint32_t kSendHeadroom = TPACKET_ALIGN(sizeof(tpacket2_hdr));

bool set_option(const FileDescriptor& fd, int level, int name, int value) {
  return ::setsockopt(fd.get(), level, name, &value, sizeof value) == 0;
}

FileDescriptor packet_socket() {
  // Protocol 0: nothing arrives before the filter is there and the socket is bound.
  return FileDescriptor(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool bind_to(const FileDescriptor& fd, int interface_index, std::uint16_t protocol) {
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(protocol);
  address.sll_ifindex = interface_index;
  return ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

std::uint32_t status_of(tpacket2_hdr* frame) {
  return std::atomic_ref(frame->tp_status).load(std::memory_order_acquire);
}

void set_status(tpacket2_hdr* frame, std::uint32_t status) {
  std::atomic_ref(frame->tp_status).store(status, std::memory_order_release);
}

Error explain(const char* what, const Interface& interface, std::string& message) {
  const int error = errno;
  message = std::string("FI_UET_NIC=packet on ") + interface.name + ": " + what + ": " +
            error_text(error);
  if (error == EPERM || error == EACCES) {
    message +=
        "; packet sockets need CAP_NET_RAW: run as root, give the program the right with "
        "'setcap cap_net_raw+ep', or use FI_UET_NIC=udp";
    return Error::NotSupported;
  }
  if (error == ENOMEM) {
    message += "; a smaller FI_UET_SOCKET_BUFFER_BYTES makes smaller rings";
    return Error::NoMemory;
  }
  if (error == EMFILE || error == ENFILE) return error_of(error);
  message += "; see 'ip link show " + interface.name + "', or use FI_UET_NIC=udp";
  return error == ENODEV || error == ENETDOWN ? Error::NoDevice : Error::NotSupported;
}

}  // namespace

PacketDevice::Ring::~Ring() {
  if (memory != nullptr) ::munmap(memory, bytes);
}

tpacket2_hdr* PacketDevice::Ring::frame(std::size_t index) const {
  const std::size_t block = index / frames_per_block;
  return reinterpret_cast<tpacket2_hdr*>(memory + block * kBlockBytes +
                                         index % frames_per_block * frame_bytes);
}

// `option`: PACKET_RX_RING or PACKET_TX_RING. False, with errno, if the kernel refuses.
bool PacketDevice::Ring::open(int option, std::uint32_t wished_frame_bytes,
                              std::uint32_t wished_bytes) {
  frame_bytes = wished_frame_bytes;
  frames_per_block = kBlockBytes / frame_bytes;
  const std::uint32_t blocks = std::max(1U, wished_bytes / kBlockBytes);
  frames = frames_per_block * blocks;
  const tpacket_req request{.tp_block_size = kBlockBytes,
                            .tp_block_nr = blocks,
                            .tp_frame_size = wished_frame_bytes,
                            .tp_frame_nr = static_cast<unsigned>(frames)};
  if (!set_option(socket, SOL_PACKET, PACKET_VERSION, TPACKET_V2)) return false;
  if (::setsockopt(socket.get(), SOL_PACKET, option, &request, sizeof request) != 0) return false;
  bytes = std::size_t{blocks} * kBlockBytes;
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, socket.get(), 0);
  if (mapped == MAP_FAILED) return false;
  memory = static_cast<std::byte*>(mapped);
  return true;
}

Result<std::unique_ptr<FrameDevice>> PacketDevice::open(const FrameDeviceRequest& request,
                                                        std::string& message) {
  const SetFilter set_filter = [](int socket, const FrameDeviceRequest& what) {
    return take_only_frames_to(socket, what.self, what.format);
  };
  return open_filtered(request, set_filter, message);
}

Result<std::unique_ptr<FrameDevice>> PacketDevice::open_filtered(const FrameDeviceRequest& request,
                                                                 const SetFilter& set_filter,
                                                                 std::string& message) {
  const Interface& interface = request.interface;
  if (!request.options.empty()) {
    message = "FI_UET_NIC=packet: '" + std::string(request.options) +
              "' is no option of it; allowed: native (processes share a port with "
              "FI_UET_NIC=shared:packet)";
    return Error::Invalid;
  }
  std::unique_ptr<PacketDevice> device(new PacketDevice);
  Ring& rx = device->rx_;
  Ring& tx = device->tx_;
  rx.socket = packet_socket();
  tx.socket = packet_socket();
  if (!rx.socket.valid() || !tx.socket.valid()) {
    return explain("cannot open a packet socket", interface, message);
  }
  const std::uint32_t frame = kEthernetBytes + interface.mtu;
  if (kReceiveHeadroom + frame > kBlockBytes) {
    message = "FI_UET_NIC=packet: the MTU of " + interface.name + " is too large";
    return Error::NotSupported;
  }
  // Frames that cannot be sent are skipped, not stopped at.
  if (!set_option(tx.socket, SOL_PACKET, PACKET_LOSS, 1)) {
    return explain("cannot set PACKET_LOSS", interface, message);
  }
  if (!rx.open(PACKET_RX_RING, TPACKET_ALIGN(kReceiveHeadroom + frame),
               request.receive_buffer_bytes) ||
      !tx.open(PACKET_TX_RING, TPACKET_ALIGN(kSendHeadroom + frame), request.send_buffer_bytes)) {
    return explain("cannot make the rings", interface, message);
  }
  // Speed only: through the queue discipline it works, too.
  set_option(tx.socket, SOL_PACKET, PACKET_QDISC_BYPASS, 1);
  const int wished = static_cast<int>(std::min<std::uint32_t>(request.send_buffer_bytes, 1U << 30));
  if (!set_option(tx.socket, SOL_SOCKET, SO_SNDBUFFORCE, wished)) {
    set_option(tx.socket, SOL_SOCKET, SO_SNDBUF, wished);
  }
  if (!set_filter(rx.socket.get(), request) ||
      !set_option(rx.socket, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)) {
    return explain("cannot set the filter", interface, message);
  }
  const std::uint16_t protocol = request.self.ip.is_ipv6 ? ETH_P_IPV6 : ETH_P_IP;
  if (!bind_to(tx.socket, interface.index, 0) || !bind_to(rx.socket, interface.index, protocol)) {
    return explain("cannot bind to the interface", interface, message);
  }
  device->traits_.max_frame_bytes = frame;
  device->traits_.receive_credit_bytes = std::uint64_t{rx.frames} * interface.mtu;
  return std::unique_ptr<FrameDevice>(std::move(device));
}

void PacketDevice::give_back() {
  for (; rx_lent_ > 0; --rx_lent_) {
    set_status(rx_.frame(rx_handed_), TP_STATUS_KERNEL);
    rx_handed_ = rx_.after(rx_handed_);
  }
}

std::size_t PacketDevice::receive(std::span<ArrivedFrame> out) {
  give_back();
  if (tx_pending_) tell_kernel();
  std::size_t filled = 0;
  for (; filled < out.size(); rx_next_ = rx_.after(rx_next_)) {
    tpacket2_hdr* const frame = rx_.frame(rx_next_);
    const std::uint32_t status = status_of(frame);
    if ((status & TP_STATUS_USER) == 0) break;
    if (filled == 0 && rx_lent_ == 0) {
      clock_offset_ = arrival_clock_offset();
    }
    ++rx_lent_;
    if (frame->tp_snaplen < frame->tp_len) {
      ++counters_.receive_truncated;
      continue;
    }
    ArrivedFrame& arrived = out[filled++];
    const auto* const begin = reinterpret_cast<const std::byte*>(frame) + frame->tp_mac;
    arrived.bytes = {begin, frame->tp_snaplen};
    arrived.arrived =
        Time(std::chrono::seconds(frame->tp_sec) + Duration(frame->tp_nsec) - clock_offset_);
  }
  return filled;
}

std::size_t PacketDevice::send(std::span<const FrameToSend> in) {
  std::size_t taken = 0;
  for (const FrameToSend& frame : in) {
    tpacket2_hdr* const place = tx_.frame(tx_next_);
    if (status_of(place) != TP_STATUS_AVAILABLE) break;
    std::byte* to = reinterpret_cast<std::byte*>(place) + kSendHeadroom;
    to = std::copy(frame.headers.begin(), frame.headers.end(), to);
    for (const Slice& piece : frame.pieces) to = std::copy_n(piece.data, piece.length, to);
    place->tp_len = frame.length;
    set_status(place, TP_STATUS_SEND_REQUEST);
    tx_last_ = tx_next_;
    tx_next_ = tx_.after(tx_next_);
    tx_pending_ = true;
    ++taken;
  }
  if (tx_pending_) tell_kernel();
  return taken;
}

// The system call sends; if it stops early for lack of memory, it is repeated later.
void PacketDevice::tell_kernel() {
  const ssize_t result = ::send(tx_.socket.get(), nullptr, 0, MSG_DONTWAIT);
  if (result < 0 && errno != EAGAIN && errno != ENOBUFS && errno != EINTR) {
    ++counters_.kernel_errors;
  }
  tx_pending_ = status_of(tx_.frame(tx_last_)) == TP_STATUS_SEND_REQUEST;
}

NicCounters PacketDevice::counters() const {
  tpacket_stats statistics{};
  socklen_t length = sizeof statistics;
  // Reading sets the kernel's own count to 0.
  if (::getsockopt(rx_.socket.get(), SOL_PACKET, PACKET_STATISTICS, &statistics, &length) == 0) {
    counters_.receive_overflows += statistics.tp_drops;
  }
  return counters_;
}

}  // namespace uet::nic
