// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Hosts, switches and links under one virtual clock. Decides when a packet leaves a port and where
// it arrives; what is in it is the Feps' business. One thread; a run is a function of
// configuration, traffic and seed (CMS-800).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "netsim/checks.h"
#include "netsim/event_queue.h"
#include "netsim/garbage.h"
#include "netsim/host.h"
#include "netsim/meter.h"
#include "netsim/packet.h"
#include "netsim/port.h"
#include "netsim/shared_pages.h"
#include "netsim/topology.h"
#include "netsim/traffic.h"

namespace uet::netsim {

// Something that happens to a cable, both ways, at a point of time.
struct Fault {
  enum class Kind : std::uint8_t {
    Down,   // what is on it and what is sent to it vanishes
    Up,     // it carries packets again, and routing uses it
    Avoid,  // routing has learnt that it is down
    Rate,   // its rate changes to rate_bps
  };
  Picoseconds at = 0;
  std::uint32_t port = 0;  // one end of the cable
  Kind kind{};
  std::uint64_t rate_bps = 0;
};

struct NetworkConfig {
  TopologyConfig topology;
  QueueConfig queues;                               // of switch ports
  std::uint64_t last_hop_limit_bytes = UINT64_MAX;  // data_limit_bytes of those to hosts (CMS-32)
  bool ecn_on_last_hop = true;                      // off where receivers give credit (CMS-33)
  std::uint32_t overhead_bytes = 8;                 // on the wire, beside what PDS counts (CMS-809)
  std::uint32_t least_wire_bytes = 64;              // of a short packet
  fep::Config fep;  // of every host; sizes and seed are set by the network
  DeliveryMode mode = DeliveryMode::Rud;
  std::uint64_t remote_rate_bps =
      0;                    // of the peers' links, as far as hosts know it; 0 = they do not
  double loss = 0;          // of every packet, on every link between switches
  double control_loss = 0;  // of those that are not data, besides
  Picoseconds jitter = 0;   // extra delay of a packet on links between switches
  double garbage = 0;       // of the ACKs and Credits that reach hosts, spoilt as ...
  Garbage garbage_kind{};   // ... this says
  // Rate at which hosts take up arrived packets, 0 = at once; waiting packets fill
  // receive_pool_bytes, and a full pool drops packets. From drain_until on: the rate of the link.
  std::uint64_t drain_rate_bps = 0;
  std::uint64_t receive_pool_bytes = 1'000'000;
  Picoseconds drain_until = kPsNever;
  std::vector<Fault> faults;
  // The parts of the run in which Meter counts rates, and packets on failed links.
  Picoseconds rates_from = 0, rates_until = 0;
  Picoseconds avoid_from = kPsNever;
  std::uint64_t seed = 1;
};

struct FlowRecord {
  Picoseconds started = kPsNever;
  Picoseconds finished = kPsNever;
  bool good = true;
};

struct Progress {
  Picoseconds now = 0;
  std::size_t finished = 0;
  std::uint64_t events = 0;
};

class Network {
 public:
  // Traffic is one that complaint_about finds nothing wrong with, for at most topology's hosts.
  Network(const NetworkConfig& config, const Traffic& traffic);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // Until all flows are done and the network is empty, a check has failed, or `limit` is over.
  // `report` is called from time to time.
  void run(Picoseconds limit, const std::function<void(const Progress&)>& report);

  // To be called before run(): `sample` is called when the clock has passed another `interval`.
  void watch(Picoseconds interval, std::function<void()> sample) {
    sample_interval_ = interval;
    sample_ = std::move(sample);
    next_sample_ = now_;
  }

  Picoseconds now() const { return now_; }
  // When the clock started.
  Picoseconds begin() const { return begin_; }
  double simulated_us() const { return microseconds(now_ - begin_); }
  const Traffic& traffic() const { return traffic_; }
  const std::vector<FlowRecord>& flows() const { return records_; }
  const std::vector<Port>& ports() const { return ports_; }
  const Topology& topology() const { return topology_; }
  const NetworkConfig& config() const { return config_; }
  std::size_t host_count() const { return hosts_.size(); }
  const Host& host(std::size_t number) const { return *hosts_[number]; }
  const Meter& meter() const { return meter_; }
  std::uint64_t events() const { return events_done_; }
  std::uint64_t unroutable() const { return unroutable_; }
  std::uint64_t spoilt() const { return spoilt_; }
  // The first few violations of the properties of CMS 8.4; empty if there were none.
  const std::vector<std::string>& violations() const { return violations_; }
  void violation(const std::string& what);

  // For hosts.
  NetPacketPool& pool() { return pool_; }
  std::byte* memory() { return memory_.data(); }
  const Port& port_of_host(std::uint32_t host) const { return ports_[topology_.first_port(host)]; }
  std::uint32_t wire_bytes(std::uint32_t pds_bytes) const {
    return std::max(pds_bytes + config_.overhead_bytes, config_.least_wire_bytes);
  }
  void send(NetPacket& packet);
  void delivered(const NetPacket& packet) {
    checks_.on_delivered(packet);
    meter_.on_delivered(packet, now_ - begin_);
  }
  void drain_at(std::uint32_t host, Picoseconds at) { events_.push(at, EventKind::Drain, host); }
  void wake_at(std::uint32_t host, Picoseconds at) { events_.push(at, EventKind::Wake, host); }
  void finished(std::uint32_t flow, bool good);
  // Around each pass of a Fep (Checks).
  void before_pass(bool held) { checks_.before_pass(held); }
  void after_pass(std::uint32_t host) { checks_.after_pass(host); }
  // The packet as a NIC would show it: valid until the next call.
  std::span<const std::byte> view(const NetPacket& packet);

 private:
  void make_ports();
  void make_hosts();
  fep::Config host_config(std::uint32_t host, std::size_t destinations, std::size_t sources,
                          std::size_t flows) const;
  void handle(const Event& event);
  void prefetch() const;
  void prefetch_way(const Event& arrival) const;
  void arrive(std::uint32_t port, NetPacket* packet);
  void offer(std::uint32_t port, NetPacket* packet);
  void serve(std::uint32_t port);
  void swallow(Port& port, NetPacket* packet);
  void start_flow(std::uint32_t flow);
  void fire(std::uint32_t trigger);
  void apply(const Fault& fault);
  bool quiet() const;

  struct TriggerState {
    Trigger trigger;
    std::uint32_t told = 0;
    std::vector<std::uint32_t> flows;  // that it starts
  };

  const NetworkConfig config_;
  const Traffic& traffic_;
  Topology topology_;
  SharedPages memory_;
  std::vector<std::byte> view_;
  Rng rng_;
  Picoseconds now_ = 1'000 * kPsPerUs;  // not 0, which the core may take for a time in the past
  Picoseconds begin_ = now_;
  EventQueue events_;
  NetPacketPool pool_;
  std::vector<Port> ports_;
  Checks checks_;
  Meter meter_;
  std::function<void()> sample_;  // empty: no samples are taken
  Picoseconds sample_interval_ = 0;
  Picoseconds next_sample_ = kPsNever;
  std::vector<FlowRecord> records_;
  std::vector<TriggerState> triggers_;  // by id
  std::size_t finished_ = 0;
  std::uint64_t events_done_ = 0;
  std::uint64_t unroutable_ = 0;
  std::uint64_t spoilt_ = 0;  // NetworkConfig::garbage
  std::vector<std::string> violations_;
  std::vector<std::unique_ptr<Host>> hosts_;  // go first
};

}  // namespace uet::netsim
