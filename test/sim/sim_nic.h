// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The NIC of a simulated node: copies packets out of the core, hands received ones to it. Both
// queues are bounded. Must not know what a packet means.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "uet/nic/nic.h"

namespace uet::sim {

// A packet on its way: from the PDS prologue on.
struct SimPacket {
  std::vector<std::byte> bytes;
  FepAddress source;
  FepAddress destination;
  std::uint16_t entropy = 0;
  Ecn ecn = Ecn::NotEct;
  std::uint8_t dscp = 0;
  bool trimmed = false;
  std::uint8_t rail = 0;
  // Of a protected packet, the text before it was sealed, for those who look on; empty if it has
  // been changed on the way. No node reads it.
  std::vector<std::byte> plain;
};

struct NicConfig {
  FepAddress address;
  nic::NicCaps caps;
  std::uint64_t rate_bps = 100'000'000'000;  // how fast the transmit queue drains
  std::size_t tx_queue = 1024;               // packets; a full queue refuses the rest of a burst
  std::size_t rx_queue = 4096;               // packets not yet read; beyond it they are dropped
  std::uint8_t rails = 1;                    // at most 8; the entropy value chooses
};

class SimNic final : public nic::Nic {
 public:
  // Takes a packet that leaves the node at the given time, which never goes back.
  using Wire = std::function<void(SimPacket&& packet, Time leaves)>;

  SimNic(const NicConfig& config, const Time& now, Wire wire)
      : config_(config), now_(now), wire_(std::move(wire)) {}

  std::size_t rx_burst(std::span<RxPacket> out, Time now) override;
  std::size_t tx_burst(std::span<const Packet* const> in) override;
  const nic::NicCaps& caps() const override { return config_.caps; }
  FepAddress local_address() const override { return config_.address; }

  // Source addresses arrive as they are configured, whatever the entropy.
  std::uint16_t source_port_for(const Packet&) override { return config_.address.port; }

  std::optional<LostRail> poll_lost_rail() override;

  void receive(SimPacket&& packet);
  // Packets that take the rail, either way, vanish, and neither end is told.
  void cut(std::uint8_t rail, bool down);
  bool is_cut(std::uint8_t rail) const { return (cut_ >> rail & 1U) != 0; }
  // The node is told that a rail is lost, and uses others until it is told that the rail is back.
  void lose(const LostRail& lost);
  void regain(const LostRail& lost);
  // The text of the next packet, which is sealed (SimPacket::plain).
  void show_plain(std::span<const std::byte> plain) { plain_.assign(plain.begin(), plain.end()); }
  bool rx_empty() const { return received_.empty(); }
  // When the transmit queue can take a packet that it refused; kNever if it refused none.
  Time room_at() const { return refused_ && !leaving_.empty() ? leaving_.front() : kNever; }
  std::uint64_t rx_dropped() const { return rx_dropped_; }
  std::uint64_t tx_refused() const { return tx_refused_; }
  // Packets larger than the MTU allows; a mistake of the core.
  std::uint64_t oversized() const { return oversized_; }
  // A control packet was offered behind data, which a full queue may refuse; a mistake of the core.
  bool control_behind_data() const { return control_behind_data_; }

 private:
  using Rails = unsigned;  // as bits

  std::uint8_t rail_for(const Packet& packet) const;
  Rails& left(const LostRail& lost) { return lost.peer ? left_of_[*lost.peer] : left_; }

  NicConfig config_;
  const Time& now_;
  Wire wire_;
  std::deque<SimPacket> received_;
  std::vector<std::byte> plain_;
  std::vector<SimPacket> lent_;  // what the last rx_burst handed out views of
  std::deque<Time> leaving_;     // when the packets of the transmit queue are gone
  Time free_at_{};
  bool refused_ = false;
  std::uint64_t rx_dropped_ = 0;
  std::uint64_t tx_refused_ = 0;
  std::uint64_t oversized_ = 0;
  bool control_behind_data_ = false;
  Rails cut_ = 0;
  Rails left_ = 0;                                                 // to all peers
  std::unordered_map<FepAddress, Rails, FepAddressHash> left_of_;  // to one
  std::vector<LostRail> lost_;                                     // not polled yet
};

// IP and UDP headers around a packet.
constexpr std::uint32_t kIpUdpBytes = 28;

}  // namespace uet::sim
