// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Several NICs of this host as one: rails, or planes. Packets to a peer that has rails too are
// spread over them by their entropy, so that a path is a rail and an entropy value; the layers
// above know the peer and this process by their first addresses alone.
//
// A further address of a peer counts when both ends have proved it (RailMessage): the address is
// that of a process which has the first one too. Until then, and for peers with one address,
// packets take rail 0. RailPeers says which rails may be used.
//
// A lost rail is reported by poll_lost_rail(), and PDS sends its packets and ACKs again (PDS-227).
// If the carrier is lost, peers get the message Gone, after the repeated ACKs: a peer that sends
// again knows then which packets have arrived.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "nic/link_watch.h"
#include "nic/rail_message.h"
#include "nic/rail_peers.h"
#include "nic/socket.h"
#include "uet/nic/nic.h"

namespace uet::nic {

class RailsNic final : public Nic {
 public:
  static constexpr std::size_t kMostRails = RailPeers::kMostRails;
  static constexpr Duration kCarrierLook = std::chrono::milliseconds(1);
  static constexpr Duration kHeldRetry = std::chrono::microseconds(50);

  struct Rail {
    std::unique_ptr<Nic> nic;
    std::string interface;  // whose carrier is watched; empty: none
  };
  // Two to kMostRails rails with IPv4 addresses, all at the same port; the address of the first one
  // names the process. `secret`: random, for the cookies of Challenge.
  RailsNic(std::vector<Rail> rails, std::uint64_t secret);
  ~RailsNic() override;

  std::size_t rx_burst(std::span<RxPacket> out, Time now) override;
  // Packets that a full rail refuses take another rail of the peer. If all are full, they are
  // copied, at most one burst of them, and leave before any other packet.
  std::size_t tx_burst(std::span<const Packet* const> in) override;
  std::uint16_t source_port_for(const Packet&) override { return local_address().port; }
  void learn_further(const FepAddress& first, std::span<const FabricAddress> further) override;
  std::span<const FabricAddress> further_addresses() const override { return further_; }
  PdcGuard* guard() override { return guards_.all.empty() ? nullptr : &guards_; }
  int wait_fd() const override { return epoll_.get(); }
  bool prepare_wait() override;
  std::optional<DeadPeer> poll_dead_peer() override { return rails_[0].nic->poll_dead_peer(); }
  std::optional<LostRail> poll_lost_rail() override { return peers_.poll_lost(); }
  // As the watch of the carriers tells; for tests.
  void carrier_changed(std::size_t rail, bool up);
  void watch_refusals() override;
  std::optional<FepAddress> take_refusal() override;
  Time next_deadline() const override;
  std::uint64_t receive_backlog_bytes() const override;
  const MemoryRanges* shared_memory() const override { return rails_[0].nic->shared_memory(); }
  const NicCaps& caps() const override { return caps_; }
  FepAddress local_address() const override { return rails_[0].nic->local_address(); }
  NicCounters counters() const override;

 private:
  using State = RailPeers::State;
  using Way = RailPeers::Way;
  using Peer = RailPeers::Peer;
  struct Source {
    FepAddress first;
    std::uint8_t rail = 0;
  };
  struct Held;
  // Of the rails that have one.
  struct Guards final : PdcGuard {
    void start(std::uint32_t new_pdcs, Duration pace) override {
      for (PdcGuard* guard : all) guard->start(new_pdcs, pace);
    }
    void open(PdcId id) override {
      for (PdcGuard* guard : all) guard->open(id);
    }
    void close(PdcId id) override {
      for (PdcGuard* guard : all) guard->close(id);
    }
    std::vector<PdcGuard*> all;
  };
  // Packets of one burst for one rail.
  struct Part {
    std::array<const Packet*, kTxBurst> packets;
    std::size_t count = 0;
  };

  void set_way(const FepAddress& first, std::size_t rail, const FabricAddress& ip, State state);
  std::size_t rail_for(const Packet& packet);
  void hello(Peer& peer, std::size_t rail);
  void send(std::size_t rail, const FepAddress& to, RailMessage message);
  std::uint64_t cookie(const FabricAddress& further, const FepAddress& first) const;
  std::uint32_t nonce(const FabricAddress& further, const FepAddress& first) const;
  void handle(const RailMessage& message, const FepAddress& from, std::size_t rail);
  void handle_hello(const RailMessage& message, const FepAddress& from, std::size_t rail);
  void handle_proof(const RailMessage& message, const FepAddress& from);
  void handle_gone(const RailMessage& message, Peer& peer);
  Peer* sender(const FepAddress& from, std::size_t rail);
  void send_gone();
  bool take(RxPacket& packet, std::size_t rail);
  std::size_t offer(std::size_t rail, std::span<const Packet* const> packets);
  bool offer_elsewhere(const Packet& packet, std::size_t full);
  void hold(const Packet& packet, std::size_t rail);
  bool send_held();
  void look_at_carriers();

  std::vector<Rail> rails_;
  std::vector<FabricAddress> further_;
  std::array<LinkWatch, kMostRails> watches_;
  FileDescriptor epoll_;
  Guards guards_;
  NicCaps caps_;
  const std::uint64_t key0_;
  const std::uint64_t key1_;
  Time now_{};
  Time next_carrier_look_{};
  Time next_unknown_{};  // when Unknown may be sent again
  unsigned gone_ = 0;    // rails, as bits, whose loss peers are told in the next burst
  std::size_t turn_ = 0;
  RailPeers peers_;
  std::unordered_map<FepAddress, Source, FepAddressHash> sources_;  // by further address
  std::unique_ptr<std::array<Part, kMostRails>> parts_;
  std::unique_ptr<std::array<Packet, kTxBurst>> translated_;
  std::vector<std::unique_ptr<Held>> held_;
};

}  // namespace uet::nic
