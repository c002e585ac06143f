// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Switches and links: decides when a packet leaves a port and where it arrives; what is in it is
// the Feps' business. Everything random in the network is drawn here, from one generator, so that a
// run is a function of its seed (CMS-800).
#pragma once

#include <cstdint>
#include <vector>

#include "netsim/event_queue.h"
#include "netsim/meter.h"
#include "netsim/network_config.h"
#include "netsim/packet.h"
#include "netsim/port.h"
#include "netsim/topology.h"

namespace uet::netsim {

class Fabric {
 public:
  // The arguments must live longer. `events`: gets Arrival and PortFree. `pool`: takes packets back
  // that are lost. `meter`: hears of packets on failed links, in time since `begin`.
  Fabric(const NetworkConfig& config, EventQueue& events, NetPacketPool& pool, Meter& meter,
         Picoseconds begin);

  // A host sends the packet; the fabric owns it now.
  void send(NetPacket& packet, Picoseconds now) {
    offer(topology_.first_port(packet.source), &packet, now);
  }
  // For Event::PortFree. True: a host's port, and the host may send more.
  bool port_is_free(std::uint32_t port, Picoseconds now);
  // For Event::Arrival. Returns the packet if it has reached a host, node_behind(port), which owns
  // it then; nullptr if it goes on, or was lost.
  NetPacket* arrive(std::uint32_t port, NetPacket* packet, Picoseconds now);
  // To both ends of the cable.
  void apply(const Fault& fault);

  std::uint32_t node_behind(std::uint32_t port) const { return ports_[port].link.to; }
  // The port by which the packet, which is on its way to a switch, probably leaves it. A guess
  // where switches spray; Topology::kNoPort if none leads there.
  std::uint32_t guess_next_port(std::uint32_t node, const NetPacket& packet) const {
    Rng rng = rng_;
    return topology_.route(node, packet, ports_, rng);
  }

  const Topology& topology() const { return topology_; }
  const std::vector<Port>& ports() const { return ports_; }
  const Port& port_of_host(std::uint32_t host) const { return ports_[topology_.first_port(host)]; }
  // Packets to a host to which no way led.
  std::uint64_t unroutable() const { return unroutable_; }
  // Packets that were spoilt (NetworkConfig::garbage).
  std::uint64_t spoilt() const { return spoilt_; }

 private:
  void make_ports();
  void offer(std::uint32_t port, NetPacket* packet, Picoseconds now);
  void serve(std::uint32_t port, Picoseconds now);
  void swallow(Port& port, NetPacket* packet, Picoseconds now);
  bool is_lost(const Port::Link& link, bool control);

  const NetworkConfig& config_;
  EventQueue& events_;
  NetPacketPool& pool_;
  Meter& meter_;
  const Picoseconds begin_;
  Topology topology_;
  Rng rng_;
  std::vector<Port> ports_;
  std::uint64_t unroutable_ = 0;
  std::uint64_t spoilt_ = 0;
};

}  // namespace uet::netsim
