// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Buffers that recvmmsg(2) fills, each with one datagram or a run of equal ones (UDP_GRO), and that
// are handed out packet by packet. Only back ends include this.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <span>

#include "nic/socket.h"
#include "uet/base/packet.h"
#include "uet/nic/nic.h"

namespace uet::nic {

class UdpReceiveBuffers {
 public:
  UdpReceiveBuffers();
  UdpReceiveBuffers(const UdpReceiveBuffers&) = delete;  // the messages point into the object
  UdpReceiveBuffers& operator=(const UdpReceiveBuffers&) = delete;

  // Every packet that has arrived has been handed out.
  bool empty() const { return next_ == count_; }

  enum class Filled : std::uint8_t {
    Nothing,  // no datagram waits
    Some,
    All,  // every buffer: more datagrams may wait
    Failed,
  };
  // Takes datagrams from the socket `fd`, without waiting. To be called when empty() only, because
  // packets handed out before are then no longer valid.
  Filled fill(int fd, Time now);

  // Hands out packets until `out` is full or none is left; returns how many. They are valid until
  // the next fill. Counts bytes received, and datagrams that are longer than any UET packet.
  std::size_t hand_out(std::span<RxPacket> out, NicCounters& counters);

 private:
  static constexpr std::size_t kBuffers = 16;
  static constexpr std::size_t kBufferBytes = 65536;  // a coalesced receive is never longer
  static constexpr Duration kClockOffsetHolds = std::chrono::milliseconds(1);
  static constexpr std::size_t kControlBytes =
      CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(timespec));

  struct Message {
    SocketAddress from;
    alignas(cmsghdr) std::array<std::byte, kControlBytes> control;
    iovec buffer;
  };
  // The contents of the control messages of a buffer.
  struct Context {
    std::size_t segment_bytes = 0;
    FepAddress source;
    std::uint8_t tos = 0;
    Time arrived{};
  };

  int receive(int fd);
  void read_control(std::size_t message);

  // The messages next_ to count_ hold packets that hand_out has not handed out, the first message
  // from offset_ on.
  std::unique_ptr<std::byte[]> storage_;
  std::array<mmsghdr, kBuffers> headers_{};
  std::array<Message, kBuffers> messages_;
  std::size_t count_ = 0;
  std::size_t next_ = 0;
  std::size_t offset_ = 0;
  bool idle_ = true;         // the latest call brought nothing
  Duration clock_offset_{};  // arrival_clock_offset(), read again when the time has come
  Time clock_read_again_{};
  Context context_;
};

}  // namespace uet::nic
