// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The default back end: one kernel UDP socket, and further sockets to send from if packets use
// several network paths. Needs no privilege and gives the most bandwidth of
// all kernel paths, because runs of equal packets cross the kernel as one (UDP_SEGMENT, UDP_GRO).
// It does not read the contents of packets.
#pragma once

#include <linux/sock_diag.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nic/defaults.h"
#include "nic/nic_guard.h"
#include "nic/port_sharing.h"
#include "nic/socket.h"
#include "nic/udp_receive_buffers.h"
#include "nic/udp_refusals.h"
#include "nic/udp_send_batch.h"
#include "uet/base/result.h"
#include "uet/nic/nic.h"

namespace uet::nic {

// The result of UdpOptions::bind.
struct UdpBinding {
  FepAddress address;  // by which peers know the two sockets
  // Packets that the port has thrown away so far (NicCounters::shared_port_dropped); may be empty.
  std::function<std::uint64_t()> dropped;
  // Drops packets of strangers before they reach the socket; may be none.
  std::shared_ptr<NicGuard> guard = nullptr;
};

// As sendmmsg(2), by the quickest system call for the messages.
int send_to_kernel(int fd, mmsghdr* messages, unsigned count, int flags);

struct UdpOptions {
  FabricAddress ip;  // an address of this host; the wildcard is refused
  // 0: first_port, or if that is taken the next free one of kUetUdpPorts (port per process).
  std::uint16_t port = 0;
  std::uint16_t first_port = kUetUdpPort;
  std::uint32_t receive_buffer_bytes =
      kSocketBufferBytes;  // wished; see NicCaps::receive_credit_bytes
  std::uint32_t send_buffer_bytes = kSocketBufferBytes;  // wished
  // Number of ports to send from, a power of two, 64 at most: dynamic ports, of which the entropy
  // value of each packet chooses one (CMS-404). 1: every packet leaves from `port`. More than one
  // only at port 4793, since peers know the process by any other port; else `message` of
  // open() says so.
  std::uint16_t source_ports = 1;
  // DSCP and ECN (as the TOS octet) of most packets; these need no control message of their own.
  std::uint8_t usual_tos = 0;
  bool gso = true;  // hand runs of equal packets to the kernel as one send
  bool gro = true;  // take runs of equal packets from the kernel as one receive
  // Send checksum 0 (WIRE 1.1). Not with gso: the kernel refuses both together.
  bool zero_checksum = false;
  // RxPacket::arrived also on a loopback interface, where the kernel needs 0.2 us to note it for
  // each datagram and it seldom measures a queue.
  bool arrival_times_on_loopback = true;
  // If the port is shared: binds, instead of to `port`, a socket that receives and one that sends.
  // Errors are handed on.
  std::function<Result<UdpBinding>(int receiver, int sender, std::string& message)> bind;
  // Index of an interface whose packets a frame device takes: the socket drops its copies of them.
  int excluded_interface = 0;  // 0 = none
  // The function that sends, as sendmmsg(2); tests simulate a kernel that refuses.
  int (*send_messages)(int, mmsghdr*, unsigned, int) = send_to_kernel;
};

struct NicConfig;

// The options for kernel UDP in `config`: address, port, source ports, buffers, TOS, gso, gro and
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
  std::uint64_t receive_backlog_bytes() const override { return backlog_bytes_; }
  Time next_deadline() const override {
    return buffers_.empty() && lent_.empty() && borrowed_.empty() ? kNever : Time{};
  }
  // receive_credit_bytes is half of what the kernel reports as SO_RCVBUF, which holds about that
  // much payload in packets of 1 KiB and more.
  const NicCaps& caps() const override { return caps_; }
  FepAddress local_address() const override { return local_; }
  std::uint16_t source_port_for(const Packet& packet) override {
    return packet.to.via != 0 ? port_of(packet.to.via) : Nic::source_port_for(packet);
  }
  std::uint16_t port_of(std::uint8_t via) const override {
    return via != 0 ? borrowed_.port(via) : local_.port;
  }
  PdcGuard* guard() override { return guard_.get(); }
  NicCounters counters() const override;
  void watch_refusals() override;
  void thin_out_unprotected(bool on) override;
  std::optional<FepAddress> take_refusal() override { return refusals_.take(); }
  LentSocket lend_port(const PdcIdShare& share) override;
  bool borrow_port(const LentSocket& lent, std::uint8_t via, const PdcIdShare& share) override;

 private:
  using Senders = std::vector<FileDescriptor>;

  UdpNic(FileDescriptor fd, Senders senders, const UdpOptions& options, UdpBinding binding,
         NicCaps caps);
  int sender_of(const Packet& packet) const;

  std::span<const Packet* const> run_of_one_sender(std::span<const Packet* const> in) const;
  // Notes when each packet was sent: `call` is the time that all took together, from `begin` on.
  void share_out(Duration call, Time begin, std::span<const Packet* const> sent);
  std::size_t account_sent(std::size_t messages);
  // Why the kernel has taken nothing: a signal came; it is full; it may refuse only that several
  // packets are one train; or it refuses the packets, which are dropped.
  enum class Refusal : std::uint8_t { Interrupted, Full, Train, Dropped };
  Refusal on_refused(int error, std::size_t packets);
  void switch_gso_off();
  std::size_t receive(std::span<RxPacket> out, Time now);
  void note_filled(UdpReceiveBuffers::Filled filled, int fd);
  bool read_refusals();
  using SocketMemory = std::array<std::uint32_t, SK_MEMINFO_VARS>;
  static SocketMemory socket_memory(int fd);
  std::uint64_t socket_backlog_bytes(int fd) const;

  // A socket at the port of the slot, or one for each source port; closed after fd_.
  Senders senders_;
  FileDescriptor fd_;
  const UdpOptions options_;
  LentPort lent_;
  BorrowedPorts borrowed_;
  Duration usual_share_{};  // of one packet in the time of a send call
  FepAddress local_;
  NicCaps caps_;
  NicCounters counters_;
  std::function<std::uint64_t()> port_dropped_;
  std::uint64_t port_dropped_before_ = 0;  // when this was opened
  std::shared_ptr<NicGuard> guard_;
  bool gso_;
  const bool excludes_interface_;
  UdpSendBatch batch_;
  UdpReceiveBuffers buffers_;
  UdpRefusals refusals_;
  bool borrowed_turn_ = false;       // of borrowed ports to fill a burst first
  std::uint64_t backlog_bytes_ = 0;  // in the socket, when it was last seen to be behind
};

}  // namespace uet::nic
