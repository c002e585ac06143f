// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Hosts, switches and links under one virtual clock: the event loop. One thread; a run is a
// function of configuration, traffic and seed (CMS-800).
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
#include "netsim/fabric.h"
#include "netsim/flow_table.h"
#include "netsim/host.h"
#include "netsim/meter.h"
#include "netsim/network_config.h"
#include "netsim/packet.h"
#include "netsim/shared_pages.h"
#include "netsim/traffic.h"

namespace uet::netsim {

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
  const std::vector<FlowRecord>& flows() const { return flows_.records(); }
  const Fabric& fabric() const { return fabric_; }
  const NetworkConfig& config() const { return config_; }
  std::size_t host_count() const { return hosts_.size(); }
  const Host& host(std::size_t number) const { return *hosts_[number]; }
  const Meter& meter() const { return meter_; }
  std::uint64_t events() const { return events_done_; }
  // The first few violations of the properties of CMS 8.4; empty if there were none.
  const std::vector<std::string>& violations() const { return violations_; }
  void violation(const std::string& what);

  // For hosts.
  NetPacketPool& pool() { return pool_; }
  std::byte* memory() { return memory_.data(); }
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
  void make_hosts();
  void handle(const Event& event);
  void arrive(std::uint32_t port, NetPacket* packet);
  void start_flow(std::uint32_t flow);
  void prefetch() const;
  void prefetch_way(const Event& arrival) const;
  bool quiet() const;

  const NetworkConfig config_;
  const Traffic& traffic_;
  SharedPages memory_;
  std::vector<std::byte> view_;
  Picoseconds now_ = 1'000 * kPsPerUs;  // not 0, which the core may take for a time in the past
  Picoseconds begin_ = now_;
  EventQueue events_;
  NetPacketPool pool_;
  Checks checks_;
  Meter meter_;
  Fabric fabric_;
  FlowTable flows_;
  std::function<void()> sample_;  // empty: no samples are taken
  Picoseconds sample_interval_ = 0;
  Picoseconds next_sample_ = kPsNever;
  std::uint64_t events_done_ = 0;
  std::vector<std::string> violations_;
  std::vector<std::unique_ptr<Host>> hosts_;  // go first
};

}  // namespace uet::netsim
