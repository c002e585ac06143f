// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Strangers whose every packet is legal and whose whole is not: PDCs that begin in the middle and
// keep gaps, messages that never end, errors that are never cleared, closes and requests out of
// turn. They name no memory and no receive that is there, so that nothing may come of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/sim_world.h"

namespace uet::sim {

class Strangers {
 public:
  // `job`: of the nodes' endpoints.
  Strangers(SimWorld& world, JobId job, std::uint64_t seed)
      : world_(world), job_(job), rng_(seed) {}

  // Begins a PDC with `node` and sends up to 40 packets on it in the next milliseconds.
  void begin(int node);
  // A packet has left a node: it may tell a stranger the id of its PDC.
  void heard(const Sighting& sighting);

 private:
  struct Stranger {
    FepAddress address;
    int node = 0;
    bool rod = false;
    PdcId pdc;
    PdcId theirs;  // once it is known
    Psn start;
    std::uint32_t next = 0;  // PSN, counted from `start`
  };

  void speak(std::size_t number);
  void request(Stranger& stranger);
  void control(Stranger& stranger);
  void ack(Stranger& stranger);
  void put(const Stranger& stranger, std::span<const std::byte> bytes);

  SimWorld& world_;
  JobId job_;
  Rng rng_;
  std::vector<Stranger> strangers_;
};

}  // namespace uet::sim
