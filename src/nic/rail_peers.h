// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The peers of a RailsNic and the ways to them: which rails may be used, which have fallen silent,
// which are lost. A way to a peer is the same rail at both ends:
//
//   None      the peer has no such rail
//   Unproved  Hellos leave; Known came -> Up
//   Up        a packet left, and for kSilence none came by this rail: Hellos leave by this rail and
//               by another one; no answer by this one, and one by the other, which shows that the
//               peer takes packets -> Silent
//             Gone came -> Silent
//             Unknown came, as another process is there now -> Unproved
//   Silent    Hellos leave, also when the carrier is back or a packet came; Known came -> Up
//
// A rail without a carrier is used for no peer. Knows no packets and sends nothing itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "uet/base/address.h"
#include "uet/base/packet.h"
#include "uet/base/time.h"

namespace uet::nic {

class RailPeers {
 public:
  static constexpr std::size_t kMostRails = 1 + kMostFurtherAddresses;
  // A way over which nothing came for so long since a packet left by it is asked with a Hello. It
  // is not used after kAnswer without an answer, and kSilence after an answer by another rail.
  static constexpr Duration kSilence = std::chrono::milliseconds(1);
  static constexpr Duration kAnswer = std::chrono::milliseconds(2);
  // Between two Hellos to an address that does not answer: the first time, and at most.
  static constexpr Duration kFirstPause = std::chrono::milliseconds(5);
  static constexpr Duration kLongestPause = std::chrono::milliseconds(100);

  // The rail of packets to a peer to which none may be used.
  static constexpr std::uint8_t kLastResort = 0;

  enum class State : std::uint8_t { None, Unproved, Up, Silent };
  // To a peer over one rail.
  struct Way {
    FabricAddress ip;
    State state = State::None;
    Time unanswered{};  // the first packet left since the last one came; Time{}: none has
    Time asked{};       // when the Hello of this silence left; Time{}: none has
    Time heard{};       // when a Hello was answered over another rail since; Time{}: none was
    Time next_hello{};
    Duration pause = kFirstPause;
    bool expects = false;  // data has left since `unanswered`
    bool listed = false;   // in `unanswered_`
  };
  struct Peer {
    FepAddress first;
    std::array<Way, kMostRails> ways;
    Time last_arrival{};     // over any rail
    std::uint64_t pass = 0;  // the cookie of our Gone; 0: the peer has not given it yet
    bool stranded = false;   // packets took kLastResort, though it may not be used
  };
  using Hello = std::function<void(Peer&, std::size_t rail)>;

  // `hello` sends one by this rail, and outlives the object.
  RailPeers(std::size_t rails, Hello hello) : rails_(rails), hello_(std::move(hello)) {
    carrier_.fill(true);
  }

  bool empty() const { return peers_.empty(); }
  Peer* find(const FepAddress& first);
  // Made if there is none; its first address is Up.
  Peer& get(const FepAddress& first);
  // Nothing is known of the way but this.
  static void set(Way& way, const FabricAddress& ip, State state) {
    way = {.ip = ip, .state = state, .listed = way.listed};
  }

  // ---- what happens -----------------------------------------------------------------------------

  // `data`: the peer has to answer.
  void note_departure(Peer& peer, std::size_t rail, bool data, Time now);
  void note_arrival(Peer& peer, std::size_t rail, Time now);
  // It was the answer to a Hello: the peer takes packets.
  void note_answer(Peer& peer, std::size_t rail, Time now);
  // Packets that left by a rail without a carrier are lost, to all peers.
  void set_carrier(std::size_t rail, bool up);
  // The way, which is Up, is Silent from now on, and what left by it is lost.
  void leave(Peer& peer, std::size_t rail, Time next_hello);

  // A packet leaves. `usable`: by a rail that may be used; if not, it takes kLastResort. Packets
  // that took it so are lost when there is a rail again.
  void note_choice(Peer& peer, bool usable);

  // ---- questions --------------------------------------------------------------------------------

  bool carrier(std::size_t rail) const { return carrier_[rail]; }
  // May the next packet to the peer take this rail? Asks ways that are silent.
  bool may_use(Peer& peer, std::size_t rail, Time now);
  // One that works as far as known.
  std::optional<std::size_t> other_rail(const Peer& peer, std::size_t than) const;
  // Looks for ways that have fallen silent if it is time to. Their windows may be full of packets
  // that went there: then no packet that is to leave asks may_use().
  void look(Time now) {
    if (now >= next_look_) look_at_all(now);
  }
  Time next_look() const { return next_look_; }
  // As Nic::poll_lost_rail().
  std::optional<LostRail> poll_lost();
  template <class Each>
  void for_each(Each&& each) const {
    for (const auto& [first, peer] : peers_) each(peer);
  }

 private:
  struct Listed {
    Peer* peer;
    std::uint8_t rail;
  };

  bool answers(Peer& peer, std::size_t rail, Time now);
  static bool waits(const Peer& peer, const Way& way) {
    return way.unanswered != Time{} && (way.expects || peer.last_arrival > way.unanswered);
  }
  static Time due(const Way& way);
  void list(Peer& peer, std::size_t rail);
  void look_at_all(Time now);

  const std::size_t rails_;
  const Hello hello_;
  std::array<bool, kMostRails> carrier_;
  Time next_look_ = kNever;
  std::vector<LostRail> lost_;      // not polled yet
  std::vector<Listed> unanswered_;  // ways that wait for a packet of their peers
  std::unordered_map<FepAddress, Peer, FepAddressHash> peers_;  // by first address
};

}  // namespace uet::nic
