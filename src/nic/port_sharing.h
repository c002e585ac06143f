// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Several kernel UDP sockets of one process at one port (Nic::lend_port). The kernel chooses the
// socket of a packet by a program (SO_ATTACH_REUSEPORT_CBPF) that reads the PDCID or the id of the
// RUDI request which the packet answers or goes on with. Packets that open a PDC or name none go to
// the first socket, which bound the port alone: others join it afterwards, so that a port which
// another process has is in use.
//
// The kernel asks the program once for a train of packets (UDP_SEGMENT, UDP_GRO), in which packets
// for other sockets may follow. A NIC that finds some hands them on (PortExchange).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "nic/socket.h"
#include "nic/udp_receive_buffers.h"
#include "uet/base/packet.h"
#include "uet/base/types.h"
#include "uet/nic/nic.h"

namespace uet::nic {

// Where the NICs of a port leave packets for each other. By any thread.
class PortExchange {
 public:
  // Packets that wait for a NIC; further ones are lost.
  static constexpr std::size_t kMostWaiting = 4096;
  // The NIC whose port it is.
  static constexpr std::uint8_t kFirst = 255;

  // All shares of the port have so many bits.
  explicit PortExchange(std::uint8_t bits) : bits_(bits) {}
  // The NIC with the share of this number, below kFirst, or kFirst, joins. 0 or an errno.
  int join(std::uint8_t number);
  // Readable while packets wait for the NIC, which has joined.
  int bell(std::uint8_t number) const { return box(number)->bell.get(); }

  // For which NIC the packet is, one that has joined.
  std::uint8_t owner_of(std::span<const std::byte> packet) const;
  void put(std::uint8_t number, const RxPacket& packet);
  bool any_for(std::uint8_t number) const {
    return box(number)->any.load(std::memory_order_acquire);
  }

  struct Parcel {
    std::vector<std::byte> bytes;
    RxPacket packet;  // its bytes are those above
  };
  // Replaces `out` by all that wait for the NIC.
  void take(std::uint8_t number, std::vector<Parcel>& out);

 private:
  struct Box {
    std::atomic<bool> any{false};
    std::mutex mutex;
    std::vector<Parcel> parcels;
    FileDescriptor bell;
  };
  Box* box(std::uint8_t number) const { return boxes_[number].load(std::memory_order_acquire); }

  const std::uint8_t bits_;
  std::array<std::atomic<Box*>, 256> boxes_{};  // nullptr: not joined
  std::vector<std::unique_ptr<Box>> all_;
};

// Sorts what one NIC has received at a shared port: packets of other NICs go to the exchange, and
// packets that wait there for this NIC are added.
class PortSorter {
 public:
  void join(std::shared_ptr<PortExchange> exchange, std::uint8_t number) {
    exchange_ = std::move(exchange);
    number_ = number;
  }
  const std::shared_ptr<PortExchange>& exchange() const { return exchange_; }
  // Every packet that has been taken from the exchange has been handed out.
  bool empty() const { return next_ == taken_.size(); }
  // The first `count` packets of `out` have been received from the socket. Returns how many there
  // are now; those from the exchange are valid until the next call.
  std::size_t sort_out(std::span<RxPacket> out, std::size_t count) {
    return exchange_ == nullptr ? count : exchange_packets(out, count);
  }

 private:
  std::size_t exchange_packets(std::span<RxPacket> out, std::size_t count);

  std::shared_ptr<PortExchange> exchange_;
  std::uint8_t number_ = 0;
  std::vector<PortExchange::Parcel> taken_;
  std::size_t next_ = 0;
};

// The side of the NIC whose port it is.
class LentPort {
 public:
  // Binds `socket` to the port of `first`, which is `address`, and steers what is for `share` to
  // it. All shares of a port have the same number of bits. 0 or an errno; then the socket must be
  // closed.
  int join(int first, int socket, const FepAddress& address, const PdcIdShare& share);
  const std::shared_ptr<PortExchange>& exchange() const { return sorter_.exchange(); }
  // As those of PortSorter.
  bool empty() const { return sorter_.empty(); }
  std::size_t sort_out(std::span<RxPacket> out, std::size_t count) {
    return sorter_.sort_out(out, count);
  }

 private:
  std::vector<std::uint8_t> numbers_;  // of the shares, in the order of their sockets
  PortSorter sorter_;
};

// The side of the NIC that uses ports of others.
class BorrowedPorts {
 public:
  using Note = std::function<void(UdpReceiveBuffers::Filled, int fd)>;

  // As Nic::borrow_port.
  bool add(const LentSocket& lent, std::uint8_t via, const PdcIdShare& share);
  bool any() const { return !ports_.empty(); }
  // The socket with this `via`, which has been added, and its UDP port.
  int socket(std::uint8_t via) const { return at(via).socket.get(); }
  std::uint16_t port(std::uint8_t via) const { return at(via).port; }
  // Every packet that has been taken from the sockets has been handed out.
  bool empty() const;
  // As Nic::rx_burst, each port in turn; calls `note` with the result of each call of the kernel.
  std::size_t receive(std::span<RxPacket> out, Time now, NicCounters& counters, const Note& note);
  // use(int fd, std::uint8_t via) for each socket.
  template <class Use>
  void for_each(Use use) const {
    for (const auto& port : ports_) use(port->socket.get(), port->via);
  }

 private:
  struct Port {
    FileDescriptor socket;
    std::uint8_t via = 0;
    std::uint16_t port = 0;
    UdpReceiveBuffers buffers;
    PortSorter sorter;
  };
  const Port& at(std::uint8_t via) const { return *ports_[number_of_via_[via]]; }

  std::vector<std::unique_ptr<Port>> ports_;
  std::vector<std::uint8_t> number_of_via_;  // in ports_
  std::size_t next_ = 0;                     // of ports_ to fill a burst first
};

}  // namespace uet::nic
