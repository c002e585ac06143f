// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "nic/udp_send_batch.h"

#include <linux/udp.h>

#include <cstring>

namespace uet::nic {
namespace {

std::uint8_t tos_of(const Packet& packet) { return nic::tos_of(packet.dscp, packet.ecn); }

template <class T>
void append_control(msghdr& header, std::byte* control, int level, int type, T value) {
  auto* item = reinterpret_cast<cmsghdr*>(control + header.msg_controllen);
  item->cmsg_level = level;
  item->cmsg_type = type;
  item->cmsg_len = CMSG_LEN(sizeof value);
  std::memcpy(CMSG_DATA(item), &value, sizeof value);
  header.msg_controllen += CMSG_SPACE(sizeof value);
}

}  // namespace

UdpSendBatch::UdpSendBatch(bool is_ipv6, std::uint8_t usual_tos)
    : is_ipv6_(is_ipv6), usual_tos_(usual_tos) {
  for (std::size_t i = 0; i < kTxBurst; ++i) {
    msghdr& header = headers_[i].msg_hdr;
    header.msg_name = &trains_[i].to;
    header.msg_namelen = socket_address_length(is_ipv6);
    header.msg_control = trains_[i].control.data();
  }
}

std::size_t UdpSendBatch::fill(std::span<const Packet* const> in, bool trains) {
  std::size_t messages = 0;
  slice_count_ = 0;
  std::size_t enough_bytes = trains ? enough_for_first(in) : 0;
  for (const Packet* packet : in) {
    if (packet->to.ip.is_ipv6 != is_ipv6_) break;
    if (!trains || messages == 0 || !fits(trains_[messages - 1], *packet, enough_bytes)) {
      if (messages > 0) {
        write_control(messages - 1);
        enough_bytes = kMaxTrainBytes;
      }
      begin(messages++, *packet);
    }
    add(messages - 1, *packet);
  }
  if (messages > 0) write_control(messages - 1);
  return messages;
}

UdpSendBatch::Sent UdpSendBatch::contents(std::size_t messages) const {
  Sent sent;
  for (std::size_t i = 0; i < messages; ++i) {
    sent.packets += trains_[i].packets;
    sent.bytes += trains_[i].total_bytes;
  }
  return sent;
}

void UdpSendBatch::begin(std::size_t message, const Packet& packet) {
  Train& train = trains_[message];
  write_socket_address(wire_address(packet.to), train.to);
  train.first = &packet;
  train.packets = 0;
  train.segment_bytes = packet.length();
  train.total_bytes = 0;
  train.closed = false;
  headers_[message].msg_hdr.msg_iov = &slices_[slice_count_];
  headers_[message].msg_hdr.msg_iovlen = 0;
}

// The receiver copies the first train while the kernel takes the second from us. Of a large batch
// or of packets under way it has enough to copy.
std::size_t UdpSendBatch::enough_for_first(std::span<const Packet* const> in) {
  std::size_t all = 0;
  if (in.size() > 1 && in[0]->first_in_flight) {
    for (const Packet* packet : in) all += packet->length();
  }
  return all > kShortTrainBytes && all <= 2 * kMaxTrainBytes ? kShortTrainBytes : kMaxTrainBytes;
}

bool UdpSendBatch::fits(const Train& train, const Packet& packet, std::size_t enough_bytes) {
  const std::size_t length = packet.length();
  return !train.closed && !packet.sent_again && length > 0 && length <= train.segment_bytes &&
         train.total_bytes < enough_bytes && train.total_bytes + length <= kMaxTrainBytes &&
         packet.to == train.first->to && tos_of(packet) == tos_of(*train.first);
}

void UdpSendBatch::add(std::size_t message, const Packet& packet) {
  const std::size_t before = slice_count_;
  const auto add_slice = [this](const std::byte* data, std::size_t length) {
    // The kernel only reads, but iovec serves both directions.
    if (length > 0) slices_[slice_count_++] = {const_cast<std::byte*>(data), length};
  };
  add_slice(packet.head().data(), packet.head().size());
  for (const Slice& slice : packet.payload) add_slice(slice.data, slice.length);
  headers_[message].msg_hdr.msg_iovlen += slice_count_ - before;
  Train& train = trains_[message];
  const std::size_t length = packet.length();
  ++train.packets;
  train.total_bytes += length;
  train.closed = length < train.segment_bytes || packet.sent_again;
}

void UdpSendBatch::write_control(std::size_t message) {
  Train& train = trains_[message];
  msghdr& header = headers_[message].msg_hdr;
  header.msg_controllen = 0;
  if (const int tos = tos_of(*train.first); tos != usual_tos_) {
    append_control(header, train.control.data(), is_ipv6_ ? IPPROTO_IPV6 : IPPROTO_IP,
                   is_ipv6_ ? IPV6_TCLASS : IP_TOS, tos);
  }
  if (train.packets > 1) {
    append_control(header, train.control.data(), IPPROTO_UDP, UDP_SEGMENT,
                   static_cast<std::uint16_t>(train.segment_bytes));
  }
}

}  // namespace uet::nic
