// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One direction of the simulated network between two nodes: decides when the copies of a packet
// arrive, if at all. Knows lengths and the ECN field of packets, never their contents.
#pragma once

#include <cstdint>

#include "base/rng.h"
#include "uet/base/time.h"
#include "uet/base/types.h"

namespace uet::sim {

// Probabilities are per packet, 0 to 1; they apply only while faults are on.
struct LinkConfig {
  std::uint64_t rate_bps = 10'000'000'000;
  Duration latency = std::chrono::microseconds(5);
  Duration jitter{0};                   // extra delay, uniform from 0 to this; may reorder
  std::uint64_t queue_bytes = 1 << 20;  // what may wait; beyond it packets are dropped
  std::uint64_t ecn_threshold_bytes = UINT64_MAX;  // queue length that marks ECT packets with CE
  double loss = 0;
  double duplication = 0;
  double reordering = 0;  // the packet is held back by reorder_delay
  double corruption = 0;  // arrives broken
  // Trimmable packets arrive without payload, also if the queue is too full for the whole packet.
  // Packets that take part in ECN are trimmable: data (PDS-152).
  double trimming = 0;
  // Packets of more bytes on the wire are lost (a path-MTU black hole): while faults are on, or for
  // ever.
  std::uint32_t largest_packet = UINT32_MAX;
  bool largest_packet_stays = false;
  Duration reorder_delay = std::chrono::microseconds(50);
};

struct LinkCounters {
  std::uint64_t lost = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t reordered = 0;
  std::uint64_t queue_drops = 0;
  std::uint64_t marked = 0;
  std::uint64_t trimmed = 0;
  std::uint64_t partition_drops = 0;
  std::uint64_t too_large = 0;  // for largest_packet
};

class SimLink {
 public:
  // The fate of one packet: `copies` arrivals, each with its time and the ECN field to report.
  struct Fate {
    int copies = 0;
    Time arrival[2];
    Ecn ecn = Ecn::NotEct;
    bool trimmed = false;
    bool damaged = false;  // some of its bits are wrong
  };

  SimLink(const LinkConfig& config, std::uint64_t seed) : config_(config), rng_(seed) {}

  // `bytes` on the wire. Calls come with `now` that never goes back.
  Fate send(std::uint32_t bytes, Ecn ecn, Time now);

  void set_config(const LinkConfig& config) { config_ = config; }
  const LinkConfig& config() const { return config_; }
  void set_faults(bool on) { faults_ = on; }  // loss, duplication, reordering, corruption
  void set_up(bool up) { up_ = up; }          // false: a partition swallows everything
  const LinkCounters& counters() const { return counters_; }

 private:
  LinkConfig config_;
  Rng rng_;
  Time free_at_{};  // when everything sent so far has left
  bool faults_ = true;
  bool up_ = true;
  LinkCounters counters_;
};

// Time that `bytes` take at `rate_bps`.
constexpr Duration serialization_time(std::uint64_t bytes, std::uint64_t rate_bps) {
  return Duration(static_cast<std::int64_t>(bytes * 8'000'000'000ULL / rate_bps));
}

}  // namespace uet::sim
