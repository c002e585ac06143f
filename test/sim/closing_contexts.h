// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Contexts that are closed while they have work: of each node one, beside the contexts of the plan,
// whose PDCs it uses. Nothing is promised of its operations but that they cost others nothing: no
// byte of their memory is read or written once the context is closed (SES-165).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/sim_world.h"
#include "sim/workload.h"
#include "uet/ses/api.h"

namespace uet::sim {

class ClosingContexts {
 public:
  ClosingContexts(SimWorld& world, const Plan& plan);
  ~ClosingContexts();

  // Opens the context of a node that was just built. `like` and `peer` are the configuration and
  // the address of one of its other contexts.
  void open(int node, const ses::ContextConfig& like, const ses::Peer& peer);
  // Plans what the contexts do and when they close.
  void start();
  // All contexts of living nodes.
  bool all_closed() const;
  // Empty if all is well.
  std::string complaint() const;

 private:
  class Sink;
  struct Actor;
  struct Buffer {
    std::vector<std::byte> bytes;
    bool scribbled = false;  // it is the application's again
  };

  void act(Actor& actor);
  void post(Actor& actor);
  void receive(Actor& actor);
  void close(Actor& actor);
  Buffer& buffer(Actor& actor, std::size_t length);

  SimWorld& world_;
  const Plan& plan_;
  Rng rng_;
  std::vector<std::unique_ptr<Actor>> actors_;
};

}  // namespace uet::sim
