// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The event loop, and what happens to a packet from port to port.
#include "netsim/network.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>

#include "base/prefetch.h"
#include "cms/ccc.h"

namespace uet::netsim {
namespace {

constexpr std::size_t kMostViolations = 10;
constexpr std::uint64_t kReportEvents = 1 << 20;
constexpr std::size_t kViewBytes = 16384;

std::uint64_t largest_flow(const Traffic& traffic) {
  std::uint64_t largest = 0;
  for (const Flow& flow : traffic.flows) largest = std::max(largest, flow.bytes);
  return largest;
}

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

Network::Network(const NetworkConfig& config, const Traffic& traffic)
    : config_(config),
      traffic_(traffic),
      topology_(config.topology, config.seed),
      memory_(largest_flow(traffic)),
      view_(kViewBytes),
      rng_(config.seed),
      checks_(*this),
      meter_(config.rates_from, config.rates_until, config.avoid_from),
      records_(traffic.flows.size()) {
  make_ports();
  make_hosts();
  std::uint32_t last_trigger = 0;
  for (const Trigger& trigger : traffic.triggers) last_trigger = std::max(last_trigger, trigger.id);
  triggers_.resize(last_trigger + 1);
  for (const Trigger& trigger : traffic.triggers) triggers_[trigger.id].trigger = trigger;
  for (std::uint32_t i = 0; i < traffic.flows.size(); ++i) {
    const Flow& flow = traffic.flows[i];
    if (flow.trigger != 0) triggers_[flow.trigger].flows.push_back(i);
    if (flow.start) events_.push(now_ + *flow.start, EventKind::FlowStart, i);
  }
  for (std::uint32_t i = 0; i < config_.faults.size(); ++i) {
    events_.push(now_ + config_.faults[i].at, EventKind::Fault, i);
  }
}

Network::~Network() = default;

void Network::make_ports() {
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

void Network::make_hosts() {
  using Peer = std::tuple<std::uint32_t, bool, std::uint8_t>;  // PDCs of its own for each (CMS-2)
  std::vector<std::set<Peer>> to(traffic_.nodes), from(traffic_.nodes);
  std::vector<std::size_t> flows(traffic_.nodes);
  for (const Flow& flow : traffic_.flows) {
    to[flow.source].insert({flow.destination, flow.rod, flow.traffic_class});
    from[flow.destination].insert({flow.source, flow.rod, flow.traffic_class});
    ++flows[flow.source];
  }
  const std::uint64_t memory_bytes = largest_flow(traffic_);
  for (std::uint32_t i = 0; i < traffic_.nodes; ++i) {
    const fep::Config fep = host_config(i, to[i].size(), from[i].size(), flows[i]);
    hosts_.push_back(std::make_unique<Host>(*this, i, fep, config_.mode, memory_bytes));
  }
}

// Just as large as the traffic needs: there may be thousands of hosts.
fep::Config Network::host_config(std::uint32_t host, std::size_t destinations, std::size_t sources,
                                 std::size_t flows) const {
  constexpr std::size_t kMostMessages = 4096;
  constexpr std::size_t kMostPackets = 1 << 16;
  fep::Config fep = config_.fep;
  const std::size_t pdcs = fep.pds.pdcs_per_destination;
  // Twice as many: half of them are for peers that have not answered yet (Pdc::proved).
  fep.pds.pdc_count = std::min<std::size_t>(2 * (destinations + sources) * pdcs + 8, 65000);
  fep.pds.reserved_target_pdcs = 0;
  fep.pds.reserved_pool_pdcs = 0;
  fep.cms.link_rate_bps = topology_.links()[topology_.first_port(host)].rate_bps;
  if (config_.remote_rate_bps != 0) fep.cms.remote_rate_bps = config_.remote_rate_bps;
  const std::uint64_t rate_bytes_per_us = fep.cms.link_rate_bps / 8'000'000;
  const double rtt_us = to_us(fep.cms.base_rtt.value_or(fep.cms.default_base_rtt));
  const auto window =
      static_cast<std::size_t>(2 * static_cast<double>(rate_bytes_per_us) * rtt_us) /
          fep.cms.mtu_bytes +
      64;
  fep.packets = std::min((destinations + 1) * window * pdcs + 4 * sources + 512, kMostPackets);
  fep.buffers = 16;
  fep.memory_regions = 2;
  fep.ses.tx_messages = std::clamp<std::size_t>(flows, 4, kMostMessages);
  fep.ses.rx_messages = std::clamp<std::size_t>(2 * sources, 16, kMostMessages);
  fep.ses.posted_receives = fep.ses.return_messages = fep.ses.pulls = 16;
  fep.ses.contexts = 1 + destinations;
  fep.seed = config_.seed * 0x9E3779B97F4A7C15ULL + host;
  fep.ses.seed = fep.seed;
  return fep;
}

std::span<const std::byte> Network::view(const NetPacket& packet) {
  std::memcpy(view_.data(), packet.head.data(), packet.head_bytes);
  return {view_.data(), std::min<std::size_t>(packet.pds_bytes, view_.size())};
}

void Network::violation(const std::string& what) {
  if (violations_.size() < kMostViolations) {
    violations_.push_back("at " + std::to_string(microseconds(now_ - begin_)) + " us: " + what);
  }
}

// ---- packets ------------------------------------------------------------------------------------

void Network::send(NetPacket& packet) {
  checks_.on_sent(packet);
  meter_.on_sent(packet, now_ - begin_);
  offer(topology_.first_port(packet.source), &packet);
}

void Network::offer(std::uint32_t number, NetPacket* packet) {
  if (NetPacket* dropped = ports_[number].enqueue(packet, rng_, now_); dropped != nullptr) {
    pool_.give_back(dropped);
  }
  serve(number);
}

// Sends the next packet if the link is free. A NIC hears of every packet that has left; a switch
// port only has to come back when something waits.
void Network::serve(std::uint32_t number) {
  Port& port = ports_[number];
  if (port.busy) return;
  if (now_ >= port.free_at) {
    NetPacket* packet = port.dequeue(rng_, now_);
    if (packet == nullptr) return;
    port.free_at = now_ + serialization(packet->wire_bytes, port.link.rate_bps);
    Picoseconds delay = port.link.delay;
    if (port.link.jitter > 0) {
      delay +=
          static_cast<Picoseconds>(rng_.below(static_cast<std::uint64_t>(port.link.jitter) + 1));
    }
    if (port.link.up) {
      events_.push(port.free_at + delay, EventKind::Arrival, number, packet);
    } else {
      swallow(port, packet);
    }
  }
  if (port.empty() && !port.link.from_host) return;
  port.busy = true;
  events_.push(port.free_at, EventKind::PortFree, number);
}

// A link that is down does it.
void Network::swallow(Port& port, NetPacket* packet) {
  ++port.counters.lost;
  meter_.on_swallowed(*packet, now_ - begin_);
  pool_.give_back(packet);
}

void Network::arrive(std::uint32_t number, NetPacket* packet) {
  Port& port = ports_[number];
  const Port::Link& link = port.link;
  if (!link.up) return swallow(port, packet);
  const bool control = packet->traffic_class != TrafficClass::Data;
  const bool lost = (link.loss > 0 && rng_.chance(link.loss)) ||
                    (control && link.control_loss > 0 && rng_.chance(link.control_loss));
  if (lost) {
    ++port.counters.lost;
    pool_.give_back(packet);
    return;
  }
  if (topology_.is_host(link.to)) {
    if (control && config_.garbage > 0 && rng_.chance(config_.garbage)) {
      spoilt_ += spoil(*packet, config_.garbage_kind, rng_) ? 1 : 0;
    }
    if (link.to < hosts_.size()) return hosts_[link.to]->arrive(*packet);
    pool_.give_back(packet);
    return;
  }
  const std::uint32_t next = topology_.route(link.to, *packet, ports_, rng_);
  if (next != Topology::kNoPort) return offer(next, packet);
  ++unroutable_;
  pool_.give_back(packet);
}

// ---- flows --------------------------------------------------------------------------------------

void Network::start_flow(std::uint32_t flow) {
  FlowRecord& record = records_[flow];
  if (record.started != kPsNever) return;
  record.started = now_;
  hosts_[traffic_.flows[flow].source]->start(flow);
}

void Network::finished(std::uint32_t flow, bool good) {
  if (flow >= records_.size() || records_[flow].started == kPsNever) {
    return violation("something completed that was never posted");
  }
  FlowRecord& record = records_[flow];
  if (record.finished != kPsNever) {
    return violation("flow " + std::to_string(flow) + " completed twice");
  }
  record.finished = now_;
  record.good = good;
  ++finished_;
  if (!good) violation("flow " + std::to_string(flow) + " ended with an error");
  if (const std::uint32_t trigger = traffic_.flows[flow].done_trigger; trigger != 0) fire(trigger);
}

// The flows start as events of their own: a completion comes in the middle of a Fep's pass.
void Network::fire(std::uint32_t id) {
  TriggerState& state = triggers_[id];
  ++state.told;
  const bool now = state.trigger.repeats || state.told == state.trigger.count;
  if (!now) return;
  for (const std::uint32_t flow : state.flows) events_.push(now_, EventKind::FlowStart, flow);
}

// ---- the loop -----------------------------------------------------------------------------------

void Network::apply(const Fault& fault) {
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
    }
  }
  topology_.set_any_avoided(std::any_of(ports_.begin(), ports_.end(),
                                        [](const Port& port) { return port.link.avoided; }));
}

void Network::handle(const Event& event) {
  switch (event.kind) {
    case EventKind::Arrival:
      arrive(event.subject, event.packet);
      break;
    case EventKind::PortFree: {
      Port& port = ports_[event.subject];
      port.busy = false;
      serve(event.subject);
      if (port.link.from_host) hosts_[event.subject]->sent();
      break;
    }
    case EventKind::Wake:
      hosts_[event.subject]->wake();
      break;
    case EventKind::Drain:
      hosts_[event.subject]->drain();
      break;
    case EventKind::FlowStart:
      start_flow(event.subject);
      break;
    case EventKind::Fault:
      apply(config_.faults[event.subject]);
      break;
  }
}

// Of thousands of hosts the caches hold nothing, and an event would wait for one line of memory
// after the other. So what it needs is fetched before, and before that what leads there.
void Network::prefetch() const {
  constexpr std::size_t kFar = 24, kNear = 16;  // events ahead
  if (const Event* event = events_.upcoming(kFar); event != nullptr) {
    const bool arrival = event->kind == EventKind::Arrival;
    if (arrival) prefetched(*event->packet);
    if (arrival || event->kind == EventKind::PortFree) prefetched(ports_[event->subject]);
    if (event->kind == EventKind::Wake) prefetched(*hosts_[event->subject]);
  }
  if (const Event* event = events_.upcoming(kNear); event != nullptr) {
    if (event->kind == EventKind::Arrival) prefetch_way(*event);
    if (event->kind == EventKind::PortFree) {
      const Port& port = ports_[event->subject];
      port.prefetch_packets();
      if (port.link.from_host) prefetched(*hosts_[event->subject]);
    }
  }
}

void Network::prefetch_way(const Event& arrival) const {
  const std::uint32_t node = ports_[arrival.subject].link.to;
  if (node < hosts_.size()) {
    prefetched(*hosts_[node]);
  } else if (!topology_.is_host(node)) {
    Rng rng = rng_;  // guesses, where switches spray
    const std::uint32_t next = topology_.route(node, *arrival.packet, ports_, rng);
    if (next != Topology::kNoPort) prefetched(ports_[next]);
  }
}

bool Network::quiet() const {
  return finished_ == records_.size() && pool_.in_use() == 0 &&
         std::all_of(hosts_.begin(), hosts_.end(),
                     [](const auto& host) { return host->fep().quiescent(); });
}

void Network::run(Picoseconds limit, const std::function<void(const Progress&)>& report) {
  const Picoseconds end = begin_ + limit;
  while (!events_.empty() && violations_.empty()) {
    if (events_.top().at > end) break;
    // The network empties itself before idle timers come, some of them seconds later.
    if (finished_ == records_.size() && pool_.in_use() == 0 && quiet()) break;
    const Event event = events_.pop();
    prefetch();
    now_ = event.at;
    if (now_ >= next_sample_) {
      sample_();
      next_sample_ = now_ + sample_interval_;
    }
    handle(event);
    if (++events_done_ % kReportEvents == 0 && report) {
      report(Progress{.now = now_ - begin_, .finished = finished_, .events = events_done_});
    }
  }
  checks_.at_end(finished_ == records_.size());
}

}  // namespace uet::netsim
