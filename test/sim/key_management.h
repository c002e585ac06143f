// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The management entity of a simulated secure domain (SDME): gives each node its keys, rotates
// them (make before break, TSS-53), advances epochs (TSS-38), and leaves one node with a wrong key
// for a while.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/rng.h"
#include "sim/sim_security.h"
#include "sim/sim_world.h"

namespace uet::sim {

// All of it follows from the seed of a run.
struct SecurityPlan {
  tss::KeyMode mode = tss::KeyMode::Cluster;  // Direct or Cluster
  bool ssi = false;                           // members have SSIs
  tss::RekeyRule rekey;
  bool check_epoch = false;
  Duration guard{0};       // longer than a packet lives
  Duration rotation{0};    // between two rotations, more than `guard` and twice `skew`; 0: none
  Duration epochs{0};      // between two epochs; 0: none
  Duration skew{0};        // between the first and the last member of each step
  int misconfigured = -1;  // this node seals with a key of its own...
  Duration wrong_from{0};
  Duration wrong_for{0};  // ...so long, which is less than `guard`
  int replays = 0;        // packets that an attacker captures and sends again

  std::uint32_t overhead() const { return static_cast<std::uint32_t>(tss::overhead_bytes(ssi)); }
};

class KeyManagement {
 public:
  // Both outlive it. `broken` hears of a step that a node refused.
  KeyManagement(SimWorld& world, const SecurityPlan& plan, std::uint64_t seed,
                std::function<void(const std::string&)> broken);

  // The configuration of a node with this number that starts now. `incarnation`: 0, or how many
  // processes have had the identity before (TSS-37).
  NodeSecurity security_of(int number, std::uint16_t incarnation) const;
  // Plans the first of each kind of event.
  void start();
  std::uint64_t rotations() const { return rotations_; }

 private:
  void rotate();
  void advance_epochs();
  void confuse();
  // Calls `step` for each node that lives then, each at its own time within `skew`.
  void each(std::function<void(int node)> step);
  tss::Key draw_key();
  void check(const Result<void>& result, const char* step);

  SimWorld& world_;
  const SecurityPlan& plan_;
  Rng rng_;
  std::function<void(const std::string&)> broken_;
  bool an_ = false;  // of the current key
  tss::Key current_;
  std::optional<tss::Key> next_;  // installed somewhere, active nowhere
  std::uint16_t epoch_ = 0;
  std::uint64_t rotations_ = 0;
  std::map<int, int> keys_seen_;  // of each node: how many keys came after its first ones
};

}  // namespace uet::sim
