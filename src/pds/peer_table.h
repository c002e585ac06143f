// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Counts for each peer, for statistics alone: no decision reads them. A peer is a remote FEP; its
// counts outlive its PDCs and congestion contexts, until the table needs the space.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <unordered_map>

#include "uet/base/address.h"
#include "uet/base/intrusive_list.h"
#include "uet/base/time.h"
#include "uet/wire/pds.h"

namespace uet::pds {

// Of RUD, ROD and RUDI, except where a member says less. Bytes are nominal (CMS-6).
// NACKs of a peer by NackCode. Most peers send none, and need no memory for them.
class PeerNacks {
 public:
  static constexpr std::size_t kCodes = 32;
  // The last element counts all codes from there on.
  using Counts = std::array<std::uint64_t, kCodes>;

  // Not counted if there is no memory.
  void count(wire::NackCode code) {
    if (!counts_) counts_.reset(new (std::nothrow) Counts{});
    if (!counts_) return;
    const auto index = static_cast<std::size_t>(code);
    ++(*counts_)[index < kCodes ? index : kCodes - 1];
  }
  Counts counts() const { return counts_ ? *counts_ : Counts{}; }

 private:
  std::unique_ptr<Counts> counts_;
};

struct PeerCounters {
  std::uint64_t packets_sent = 0;  // requests and control packets with a PSN, retransmissions too
  std::uint64_t bytes_sent = 0;
  std::uint64_t packets_received = 0;  // requests of RUD and ROD
  std::uint64_t bytes_received = 0;
  std::uint64_t acks_received = 0;
  std::uint64_t rto_retransmissions = 0;
  std::uint64_t nack_retransmissions = 0;
  std::uint64_t inferred_loss_retransmissions = 0;
  std::uint64_t marks_received = 0;    // ACKs that echo ECN CE
  std::uint64_t trimmed_received = 0;  // requests that a switch has trimmed
  PeerNacks nacks_received;
  Duration rtt{};     // of the newest valid sample; 0: none yet
  Time last_heard{};  // a request, ACK or NACK of RUD or ROD came; Time{}: none yet
};

struct IdlePeerTag;

struct Peer : ListNode<IdlePeerTag> {
  FepAddress address;
  PeerCounters counts;
  std::uint32_t users = 0;   // congestion contexts
  std::size_t position = 0;  // in the list that is being made (Inspection::list_peers)
};

// The gauges of one peer at one moment, and its counts.
struct PeerView {
  const Peer* peer = nullptr;  // valid until the next call of the Manager
  std::uint32_t pdcs = 0;
  Duration base_rtt{};  // the longest of its contexts; 0: not known
  // Sums over its congestion contexts.
  std::uint64_t window_bytes = 0;
  std::int64_t inflight_bytes = 0;
  std::int64_t credit_bytes = 0;  // 0 without RCCC
  std::uint64_t paths = 0;
  std::uint64_t paths_banned = 0;
  std::uint32_t packets_outstanding = 0;
  // First transmission of the oldest packet that the peer has not answered; Time{}: none is
  // outstanding.
  Time oldest_sent{};
};

class PeerTable {
 public:
  // `count`: peers that can have a context at once. As many again are remembered afterwards.
  explicit PeerTable(std::size_t count) : most_(2 * count) {}
  PeerTable(const PeerTable&) = delete;
  PeerTable& operator=(const PeerTable&) = delete;
  ~PeerTable() {
    while (!idle_.empty()) idle_.pop_front();
  }

  // The peer with one user more. May throw bad_alloc; then nothing has changed.
  Peer& join(const FepAddress& address);
  // One user less. The peer that has been without users for longest is forgotten if there are too
  // many.
  void leave(Peer& peer);

  std::size_t size() const { return peers_.size(); }
  // visit(Peer&) for each peer.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (auto& [address, peer] : peers_) visit(peer);
  }

 private:
  const std::size_t most_;
  std::unordered_map<FepAddress, Peer, FepAddressHash> peers_;
  IntrusiveList<Peer, IdlePeerTag> idle_;  // without users, the first to be forgotten first
};

}  // namespace uet::pds
