// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A wire that carries payload by reference: of each packet the head is copied, the payload's bytes
// are only counted. A benchmark over it measures the protocol, not memcpy.
#pragma once

#include <array>
#include <cstring>
#include <vector>

#include "uet/nic/nic.h"

namespace uet::bench {

// One end of the wire. The other end has as many addresses as PDCs begin at this one: the n-th PDC
// leads to peer_address(n), so that each may be with a peer of its own.
class HeadNic final : public nic::Nic {
 public:
  static constexpr std::uint16_t kFirstPdcId = 1;

  // `slots`: a power of two. `many_peers`: the packets for this end come from as many addresses.
  HeadNic(FepAddress own, std::size_t slots, bool many_peers)
      : own_(own), heads_(slots), many_peers_(many_peers) {
    caps_.ip_mtu = 9000;
    caps_.loopback = true;
    caps_.link_rate_bps = 400'000'000'000;
  }
  static void join(HeadNic& a, HeadNic& b) {
    a.peer_ = &b;
    b.peer_ = &a;
  }
  static FepAddress peer_address(std::size_t n) {
    FepAddress fep;
    fep.ip.bytes = {10, 1, static_cast<std::uint8_t>(n >> 8), static_cast<std::uint8_t>(n)};
    return fep;
  }
  // Loses the first transmission of one data packet in so many; 0: none.
  void lose_one_in(std::uint32_t packets) { lose_one_in_ = packets; }

  std::size_t rx_burst(std::span<RxPacket> out, Time) override {
    first_ += lent_;
    lent_ = std::min(out.size(), last_ - first_);
    for (std::size_t i = 0; i < lent_; ++i) {
      const Head& head = heads_[(first_ + i) & (heads_.size() - 1)];
      out[i].bytes = {head.bytes.data(), head.length};
      out[i].source = many_peers_ ? peer_address(head.dpdcid() - kFirstPdcId) : peer_->own_;
    }
    return lent_;
  }

  std::size_t tx_burst(std::span<const Packet* const> in) override {
    std::size_t accepted = 0;
    for (const Packet* packet : in) {
      if (peer_->last_ - peer_->first_ == peer_->heads_.size()) break;
      ++accepted;
      if (lose_one_in_ == 0 || packet->payload_length() == 0 || !lost(*packet))
        peer_->take(*packet);
    }
    return accepted;
  }

  const nic::NicCaps& caps() const override { return caps_; }
  FepAddress local_address() const override { return own_; }

 private:
  struct Head {
    std::uint16_t dpdcid() const {
      return static_cast<std::uint16_t>(std::to_integer<unsigned>(bytes[10]) << 8 |
                                        std::to_integer<unsigned>(bytes[11]));
    }
    // More than the copied part is never read: the payload's place takes what is placed there.
    alignas(64) std::array<std::byte, 256> bytes;
    std::size_t length = 0;
  };

  bool lost(const Packet& packet) {
    const bool again = (std::to_integer<unsigned>(packet.head()[1]) >> 4 & 1) != 0;  // RETX
    return !again && ++seen_ % lose_one_in_ == 0;
  }
  void take(const Packet& packet) {
    Head& head = heads_[last_++ & (heads_.size() - 1)];
    std::memcpy(head.bytes.data(), packet.head().data(), packet.head().size());
    head.length = packet.length();
  }

  FepAddress own_;
  nic::NicCaps caps_;
  HeadNic* peer_ = nullptr;
  std::vector<Head> heads_;
  bool many_peers_;
  std::uint32_t lose_one_in_ = 0;
  std::uint32_t seen_ = 0;
  std::size_t first_ = 0;  // oldest packet not yet given back
  std::size_t lent_ = 0;   // from first_ on: what the last rx_burst returned
  std::size_t last_ = 0;
};

}  // namespace uet::bench
