// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Helpers for the tests of this module: packets with recognisable contents, a NIC that plays back
// packets of a test, and loopback addresses that no other test process uses.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "uet/nic/nic.h"

namespace uet::nic {

inline FabricAddress ipv4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  FabricAddress ip;
  ip.bytes = {a, b, c, d};
  return ip;
}

inline FabricAddress ipv6_loopback() {
  FabricAddress ip;
  ip.is_ipv6 = true;
  ip.bytes[15] = 1;
  return ip;
}

// An address in 127.0.0.0/8 that belongs to this process alone (address per process).
inline FabricAddress own_loopback_address() {
  const auto pid = static_cast<std::uint32_t>(::getpid());
  return ipv4(127, static_cast<std::uint8_t>(64 + (pid >> 14) % 128),
              static_cast<std::uint8_t>(pid >> 7 & 0x7F),
              static_cast<std::uint8_t>(1 + (pid & 0x7F)));
}

// Device memory whose every bit is the opposite of what the CPU would find at its address.
class InvertedMemory final : public DeviceMemory {
 public:
  void place(std::byte*, std::span<const std::byte>) noexcept override {}
  void fetch(std::span<std::byte> bytes, const std::byte* there) noexcept override {
    std::transform(there, there + bytes.size(), bytes.begin(), [](std::byte b) { return ~b; });
  }
};

// Packets with a head of `head_bytes` and a payload of two slices; every byte depends on the packet
// and on its place.
class PacketSet {
 public:
  const Packet& add(const FepAddress& to, std::size_t head_bytes, std::size_t first_slice,
                    std::size_t second_slice = 0) {
    auto packet = std::make_unique<Packet>();
    const std::size_t front = std::min(head_bytes, Packet::kHeadroom);
    packet->append(head_bytes - front);
    std::byte* head = packet->prepend(front);
    for (std::size_t i = 0; i < head_bytes; ++i) head[i] = pattern(i);
    payload_.push_back(std::make_unique<std::byte[]>(first_slice + second_slice));
    std::byte* payload = payload_.back().get();
    for (std::size_t i = 0; i < first_slice + second_slice; ++i)
      payload[i] = pattern(head_bytes + i);
    packet->payload[0] = {payload, static_cast<std::uint32_t>(first_slice)};
    packet->payload[1] = {payload + first_slice, static_cast<std::uint32_t>(second_slice)};
    packet->to = to;
    packets_.push_back(std::move(packet));
    pointers_.push_back(packets_.back().get());
    return *packets_.back();
  }
  Packet& last() { return *packets_.back(); }
  std::span<const Packet* const> all() const { return pointers_; }

  // The bytes of packet `index` as they should arrive.
  std::vector<std::byte> bytes(std::size_t index) const {
    const Packet& packet = *packets_[index];
    std::vector<std::byte> whole(packet.head().begin(), packet.head().end());
    for (const Slice& slice : packet.payload) {
      whole.insert(whole.end(), slice.data, slice.data + slice.length);
    }
    return whole;
  }

 private:
  std::byte pattern(std::size_t i) const {
    return static_cast<std::byte>(packets_.size() * 31 + i * 7 + (i >> 8));
  }
  std::vector<std::unique_ptr<Packet>> packets_;
  std::vector<const Packet*> pointers_;
  std::vector<std::unique_ptr<std::byte[]>> payload_;
};

// A packet that arrived, copied, so that it can be kept.
struct Arrival {
  std::vector<std::byte> bytes;
  FepAddress source;
  std::uint16_t entropy;
  Ecn ecn;
  std::uint8_t dscp;
  Time arrived;
  std::uint16_t connection;

  explicit Arrival(const RxPacket& packet)
      : bytes(packet.bytes.begin(), packet.bytes.end()),
        source(packet.source),
        entropy(packet.entropy),
        ecn(packet.ecn),
        dscp(packet.dscp),
        arrived(packet.arrived),
        connection(packet.connection) {}
};

// Hands out what a test queued with arrive() and remembers what was sent.
class FakeNic : public Nic {
 public:
  explicit FakeNic(FepAddress self) : self_(self) {}

  void arrive(std::vector<std::byte> bytes, FepAddress source = {}, std::uint8_t dscp = 0,
              Ecn ecn = Ecn::NotEct) {
    waiting_.push_back({std::move(bytes), source, dscp, ecn});
  }
  // How many packets each later tx_burst accepts.
  std::size_t tx_room = 1000;
  std::vector<std::vector<std::byte>> sent;

  std::size_t looks = 0;  // how often rx_burst was called

  std::size_t rx_burst(std::span<RxPacket> out, Time) override {
    ++looks;
    lent_.clear();
    while (lent_.size() < out.size() && !waiting_.empty()) {
      lent_.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
      RxPacket& packet = out[lent_.size() - 1];
      packet = {};
      packet.bytes = lent_.back().bytes;
      packet.source = lent_.back().source;
      packet.entropy = packet.source.port;
      packet.dscp = lent_.back().dscp;
      packet.ecn = lent_.back().ecn;
    }
    return lent_.size();
  }
  std::size_t tx_burst(std::span<const Packet* const> in) override {
    const std::size_t accepted = std::min(in.size(), tx_room);
    for (const Packet* packet : in.first(accepted)) {
      std::vector<std::byte> whole(packet->head().begin(), packet->head().end());
      for (const Slice& slice : packet->payload) {
        whole.insert(whole.end(), slice.data, slice.data + slice.length);
      }
      sent.push_back(std::move(whole));
    }
    return accepted;
  }
  const NicCaps& caps() const override { return caps_; }
  void allow_entropy() { caps_.per_packet_entropy = true; }
  FepAddress local_address() const override { return self_; }

 private:
  struct Waiting {
    std::vector<std::byte> bytes;
    FepAddress source;
    std::uint8_t dscp = 0;
    Ecn ecn{};
  };
  FepAddress self_;
  NicCaps caps_;
  std::deque<Waiting> waiting_;
  std::vector<Waiting> lent_;  // kept until the next rx_burst, so that a late reader is caught
};

// A packet of 4 bytes that carries `number`.
inline std::vector<std::byte> numbered_bytes(std::uint32_t number) {
  std::vector<std::byte> bytes(sizeof number);
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

inline std::uint32_t number_of(const RxPacket& packet) {
  std::uint32_t number = 0;
  std::memcpy(&number, packet.bytes.data(), std::min(sizeof number, packet.bytes.size()));
  return number;
}

}  // namespace uet::nic
