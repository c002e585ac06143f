// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "nic/udp_receive_buffers.h"

#include <linux/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "nic/clock.h"

namespace uet::nic {
namespace {

template <class T>
T control_value(const cmsghdr* item) {
  T value{};
  std::memcpy(&value, CMSG_DATA(item), sizeof value);
  return value;
}

}  // namespace

UdpReceiveBuffers::UdpReceiveBuffers()
    : storage_(std::make_unique_for_overwrite<std::byte[]>(kBuffers * kBufferBytes)) {
  for (std::size_t i = 0; i < kBuffers; ++i) {
    messages_[i].buffer = {storage_.get() + i * kBufferBytes, kBufferBytes};
    msghdr& header = headers_[i].msg_hdr;
    header.msg_name = &messages_[i].from;
    header.msg_iov = &messages_[i].buffer;
    header.msg_iovlen = 1;
    header.msg_namelen = sizeof(SocketAddress);
    header.msg_control = messages_[i].control.data();
    header.msg_controllen = kControlBytes;
  }
}

UdpReceiveBuffers::Filled UdpReceiveBuffers::fill(int fd, Time now) {
  for (std::size_t i = 0; i < count_; ++i) {  // the kernel has written into those alone
    msghdr& header = headers_[i].msg_hdr;
    header.msg_namelen = sizeof(SocketAddress);
    header.msg_controllen = kControlBytes;
  }
  next_ = count_ = offset_ = 0;
  const int count = receive(fd);
  idle_ = count <= 0;
  if (count < 0) return errno == EAGAIN || errno == EINTR ? Filled::Nothing : Filled::Failed;
  if (now >= clock_read_again_) {
    clock_read_again_ = now + kClockOffsetHolds;
    clock_offset_ = arrival_clock_offset();
  }
  count_ = static_cast<std::size_t>(count);
  if (count_ == kBuffers) return Filled::All;
  return Filled::Some;
}

// After an empty receive, the next datagram mostly comes alone, and recvmmsg would look for
// another one before it returned.
int UdpReceiveBuffers::receive(int fd) {
  if (!idle_) return ::recvmmsg(fd, headers_.data(), kBuffers, 0, nullptr);
  const ssize_t length = ::recvmsg(fd, &headers_[0].msg_hdr, 0);
  if (length < 0) return -1;
  headers_[0].msg_len = static_cast<unsigned>(length);
  return 1;
}

std::size_t UdpReceiveBuffers::hand_out(std::span<RxPacket> out, NicCounters& counters) {
  std::size_t filled = 0;
  while (filled < out.size() && next_ < count_) {
    const std::size_t length = headers_[next_].msg_len;
    if (offset_ == 0) read_control(next_);
    const bool truncated = (headers_[next_].msg_hdr.msg_flags & MSG_TRUNC) != 0;
    if (truncated) ++counters.receive_truncated;
    if (truncated || length == 0) {
      ++next_;
      continue;
    }
    const std::size_t bytes = std::min(context_.segment_bytes, length - offset_);
    const auto* buffer = static_cast<const std::byte*>(messages_[next_].buffer.iov_base);
    RxPacket& packet = out[filled++];
    packet.bytes = {buffer + offset_, bytes};
    packet.source = context_.source;
    packet.entropy = context_.source.port;
    packet.ecn = static_cast<Ecn>(context_.tos & 3);
    packet.dscp = static_cast<std::uint8_t>(context_.tos >> 2);
    packet.arrived = context_.arrived;
    packet.trimmed = packet.trimmed_last_hop = packet.through_memory = false;
    packet.connection = 0;
    counters.bytes_received += bytes;
    offset_ += bytes;
    if (offset_ == length) {
      ++next_;
      offset_ = 0;
    }
  }
  return filled;
}

void UdpReceiveBuffers::read_control(std::size_t message) {
  msghdr& header = headers_[message].msg_hdr;
  context_.source = read_socket_address(messages_[message].from);
  context_.segment_bytes = headers_[message].msg_len;
  context_.tos = 0;
  context_.arrived = {};
  for (cmsghdr* item = CMSG_FIRSTHDR(&header); item != nullptr; item = CMSG_NXTHDR(&header, item)) {
    const int type = item->cmsg_type;
    if (item->cmsg_level == IPPROTO_UDP && type == UDP_GRO) {
      const int segment = control_value<int>(item);
      if (segment > 0) context_.segment_bytes = static_cast<std::size_t>(segment);
    } else if (item->cmsg_level == IPPROTO_IP && type == IP_TOS) {
      context_.tos = control_value<std::uint8_t>(item);  // one byte, unlike on send
    } else if (item->cmsg_level == IPPROTO_IPV6 && type == IPV6_TCLASS) {
      context_.tos = static_cast<std::uint8_t>(control_value<int>(item));
    } else if (item->cmsg_level == SOL_SOCKET && type == SCM_TIMESTAMPNS) {
      const auto stamp = control_value<timespec>(item);
      context_.arrived =
          Time(std::chrono::seconds(stamp.tv_sec) + Duration(stamp.tv_nsec) - clock_offset_);
    }
  }
}

}  // namespace uet::nic
