// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "netsim/outcome.h"

#include <sys/resource.h>

#include <algorithm>

namespace uet::netsim {
namespace {

HostOutcome outcome_of(const Host& host, const pds::Counters& pds) {
  return {.requests_sent = pds.requests_sent,
          .rto_retransmissions = pds.rto_retransmissions,
          .nack_retransmissions = pds.nack_retransmissions,
          .inferred_retransmissions = pds.inferred_loss_retransmissions,
          .duplicates = pds.duplicates_dropped + pds.duplicates_acked,
          .acks_sent = pds.acks_sent,
          .pdcs = pds.pdcs_opened + pds.pdcs_accepted,
          .pend_sent = pds.pend_sent,
          .restores_sent = pds.restores_sent,
          .blocked_by_window_ns = pds.blocked_by_window_ns,
          .blocked_by_credit_ns = pds.blocked_by_credit_ns,
          .receive_drops = host.receive_drops(),
          .last_receive_drop = host.last_receive_drop(),
          .most_unread_bytes = host.most_unread_bytes()};
}

void count_ports(const Fabric& fabric, PortsOutcome& ports) {
  for (const Port& port : fabric.ports()) {
    const PortCounters& counters = port.counters;
    ports.trims += counters.trims;
    ports.marks += counters.marks;
    ports.data_drops += counters.data_drops;
    ports.control_drops += counters.control_drops;
    ports.lost += counters.lost;
    if (port.link.from_host) continue;
    ports.bytes += counters.bytes;
    ports.control_bytes += counters.control_bytes;
    QueueResult& queue = port.link.last_hop ? ports.last_hop_queue : ports.switch_queue;
    queue.add(
        {.max = static_cast<double>(counters.max_data_bytes), .mean = counters.mean_data_bytes()});
  }
  ports.unroutable += fabric.unroutable();
  ports.spoilt += fabric.spoilt();
}

// The numbers of a part that are not lists.
struct Totals {
  PortsOutcome ports;
  cms::Counters cms;
  std::uint64_t events = 0;
  std::uint64_t memory_bytes = 0;
};

// Encodes the outcome of this rank: of flows and hosts its own alone, in the order of their
// numbers.
Bytes part_as_bytes(const Network& network, const Outcome& part) {
  Bytes bytes;
  append(bytes, Totals{.ports = part.ports,
                       .cms = part.cms,
                       .events = part.events,
                       .memory_bytes = part.memory_bytes});
  for (std::size_t i = 0; i < part.flows.size(); ++i) {
    if (network.has_host(part.traffic->flows[i].source)) append(bytes, part.flows[i]);
  }
  for (std::size_t i = 0; i < part.hosts.size(); ++i) {
    if (network.has_host(i)) append(bytes, part.hosts[i]);
  }
  part.meter.append_to(bytes);
  for (const Violation& violation : part.violations) {
    append(bytes, violation.at);
    append(bytes, violation.key);
    append(bytes, violation.text.size());
    append_bytes(bytes, std::as_bytes(std::span(violation.text)));
  }
  return bytes;
}

void add_part(Network& network, std::uint32_t rank, Reader reader, Outcome& whole) {
  const Topology& topology = network.fabric().topology();
  const auto is_there = [&](std::uint32_t host) {
    return topology.part_of(host, network.lockstep().ranks()) == rank;
  };
  const auto totals = reader.take<Totals>();
  whole.ports.add(totals.ports);
  whole.cms.add(totals.cms);
  whole.events += totals.events;
  whole.memory_bytes += totals.memory_bytes;
  for (std::size_t i = 0; i < whole.flows.size(); ++i) {
    if (is_there(whole.traffic->flows[i].source)) whole.flows[i] = reader.take<FlowRecord>();
  }
  for (std::uint32_t i = 0; i < whole.hosts.size(); ++i) {
    if (is_there(i)) whole.hosts[i] = reader.take<HostOutcome>();
  }
  whole.meter.add(reader);
  while (!reader.done()) {
    Violation violation;
    violation.at = reader.take<Picoseconds>();
    violation.key = reader.take<std::uint64_t>();
    const auto text = reader.take(reader.take<std::size_t>());
    violation.text.assign(reinterpret_cast<const char*>(text.data()), text.size());
    whole.violations.push_back(std::move(violation));
  }
}

// As if one rank had met them all.
void order(std::vector<Violation>& violations) {
  std::ranges::stable_sort(violations, [](const Violation& a, const Violation& b) {
    return a.at != b.at ? a.at < b.at : a.key < b.key;
  });
  if (violations.size() > Network::kMostViolations) violations.resize(Network::kMostViolations);
}

}  // namespace

void QueueResult::add(const QueueResult& other) {
  if (other.max > max || (other.max == max && other.mean > mean)) *this = other;
}

void PortsOutcome::add(const PortsOutcome& other) {
  trims += other.trims;
  marks += other.marks;
  data_drops += other.data_drops;
  control_drops += other.control_drops;
  lost += other.lost;
  unroutable += other.unroutable;
  spoilt += other.spoilt;
  bytes += other.bytes;
  control_bytes += other.control_bytes;
  switch_queue.add(other.switch_queue);
  last_hop_queue.add(other.last_hop_queue);
}

std::uint64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

Outcome outcome_of(const Network& network) {
  Outcome outcome{.traffic = &network.traffic(),
                  .begin = network.begin(),
                  .end = network.now(),
                  .flows = network.flows(),
                  .hosts = std::vector<HostOutcome>(network.host_count()),
                  .ports = {},
                  .cms = {},
                  .meter = network.meter(),
                  .events = network.events(),
                  .memory_bytes = peak_memory_bytes(),
                  .violations = network.violations()};
  for (std::uint32_t plane = 0; plane < network.config().planes; ++plane) {
    count_ports(network.fabric(plane), outcome.ports);
  }
  for (std::size_t i = 0; i < network.host_count(); ++i) {
    if (!network.has_host(i)) continue;
    const fep::Stats stats = network.host(i).fep().stats();
    outcome.cms.add(stats.cms);
    outcome.hosts[i] = outcome_of(network.host(i), stats.pds);
  }
  order(outcome.violations);
  return outcome;
}

Outcome gather_outcome(Network& network, bool own_process) {
  Outcome whole = outcome_of(network);
  Lockstep& lockstep = network.lockstep();
  if (lockstep.ranks() == 1) return whole;
  if (!own_process && lockstep.rank() > 0) whole.memory_bytes = 0;
  const std::vector<Bytes> parts =
      lockstep.gather(lockstep.rank() == 0 ? Bytes{} : part_as_bytes(network, whole));
  for (std::uint32_t rank = 1; rank < parts.size(); ++rank) {
    add_part(network, rank, Reader(parts[rank]), whole);
  }
  order(whole.violations);
  return whole;
}

}  // namespace uet::netsim
