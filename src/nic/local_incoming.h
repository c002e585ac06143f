// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The receiving ends of rings from other processes of this host (local.h), in the order in which
// the connections were accepted. Bounds the cost of strangers: all connections, the connections of
// one process, and the connections without an offer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "nic/local_messages.h"
#include "nic/shared_memory.h"
#include "nic/shared_ring.h"
#include "nic/socket.h"
#include "uet/base/address.h"
#include "uet/base/packet.h"
#include "uet/base/time.h"
#include "uet/nic/memory_ranges.h"
#include "uet/nic/nic.h"

namespace uet::nic {

struct LocalIncoming {
  // `connection`: a socket of accept_local.
  explicit LocalIncoming(FileDescriptor connection);

  FepAddress peer;
  std::uint16_t id = 0;
  LocalInstance instance;
  Time accepted{};
  FileDescriptor socket;
  FileDescriptor process;
  std::optional<SharedMemory> memory;  // empty until the peer's offer
  std::optional<RingConsumer> ring;
  bool woken = false;   // a message that wakes is in the socket
  bool ended = false;   // packets still in the ring are taken, then this connection is freed
  bool broken = false;  // no more packets can be taken

  // Fixes the end of the ring: packets that an ended peer writes later are ignored.
  void stop();
  bool is_open() const { return ring && !ended; }
  bool is_silent() const { return !ring && !ended; }
  bool is_drained() const { return !ring || broken || ring->taken(); }
};

class LocalIncomings {
 public:
  // Each takes two descriptors: together at most half of the descriptors of the process.
  static constexpr std::size_t kMost = 4096;
  // Connections without an offer: so many, for so long.
  static constexpr std::size_t kMostSilent = 64;
  static constexpr Duration kOfferTime = std::chrono::seconds(1);

  // `descriptors`: how many descriptors the process may have.
  explicit LocalIncomings(std::size_t descriptors);

  bool empty() const { return list_.empty(); }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  // nullptr: there is none.
  LocalIncoming* find(std::uint16_t id) const;
  // A ring of this peer NIC has not been freed yet.
  bool has_ring_of(const LocalInstance& instance) const;

  // One process may have a quarter of all connections.
  bool has_room_for(const LocalInstance& peer) const;
  // The rings of all, for Nic::shared_memory().
  const MemoryRanges& memory() const { return memory_; }

  // May throw bad_alloc.
  LocalIncoming& add(std::unique_ptr<LocalIncoming> from);
  // The ring of a connection that add() has taken.
  void attach(LocalIncoming& from, SharedMemory memory);

  // The packets handed out before are no longer read.
  void release();
  // Hands out packets of all rings in turn, beginning with another one at each call; returns how
  // many. `on_broken(LocalIncoming&)`: its peer has written an impossible value.
  template <class OnBroken>
  std::size_t take(std::span<RxPacket> out, NicCounters& counters, OnBroken on_broken);

  // Calls `finish(LocalIncoming&)` for connections without an offer that are too old or too many.
  template <class Finish>
  void finish_silent(Time now, Finish finish);
  // An ended connection has packets left, or is not freed yet.
  bool any_ended() const { return any_ended_; }
  void stop(LocalIncoming& from) {
    from.stop();
    any_ended_ = true;
  }
  // Frees ended connections without packets; `on_free(LocalIncoming&)` is called before. Only at
  // the beginning of a burst, when the packets handed out are no longer read.
  template <class OnFree>
  void free_drained(OnFree on_free);

 private:
  std::size_t silent() const;

  const std::size_t most_;
  std::vector<std::unique_ptr<LocalIncoming>> list_;
  MemoryRanges memory_;
  std::size_t first_ = 0;  // of list_, the one to begin with
  bool any_ended_ = false;
};

template <class OnBroken>
std::size_t LocalIncomings::take(std::span<RxPacket> out, NicCounters& counters,
                                 OnBroken on_broken) {
  std::size_t filled = 0;
  const std::size_t rings = list_.size();
  if (++first_ >= rings) first_ = 0;
  for (std::size_t i = 0; i < rings && filled < out.size(); ++i) {
    const std::size_t at = first_ + i;
    LocalIncoming& from = *list_[at < rings ? at : at - rings];
    // Packets of another process at a lost peer's address wait until the loss has been reported.
    if (!from.ring || from.broken || from.ended != any_ended_) continue;
    if (!from.ended) from.ring->look();
    while (filled < out.size()) {
      RxPacket& packet = out[filled];
      const RingConsumer::Next next = from.ring->next(packet);
      if (next == RingConsumer::Next::Broken) {
        from.broken = true;
        on_broken(from);
      }
      if (next != RingConsumer::Next::Packet) break;
      packet.source = from.peer;
      packet.connection = from.id;
      if (packet.entropy == 0) packet.entropy = from.peer.port;
      counters.bytes_received += packet.bytes.size();
      ++filled;
    }
  }
  counters.packets_received += filled;
  counters.local_packets_received += filled;
  return filled;
}

template <class Finish>
void LocalIncomings::finish_silent(Time now, Finish finish) {
  std::size_t left = silent();
  for (const auto& from : list_) {
    if (left == 0) return;
    if (!from->is_silent()) continue;
    if (left > kMostSilent || now - from->accepted >= kOfferTime) finish(*from);
    --left;
  }
}

template <class OnFree>
void LocalIncomings::free_drained(OnFree on_free) {
  any_ended_ = false;
  std::erase_if(list_, [&](const std::unique_ptr<LocalIncoming>& from) {
    if (!from->ended) return false;
    if (!from->is_drained()) {
      any_ended_ = true;
      return false;
    }
    on_free(*from);
    if (from->memory) memory_.remove(from->memory->bytes().data());
    return true;
  });
}

}  // namespace uet::nic
