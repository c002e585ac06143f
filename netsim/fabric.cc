// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The way of a packet from port to port.
#include "netsim/fabric.h"

#include <algorithm>

namespace uet::netsim {
namespace {

// Limits are those of a port of the usual rate: Plane_BDP goes with the slower end (CMS-32).
void scale(QueueConfig& queue, double factor) {
  const auto scaled = [&](std::uint64_t bytes) {
    return static_cast<std::uint64_t>(static_cast<double>(bytes) * factor);
  };
  if (factor == 1) return;
  queue.ecn_low_bytes *= factor;
  queue.ecn_high_bytes *= factor;
  queue.data_limit_bytes = scaled(queue.data_limit_bytes);
  queue.control_limit_bytes = scaled(queue.control_limit_bytes);
}

}  // namespace

Fabric::Fabric(const NetworkConfig& config, EventQueue& events, NetPacketPool& pool, Meter& meter,
               Picoseconds begin, std::uint32_t plane)
    : config_(config),
      events_(events),
      pool_(pool),
      meter_(meter),
      begin_(begin),
      topology_(config.topology, config.seed + plane),
      first_event_(plane * static_cast<std::uint32_t>(topology_.links().size())) {
  make_ports();
  Rng seeds(~(config.seed + plane));
  chance_.reserve(ports_.size());
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    const std::uint64_t near = seeds.next(), far = seeds.next();
    chance_.push_back({.near = Rng(near), .far = Rng(far)});
  }
}

void Fabric::make_ports() {
  ports_.resize(topology_.links().size());
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    Port& port = ports_[i];
    port.link = topology_.links()[i];
    if (port.link.from_host) continue;
    port.config = config_.queues;
    if (port.link.last_hop && !config_.ecn_on_last_hop) port.config.ecn_high_bytes = 0;
    if (port.link.last_hop) {
      port.config.data_limit_bytes = config_.last_hop_limit_bytes;
      scale(port.config, static_cast<double>(port.link.rate_bps) /
                             static_cast<double>(config_.topology.host_rate_bps));
      continue;
    }
    port.link.loss = config_.loss;
    port.link.control_loss = config_.control_loss;
    port.link.jitter = config_.jitter;
  }
}

void Fabric::divide(Lockstep& lockstep) {
  lockstep_ = &lockstep;
  for (Port& port : ports_) port.link.crosses = !lockstep.has(topology_, port.link.to);
}

void Fabric::offer(std::uint32_t number, NetPacket* packet, Picoseconds now) {
  if (NetPacket* dropped = ports_[number].enqueue(packet, chance_[number].near, now);
      dropped != nullptr) {
    pool_.give_back(dropped);
  }
  serve(number, now);
}

// Sends the next packet if the link is free. A NIC hears of every packet that has left; a switch
// port only has to come back when something waits.
void Fabric::serve(std::uint32_t number, Picoseconds now) {
  Port& port = ports_[number];
  if (port.busy) return;
  if (now >= port.free_at) {
    NetPacket* packet = port.dequeue(chance_[number].near, now);
    if (packet == nullptr) return;
    port.free_at = now + serialization(packet->wire_bytes, port.link.rate_bps);
    Picoseconds delay = port.link.delay;
    if (port.link.jitter > 0) {
      const auto most = static_cast<std::uint64_t>(port.link.jitter);
      delay += static_cast<Picoseconds>(chance_[number].near.below(most + 1));
    }
    carry(number, packet, port.free_at + delay, now);
  }
  if (port.empty() && !port.link.from_host) return;
  port.busy = true;
  events_.push(port.free_at, EventKind::PortFree, first_event_ + number);
}

// The packet is on the link until it arrives.
void Fabric::carry(std::uint32_t number, NetPacket* packet, Picoseconds until, Picoseconds now) {
  Port& port = ports_[number];
  if (!port.link.up) return swallow(port, packet, now);
  if (!port.link.crosses) {
    return events_.push(until, EventKind::Arrival, first_event_ + number, packet);
  }
  const std::uint32_t rank = topology_.part_of(port.link.to, lockstep_->ranks());
  lockstep_->send(rank, until, first_event_ + number, *packet);
  pool_.give_back(packet);
}

bool Fabric::port_is_free(std::uint32_t number, Picoseconds now) {
  ports_[number].busy = false;
  serve(number, now);
  return ports_[number].link.from_host;
}

// A link that is down does it.
void Fabric::swallow(Port& port, NetPacket* packet, Picoseconds now) {
  ++port.counters.lost;
  meter_.on_swallowed(*packet, now - begin_);
  pool_.give_back(packet);
}

bool Fabric::is_lost(const Port::Link& link, bool control, Rng& rng) {
  return (link.loss > 0 && rng.chance(link.loss)) ||
         (control && link.control_loss > 0 && rng.chance(link.control_loss));
}

NetPacket* Fabric::arrive(std::uint32_t number, NetPacket* packet, Picoseconds now) {
  Port& port = ports_[number];
  const Port::Link& link = port.link;
  if (!link.up) {
    swallow(port, packet, now);
    return nullptr;
  }
  const bool control = packet->traffic_class != TrafficClass::Data;
  Rng& rng = chance_[number].far;
  if (is_lost(link, control, rng)) {
    ++port.counters.lost;
    pool_.give_back(packet);
    return nullptr;
  }
  if (topology_.is_host(link.to)) {
    if (control && config_.garbage > 0 && rng.chance(config_.garbage)) {
      spoilt_ += spoil(*packet, config_.garbage_kind, rng) ? 1 : 0;
    }
    return packet;
  }
  const std::uint32_t next = topology_.route(link.to, *packet, ports_, rng);
  if (next != Topology::kNoPort) {
    offer(next, packet, now);
    return nullptr;
  }
  ++unroutable_;
  pool_.give_back(packet);
  return nullptr;
}

void Fabric::apply(const Fault& fault) {
  for (const std::uint32_t number : {fault.port, topology_.reverse(fault.port)}) {
    Port::Link& link = ports_[number].link;
    switch (fault.kind) {
      case Fault::Kind::Down:
        link.up = false;
        break;
      case Fault::Kind::Up:
        link.up = true;
        link.avoided = false;
        break;
      case Fault::Kind::Avoid:
        link.avoided = true;
        break;
      case Fault::Kind::Rate:
        link.rate_bps = fault.rate_bps;
        break;
      case Fault::Kind::PlaneDown:
      case Fault::Kind::PlaneLost:
      case Fault::Kind::PlaneUp:
        break;  // Network's
    }
  }
  topology_.set_any_avoided(std::any_of(ports_.begin(), ports_.end(),
                                        [](const Port& port) { return port.link.avoided; }));
}

}  // namespace uet::netsim
