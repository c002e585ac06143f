// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Packets on their way to sendmmsg(2): each message is one datagram, or a train of equal datagrams
// that the kernel cuts apart (UDP_SEGMENT). Makes no system call. Only back ends include this.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "nic/socket.h"
#include "uet/base/packet.h"
#include "uet/nic/nic.h"

namespace uet::nic {

// The octet of the IP header that carries DSCP and ECN.
constexpr std::uint8_t tos_of(std::uint8_t dscp, Ecn ecn) {
  return static_cast<std::uint8_t>((dscp << 2) | static_cast<std::uint8_t>(ecn));
}

class UdpSendBatch {
 public:
  // `is_ipv6`: family of the socket. `usual_tos`: that of the socket; a packet with another one
  // carries it in a control message.
  UdpSendBatch(bool is_ipv6, std::uint8_t usual_tos);
  UdpSendBatch(const UdpSendBatch&) = delete;  // the messages point into the object
  UdpSendBatch& operator=(const UdpSendBatch&) = delete;

  // Turns the packets of `in`, kTxBurst at most, into messages, up to the first packet with an
  // address of the other family. `trains`: runs of equal packets to one address share a message.
  // Behind a packet that is first in flight, a batch that is not larger than two trains begins with
  // a short one (decision 067). Returns the number of messages. The packets must live until the
  // messages have been sent.
  std::size_t fill(std::span<const Packet* const> in, bool trains);

  // For sendmmsg; valid until the next fill.
  mmsghdr* messages() { return headers_.data(); }
  std::size_t packets_of_first() const { return trains_[0].packets; }

  struct Sent {
    std::size_t packets = 0;
    std::uint64_t bytes = 0;  // above UDP
  };
  // The contents of the first `messages` messages.
  Sent contents(std::size_t messages) const;

 private:
  static_assert(kTxBurst <= 64, "older kernels refuse trains of more than 64 packets");
  static constexpr std::size_t kMaxTrainBytes = 65507;  // one IPv4 packet less IP and UDP headers
  static constexpr std::size_t kShortTrainBytes = 32 << 10;  // a short train ends with these
  static constexpr std::size_t kSlicesPerPacket = 3;         // head and two pieces of payload
  static constexpr std::size_t kControlBytes =
      CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(std::uint16_t));

  struct Train {
    SocketAddress to;
    alignas(cmsghdr) std::array<std::byte, kControlBytes> control;
    const Packet* first;
    std::size_t packets;
    std::size_t segment_bytes;  // length of every packet but the last
    std::size_t total_bytes;
    bool closed;  // a shorter packet has ended it, or it is a packet sent again
  };

  void begin(std::size_t message, const Packet& packet);
  void add(std::size_t message, const Packet& packet);
  void write_control(std::size_t message);
  static bool fits(const Train& train, const Packet& packet, std::size_t enough_bytes);
  static std::size_t enough_for_first(std::span<const Packet* const> in);

  const bool is_ipv6_;
  const std::uint8_t usual_tos_;
  std::array<mmsghdr, kTxBurst> headers_{};
  std::array<Train, kTxBurst> trains_;
  std::array<iovec, kTxBurst * kSlicesPerPacket> slices_;
  std::size_t slice_count_ = 0;
};

}  // namespace uet::nic
