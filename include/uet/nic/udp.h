// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The default back end: one kernel UDP socket, and others to send from where packets are to take
// several paths. Needs no privilege and gives the most bandwidth of
// all kernel paths, because runs of equal packets cross the kernel as one (UDP_SEGMENT, UDP_GRO).
// It does not know what is inside a packet.
#pragma once

#include <linux/sock_diag.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "uet/base/result.h"
#include "uet/nic/nic.h"
#include "uet/nic/socket.h"

namespace uet::nic {

// What UdpOptions::bind has bound.
struct UdpBinding {
  FepAddress address;  // that peers have of the two sockets
  // Packets that the port has thrown away so far (NicCounters::shared_port_dropped); may be empty.
  std::function<std::uint64_t()> dropped;
};

// As sendmmsg(2), by the quickest call for what there is to send.
int send_to_kernel(int fd, mmsghdr* messages, unsigned count, int flags);

struct UdpOptions {
  FabricAddress ip;  // an address of this host; the wildcard is refused
  // 0: first_port, or if that is taken the next free one of kUetUdpPorts (way B of the design).
  std::uint16_t port = 0;
  std::uint16_t first_port = kUetUdpPort;
  std::uint32_t receive_buffer_bytes = 4U << 20;  // wished; see NicCaps::receive_credit_bytes
  std::uint32_t send_buffer_bytes = 4U << 20;     // wished
  // Ports to send from, a power of two, 64 at most: one of many in the range of dynamic ports for
  // each packet, by its entropy value (CMS-404). 1: everything leaves from `port`. More are taken
  // only at port 4793, since any other is by what peers know this process; else `message` of
  // open() says so.
  std::uint16_t source_ports = 1;
  // DSCP and ECN (as the TOS octet) of most packets, which costs nothing to say of each of them.
  std::uint8_t usual_tos = 0;
  bool gso = true;  // hand runs of equal packets to the kernel as one send
  bool gro = true;  // take runs of equal packets from the kernel as one receive
  // Send checksum 0 (WIRE 1.1). Not with gso: the kernel refuses both together.
  bool zero_checksum = false;
  // RxPacket::arrived also on a loopback interface, where the kernel takes 0.2 us to note it for
  // each datagram and seldom anybody measures a queue by it.
  bool arrival_times_on_loopback = true;
  // Where the port is shared: binds, in place of `port`, a socket that receives and one that sends.
  // Errors are handed on.
  std::function<Result<UdpBinding>(int receiver, int sender, std::string& message)> bind;
  // Index of an interface whose packets somebody else takes: what arrives over it is thrown away.
  int excluded_interface = 0;  // 0 = none
  // What sends, as sendmmsg(2); tests put an unwilling kernel in its place.
  int (*send_messages)(int, mmsghdr*, unsigned, int) = send_to_kernel;
};

struct NicConfig;

// What `config` says of kernel UDP: address, port, source ports, buffers, TOS, gso, gro and
// arrivals.
UdpOptions udp_options(const NicConfig& config);

// Not thread-safe: the caller's lock covers it. Its descriptor is close-on-exec.
class UdpNic final : public Nic {
 public:
  // Opens and binds the socket. `message`: on failure what failed and what to do about it, on
  // success a warning or nothing. Errors: Invalid (wildcard address, port of a place), NoDevice
  // (not an address of this host), AddressInUse (the port, or all of kUetUdpPorts), Io (anything
  // else).
  static Result<std::unique_ptr<UdpNic>> open(const UdpOptions& options, std::string& message);

  std::size_t rx_burst(std::span<RxPacket> out, Time now) override;
  // Without NicCaps::source_ports everything leaves from the socket's own port.
  std::size_t tx_burst(std::span<const Packet* const> in) override;
  int wait_fd() const override { return fd_.get(); }
  std::uint64_t receive_backlog_bytes() const override { return rx_backlog_bytes_; }
  Time next_deadline() const override { return rx_next_ < rx_count_ ? Time{} : kNever; }
  // receive_credit_bytes is half of what the kernel reports as SO_RCVBUF, which holds about that
  // much payload in packets of 1 KiB and more.
  const NicCaps& caps() const override { return caps_; }
  FepAddress local_address() const override { return local_; }
  NicCounters counters() const override;

