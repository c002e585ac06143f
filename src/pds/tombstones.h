// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PDCs that have ended, remembered for a while (PDS-175): late packets neither open a PDC again nor
// stay unanswered, and the id of the PDC is not given out again meanwhile (PDS-31). A ring of fixed
// size: the newest tombstone replaces the oldest one. Memory comes with PDCs. Decides nothing about
// packets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/sparse_array.h"
#include "pds/id_index.h"
#include "pds/quota.h"
#include "uet/base/address.h"
#include "uet/base/check.h"
#include "uet/base/time.h"
#include "uet/base/types.h"

namespace uet::pds {

// The peer's name for a PDC: its FEP and the id that the PDC has there (PDS-24).
struct PeerKey {
  FepAddress address;
  PdcId spdcid;
  friend bool operator==(const PeerKey&, const PeerKey&) = default;
};

// The packets of the peer that a target PDC had delivered when it failed, except those whose
// guaranteed responses ended with it.
struct Delivered {
  Psn highest{};            // of all that SES was given; one before Start_PSN: nothing was
  Psn cack{};               // all up to it
  std::uint64_t above = 0;  // bit 0: cack + 1
  bool has(Psn psn) const {
    const std::int32_t ahead = psn - cack;
    if (ahead < INT16_MIN) return false;  // no ACK could name it (PDS-37)
    return ahead <= 0 || (ahead <= 64 && ((above >> (ahead - 1)) & 1) != 0);
  }
};

struct Tombstone {
  PdcId id;
  PeerKey peer;
  Role role = Role::Target;
  Psn start_psn{};
  Psn close_psn{};
  Time until{};                          // the last moment of its validity
  std::optional<Delivered> delivered{};  // empty: the close handshake has told the peer
};

class Tombstones {
 public:
  static constexpr std::size_t kMost = 4096;

  // Remembers up to `count` PDCs, kMost at most.
  explicit Tombstones(std::size_t count) : count_(count) { UET_ASSERT(count <= kMost); }

  // A PDC with this id has opened; with it, `open` are. Takes the memory that their tombstones
  // need, so that add() cannot fail. May throw bad_alloc.
  void prepare(PdcId id, std::size_t open) {
    number_of_id_.prepare(id);
    ring_.at((next_ + open - 1) % count_);
  }

  // Remembers one more. Returns the tombstone that it replaces, if there is one. The id must have
  // no tombstone yet.
  std::optional<Tombstone> add(const Tombstone& tombstone) {
    UET_ASSERT(!holds(tombstone.id));
    Tombstone& place = ring_.at(next_);
    std::optional<Tombstone> replaced;
    if (number_of_id_[place.id] == next_) {
      replaced = place;
      number_of_id_.remove(place.id);
    }
    place = tombstone;
    number_of_id_.set(tombstone.id, static_cast<std::uint16_t>(next_));
    next_ = (next_ + 1) % count_;
    return replaced;
  }
  // The id is still in use by a tombstone, whether that is valid or not.
  bool holds(PdcId id) const { return number_of_id_.has(id); }
  // The tombstone of the id, valid or not; nullptr if there is none.
  const Tombstone* at(PdcId id) const { return holds(id) ? &ring_[number_of_id_[id]] : nullptr; }
  // The tombstone of the id if it is valid at `now`, else nullptr.
  const Tombstone* find(PdcId id, Time now) const {
    const Tombstone* tombstone = at(id);
    return tombstone != nullptr && tombstone->until >= now ? tombstone : nullptr;
  }

 private:
  SparseArray<Tombstone, kMost, 16> ring_;
  IdIndex number_of_id_;
  const std::size_t count_;
  std::size_t next_ = 0;  // the place that the next one takes
};

}  // namespace uet::pds
