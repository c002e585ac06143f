// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two or three nodes with one endpoint and one memory region each, and a record of every packet:
// what scripted scenes are played on. The network is perfect unless the scene spoils it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "sim/sim_world.h"
#include "uet/ses/api.h"

namespace uet::sim {

// A packet that left a NIC (also if it was lost afterwards).
struct Seen {
  Time at;
  int from = -1;
  int to = -1;
  SimPacket packet;
  std::optional<wire::RequestHeader> request;
  std::optional<wire::AckHeader> ack;
  std::optional<wire::NackHeader> nack;
  std::optional<wire::ControlHeader> control;

  // The bytes behind the PDS header; empty for packets without a known one.
  std::span<const std::byte> rest() const;
};

// Keeps every completion.
class RecordingSink final : public ses::CompletionSink {
 public:
  void complete(const ses::Completion& completion) noexcept override {
    completions.push_back(completion);
  }
  bool can_take_event() noexcept override { return true; }
  bool reserve_receive() noexcept override { return true; }
  void release_receive() noexcept override {}
  void remote_access(ses::Kind, std::uint64_t) noexcept override {}

  std::vector<ses::Completion> completions;
};

struct Actor {
  RecordingSink sink;
  ses::Context* context = nullptr;
  ses::Peer peer;                 // how others name it
  std::vector<std::byte> memory;  // all of it registered
  Rkey key;
};

struct StageConfig {
  int nodes = 2;
  DeliveryMode mode = DeliveryMode::Rud;
  std::size_t memory_bytes = 1 << 20;
  fep::Config fep;
  LinkConfig link;
  std::size_t nic_tx_queue = 16384;
  std::uint8_t rails = 1;  // NicConfig::rails
  std::uint64_t nic_rate_bps = NicConfig{}.rate_bps;
  // Changes `fep` for one node; empty: all are alike.
  std::function<void(int node, fep::Config& fep)> configure;
  // Node 1 gets time only at multiples of this; 0: always.
  Duration target_interval{0};
  // Transport security of a node; empty: packets in clear.
  std::function<NodeSecurity(int node)> security;

  // Of all nodes, with what follows from it.
  void set_payload_mtu(std::uint32_t bytes);

  // Payload MTU 1,024, a window that never closes, one path, Start_PSN 70,000.
  StageConfig();
};

class Stage {
 public:
  explicit Stage(const StageConfig& config);
  ~Stage();

  SimWorld& world() { return world_; }
  Actor& actor(int node) { return *actors_[static_cast<std::size_t>(node)]; }
  fep::Fep& fep(int node) { return world_.fep(node); }
  pds::Counters counters(int node) { return world_.fep(node).stats().pds; }

  // Each posts one operation of `from` towards `to`, with `context` as its number, and sends what
  // is ready. The payload comes from (read: goes to) `offset` of from's memory; write and read use
  // the same offset of to's memory.
  Result<void> write(int from, int to, std::uint64_t offset, std::size_t length,
                     std::optional<std::uint64_t> data = std::nullopt, std::uintptr_t context = 1);
  Result<void> read(int from, int to, std::uint64_t offset, std::size_t length,
                    std::uintptr_t context = 1);
  Result<void> send(int from, int to, std::uint64_t offset, std::size_t length,
                    std::optional<std::uint64_t> data = std::nullopt, std::uintptr_t context = 1);
  // A receive of `node` into its memory.
  Result<void> receive(int node, std::uint64_t offset, std::size_t length,
                       std::uintptr_t context = 1);

  // Runs until the actor has this many completions; false after a minute of virtual time.
  bool completes(int node, std::size_t count);

  std::vector<Seen> sent;  // in order, all nodes
  // Those of `sent` that the test picks.
  std::vector<Seen> sent_where(const std::function<bool(const Seen&)>& wanted) const;
  std::vector<Seen> requests(int from) const;
  std::vector<Seen> acks(int from) const;
  std::vector<Seen> nacks(int from) const;
  std::vector<Seen> controls(int from, wire::CpType type) const;

 private:
  SimWorld world_;
  std::vector<std::unique_ptr<Actor>> actors_;
};

// A copy of the sighted packet with its headers.
Seen remember(const Sighting& sighting);

// Drops the first `count` packets that `wanted` picks.
std::function<bool(const Sighting&)> drop_first(int count,
                                                std::function<bool(const Sighting&)> wanted);

}  // namespace uet::sim