 private:
  static constexpr std::size_t kRxBuffers = 16;
  static constexpr std::size_t kRxBufferBytes = 65536;  // a coalesced receive is never longer
  static constexpr Duration kClockOffsetHolds = std::chrono::milliseconds(1);
  static_assert(kTxBurst <= 64, "older kernels refuse trains of more than 64 packets");
  static constexpr std::size_t kMaxTrainBytes = 65507;  // one IPv4 packet less IP and UDP headers
  static constexpr std::size_t kSlicesPerPacket = 3;    // head and two pieces of payload
  static constexpr std::size_t kTxControlBytes =
      CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(std::uint16_t));
  static constexpr std::size_t kRxControlBytes =
      CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(timespec));

  // One datagram, or one train of equal datagrams, on its way to sendmmsg.
  struct TxMessage {
    SocketAddress to;
    alignas(cmsghdr) std::array<std::byte, kTxControlBytes> control;
    const Packet* first;
    std::size_t packets;
    std::size_t segment_bytes;  // length of every packet but the last
    std::size_t total_bytes;
    bool closed;  // a shorter packet has ended it, or it is a packet sent again
  };
  struct RxMessage {
    SocketAddress from;
    alignas(cmsghdr) std::array<std::byte, kRxControlBytes> control;
    iovec buffer;
  };
  // What the control messages of a received buffer say.
  struct RxContext {
    std::size_t segment_bytes = 0;
    FepAddress source;
    std::uint8_t tos = 0;
    Time arrived{};
  };

  using Senders = std::vector<FileDescriptor>;

  UdpNic(FileDescriptor fd, Senders senders, const UdpOptions& options, UdpBinding binding,
         NicCaps caps);
  int sender_of(const Packet& packet) const;

  std::size_t fill_messages(std::span<const Packet* const> in, bool trains);
  void add_to_message(std::size_t message, const Packet& packet);
  void write_control(std::size_t message);
  bool fits_train(const TxMessage& message, const Packet& packet) const;
  std::size_t send_all(std::span<const Packet* const> in);
  Duration share_of(Duration call, std::size_t packets);
  std::size_t account_sent(std::size_t messages);
  void receive(Time now);
  int receive_messages();
  using SocketMemory = std::array<std::uint32_t, SK_MEMINFO_VARS>;
  SocketMemory socket_memory() const;
  std::uint64_t socket_backlog_bytes() const;
  void read_control(std::size_t message);

  // Of another place than fd_, or of each source port; closed after that.
  Senders senders_;
  FileDescriptor fd_;
  int (*send_messages_)(int, mmsghdr*, unsigned, int);
  Duration usual_share_{};  // of one packet in the time of a send call
  FepAddress local_;
  NicCaps caps_;
  NicCounters counters_;
  std::function<std::uint64_t()> port_dropped_;
  std::uint64_t port_dropped_before_ = 0;  // when this was opened
  bool gso_;
  std::uint8_t usual_tos_;

  std::array<mmsghdr, kTxBurst> tx_headers_{};
  std::array<TxMessage, kTxBurst> tx_messages_;
  std::array<iovec, kTxBurst * kSlicesPerPacket> tx_slices_;
  std::size_t tx_slice_count_ = 0;

  // Received messages rx_next_ to rx_count_ still hold packets that nobody has taken, the first of
  // them from rx_offset_ on. Buffers are filled again only when all have been taken, at the
  // earliest in the burst after that.
  std::unique_ptr<std::byte[]> rx_storage_;
  std::array<mmsghdr, kRxBuffers> rx_headers_{};
  std::array<RxMessage, kRxBuffers> rx_messages_;
  std::size_t rx_count_ = 0;
  bool rx_idle_ = true;                 // the latest call brought nothing
  std::uint64_t rx_backlog_bytes_ = 0;  // in the socket, when it was last seen to be behind
  std::size_t rx_next_ = 0;
  std::size_t rx_offset_ = 0;
  Duration rx_clock_offset_{};  // arrival_clock_offset(), read again when the time has come
  Time rx_clock_read_again_{};
  RxContext rx_context_;
};

}  // namespace uet::nic
