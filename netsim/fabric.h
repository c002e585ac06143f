// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Switches and links: decides when a packet leaves a port and where it arrives; what is in it is
// the Feps' business. Everything random in the network is drawn here, so that a run is a function
// of its seed (CMS-800). Each end of a link has a generator of its own: what one end draws depends
// on the packets there alone, whichever rank runs the rest of the network.
#pragma once

#include <cstdint>
#include <vector>

#include "netsim/event_queue.h"
#include "netsim/lockstep.h"
#include "netsim/meter.h"
#include "netsim/network_config.h"
#include "netsim/packet.h"
#include "netsim/port.h"
#include "netsim/topology.h"

namespace uet::netsim {

class Fabric {
 public:
  // The arguments must live longer. `events`: gets Arrival and PortFree. `pool`: takes packets back
  // that are lost. `meter`: hears of packets on failed links, in time since `begin`. `plane`: of
  // several fabrics; the events of each count its ports on from those of the one before.
  Fabric(const NetworkConfig& config, EventQueue& events, NetPacketPool& pool, Meter& meter,
         Picoseconds begin, std::uint32_t plane = 0);
  // To be called before the first packet: links to nodes of other ranks go there.
  void divide(Lockstep& lockstep);

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
  // All cables, as Fault::Kind::Up and Down say.
  void set_up(bool up) {
    for (Port& port : ports_) port.link.up = up;
  }

  std::uint32_t node_behind(std::uint32_t port) const { return ports_[port].link.to; }
  // The port by which the packet, which leaves `port` on its way to a switch, will probably leave
  // that switch. A guess where switches spray; Topology::kNoPort if none leads there.
  std::uint32_t guess_next_port(std::uint32_t port, const NetPacket& packet) const {
    Rng rng(0);
    return topology_.route(node_behind(port), packet, ports_, rng);
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
  void carry(std::uint32_t port, NetPacket* packet, Picoseconds until, Picoseconds now);
  void swallow(Port& port, NetPacket* packet, Picoseconds now);

  // Of a port: what happens in its queue, and what happens to packets at the far end of its link.
  struct Chance {
    Rng near, far;
  };
  static bool is_lost(const Port::Link& link, bool control, Rng& rng);

  const NetworkConfig& config_;
  EventQueue& events_;
  NetPacketPool& pool_;
  Meter& meter_;
  const Picoseconds begin_;
  Topology topology_;
  const std::uint32_t first_event_;  // of port 0
  std::vector<Port> ports_;
  std::vector<Chance> chance_;    // by port
  Lockstep* lockstep_ = nullptr;  // of a divided network
  std::uint64_t unroutable_ = 0;
  std::uint64_t spoilt_ = 0;
};

}  // namespace uet::netsim
