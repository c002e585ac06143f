// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One end of a link that sends: the queues in front of it, and what they do to packets (CMS 1.4,
// CMS-500 to 502, CMS-804). When a packet leaves is the network's business, which one is decided
// here.
#pragma once

#include <array>
#include <cstdint>

#include "base/prefetch.h"
#include "base/rng.h"
#include "netsim/clock.h"
#include "netsim/packet.h"

namespace uet::netsim {

enum class Scheduling : std::uint8_t {
  Strict,    // control always first
  Weighted,  // after ten control packets one of data (CMS-13)
};

// Thresholds count the bytes of data that wait, without the packet that is being sent.
struct QueueConfig {
  double ecn_low_bytes = 0;   // marks begin; above ecn_high_bytes every packet is marked
  double ecn_high_bytes = 0;  // 0 = no marking
  std::uint64_t data_limit_bytes = UINT64_MAX;     // beyond it data are trimmed or dropped
  std::uint64_t control_limit_bytes = UINT64_MAX;  // of each other class
  bool trimming = false;
  bool separate_trimmed = false;  // trimmed packets in a class of their own: up to half the link
  Scheduling scheduling = Scheduling::Weighted;
};

struct PortCounters {
  std::uint64_t packets = 0;  // sent
  std::uint64_t bytes = 0;
  std::uint64_t control_bytes = 0;
  std::uint64_t marks = 0;
  std::uint64_t trims = 0;
  std::uint64_t data_drops = 0;
  std::uint64_t control_drops = 0;  // control and trimmed
  std::uint64_t lost = 0;           // on the link: faults
  std::uint64_t max_data_bytes = 0;
  double busy_ps = 0;       // time with data waiting
  double data_byte_ps = 0;  // bytes that waited, times how long
  double mean_data_bytes() const { return busy_ps > 0 ? data_byte_ps / busy_ps : 0; }
};

class Port {
 public:
  // Where the link leads; set when the network is built.
  struct Link {
    std::uint64_t rate_bps = 100'000'000'000;
    Picoseconds delay = kPsPerUs;
    std::uint32_t to = 0;     // node
    bool from_host = false;   // a NIC's
    bool last_hop = false;    // leads to a host
    double loss = 0;          // of every packet
    double control_loss = 0;  // of packets that are not data, besides
    Picoseconds jitter = 0;   // extra delay, uniform up to this: breaks the order of a path
    bool up = true;
    bool avoided = false;  // routing knows that it is down
    bool crosses = false;  // leads to a node of another rank (Lockstep)
  };

  // Queues the packet, or trims it or the youngest that waits. Returns the packet to drop, if any.
  [[nodiscard]] NetPacket* enqueue(NetPacket* packet, Rng& rng, Picoseconds now);
  // The next packet to send, marked if it must be; nullptr if none waits.
  NetPacket* dequeue(Rng& rng, Picoseconds now);

  // Fetches the packets that may be next into the processor's caches.
  void prefetch_packets() const {
    for (const Queue& queue : queues_) uet::prefetch(queue.first, sizeof(void*));
  }

  bool empty() const { return waiting_ == 0; }
  std::uint32_t waiting(TrafficClass of) const { return queues_[index(of)].packets; }
  std::uint64_t waiting_bytes(TrafficClass of) const { return queues_[index(of)].bytes; }

  Link link;
  QueueConfig config;
  Picoseconds free_at = 0;  // when the packet that is being sent has left
  bool busy = false;        // a PortFree event is on its way
  PortCounters counters;

 private:
  struct Queue {
    NetPacket* first = nullptr;
    NetPacket* last = nullptr;
    std::uint32_t packets = 0;
    std::uint64_t bytes = 0;
  };
  static constexpr std::size_t index(TrafficClass of) { return static_cast<std::size_t>(of); }

  void push(NetPacket* packet);
  NetPacket* pop(Queue& queue);
  NetPacket* pop_last(Queue& queue);
  [[nodiscard]] NetPacket* admit_control(NetPacket* packet);
  void trim(NetPacket* packet);
  Queue& choose();
  bool marks(Rng& rng) const;
  void account(Picoseconds now);

  std::array<Queue, kTrafficClasses> queues_;
  std::uint32_t waiting_ = 0;
  std::uint32_t control_run_ = 0;  // control packets in a row while data waited
  bool trimmed_last_ = false;      // the last packet was of the class Trimmed
  Picoseconds accounted_ = 0;
};

}  // namespace uet::netsim
