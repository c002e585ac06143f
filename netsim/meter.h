// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What is counted by pair of hosts in a part of a run only: bytes that arrive between two points of
// time, and packets that take a way which is known not to lead anywhere. Decides nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "netsim/clock.h"
#include "netsim/exchange.h"
#include "netsim/packet.h"

namespace uet::netsim {

class Meter {
 public:
  // Of time since the beginning of the run. Rates: those of [rates_from, rates_until), which may be
  // empty. `avoid_from`: from then on senders should know which links have failed.
  Meter(Picoseconds rates_from, Picoseconds rates_until, Picoseconds avoid_from)
      : rates_from_(rates_from), rates_until_(rates_until), avoid_from_(avoid_from) {}

  void on_sent(const NetPacket& packet, Picoseconds now) {
    if (now >= avoid_from_ && is_data(packet)) ++pairs_[key(packet)].sent;
  }
  // An untrimmed data packet has arrived. A spurious retransmission counts a second time.
  void on_delivered(const NetPacket& packet, Picoseconds now) {
    if (now < rates_from_ || now >= rates_until_ || !is_data(packet)) return;
    pairs_[key(packet)].arrived_bytes += packet.wire_bytes;
  }
  // By a link that is down.
  void on_swallowed(const NetPacket& packet, Picoseconds now) {
    if (!is_data(packet)) return;
    last_swallowed_ = now;
    Pair& pair = pairs_[key(packet)];
    pair.affected = true;
    if (now >= avoid_from_) ++pair.swallowed;
  }

  // Rate at which data arrived, packets as they are on the wire; 0 without an interval.
  double gbps(std::uint32_t source, std::uint32_t destination) const {
    const auto pair = pairs_.find(key(source, destination));
    if (pair == pairs_.end() || rates_until_ <= rates_from_) return 0;
    return static_cast<double>(pair->second.arrived_bytes) * 8e-3 /
           microseconds(rates_until_ - rates_from_);
  }
  // The same of all pairs together.
  double gbps() const {
    std::uint64_t bytes = 0;
    for (const auto& [key, pair] : pairs_) bytes += pair.arrived_bytes;
    return rates_until_ > rates_from_
               ? static_cast<double>(bytes) * 8e-3 / microseconds(rates_until_ - rates_from_)
               : 0;
  }
  // For another rank, whose meter adds it.
  void append_to(Bytes& bytes) const {
    append(bytes, last_swallowed_);
    append(bytes, pairs_.size());
    for (const auto& [key, pair] : pairs_) {
      append(bytes, key);
      append(bytes, pair);
    }
  }
  void add(Reader& reader) {
    last_swallowed_ = std::max(last_swallowed_, reader.take<Picoseconds>());
    for (auto left = reader.take<std::size_t>(); left > 0; --left) {
      Pair& pair = pairs_[reader.take<std::uint64_t>()];
      const auto other = reader.take<Pair>();
      pair.arrived_bytes += other.arrived_bytes;
      pair.sent += other.sent;
      pair.swallowed += other.swallowed;
      pair.affected |= other.affected;
    }
  }

  Picoseconds last_swallowed() const { return last_swallowed_; }
  // Of what the pairs sent that lost anything to a link which is down: the part that still took
  // such a link when it should have been known.
  double dead_share() const {
    std::uint64_t sent = 0, swallowed = 0;
    for (const auto& [key, pair] : pairs_) {
      if (!pair.affected) continue;
      sent += pair.sent;
      swallowed += pair.swallowed;
    }
    return sent > 0 ? static_cast<double>(swallowed) / static_cast<double>(sent) : 0;
  }

 private:
  struct Pair {
    std::uint64_t arrived_bytes = 0;
    std::uint64_t sent = 0;       // since avoid_from_, as is
    std::uint64_t swallowed = 0;  // this
    bool affected = false;
  };

  static bool is_data(const NetPacket& packet) {
    return packet.traffic_class == TrafficClass::Data && !packet.trimmed;
  }
  static std::uint64_t key(std::uint32_t source, std::uint32_t destination) {
    return std::uint64_t{source} << 32 | destination;
  }
  static std::uint64_t key(const NetPacket& packet) {
    return key(packet.source, packet.destination);
  }

  Picoseconds rates_from_, rates_until_, avoid_from_;
  Picoseconds last_swallowed_ = 0;
  std::unordered_map<std::uint64_t, Pair> pairs_;
};

}  // namespace uet::netsim
