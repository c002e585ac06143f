// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The PDCs of a FEP, by their own id and by the name that their peer gives them, and the tombstones
// of ended PDCs (PDS-24, PDS-25, PDS-31, PDS-63, PDS-175). Bounded by
// Parameters::pdc_count. Decides which id a PDC gets, not whether there may be one (Admission).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "base/indexed_pool.h"
#include "base/keyed_sequence.h"
#include "base/prefetch.h"
#include "base/slot_array.h"
#include "pds/id_index.h"
#include "pds/parameters.h"
#include "pds/pdc.h"
#include "pds/tombstones.h"
#include "uet/base/pdc_guard.h"

namespace uet::pds {

class PdcTable {
 public:
  // Slot and id that a PDC will have.
  struct Place {
    std::uint16_t slot = 0;
    PdcId id;
  };

  // Both arguments outlive the table. `secret` gives the ids, unless the parameters name the first.
  PdcTable(const Parameters& parameters, KeyedSequence& secret);

  // Is told from now on which ids have a PDC or a tombstone. Outlives the table.
  void set_guard(PdcGuard& guard) { guard_ = &guard; }
  // A packet names this id, which has no PDC and no tombstone that is valid.
  void note_stray(PdcId id) {
    if (guard_ != nullptr) guard_->close(id);
  }

  // The PDC with this id; nullptr if there is none or it has finished.
  Pdc* find(PdcId id) {
    Pdc* pdc = at(id);
    return pdc == nullptr || prefetched(*pdc).finished() ? nullptr : pdc;
  }
  // The PDC with this id, which may have finished; nullptr if there is none.
  Pdc* at(PdcId id) { return slot_of_id_.has(id) ? &pdcs_[slot_of_id_[id]] : nullptr; }
  const Pdc* at(PdcId id) const { return slot_of_id_.has(id) ? &pdcs_[slot_of_id_[id]] : nullptr; }
  // Below Parameters::pdc_count.
  std::size_t slot_of(const Pdc& pdc) const { return slot_of_id_[pdc.id()]; }
  Pdc& in_slot(std::size_t slot) { return pdcs_[slot]; }

  // A free slot and a new id, which is no tombstone's; nothing if all slots are in use. The caller
  // passes the place to emplace() or to give_back().
  std::optional<Place> reserve();
  void give_back(const Place& place) { slot_numbers_.give_back(place.slot); }
  // Makes the PDC. May throw bad_alloc; then the place is still reserved.
  Pdc& emplace(const Place& place, Environment& environment, Role role, PdcId peer_id,
               const Destination& destination, Psn start_psn, SharedCcc& ccc, Time now);
  // Ends the PDC without a word to the client and remembers it as a tombstone, which replaces the
  // oldest one if there are too many.
  void free(Pdc& pdc, Time now);
  // Ends all PDCs: the FEP is going away.
  void discard_all();

  // The PDC that `peer` has opened here with a SYN, or the id of its tombstone; 0: neither is
  // known.
  PdcId accepted_from(const PeerKey& peer) const { return id_in(accepted_, peer); }
  // Takes memory for the name of a PDC that `peer` opens, so that name_accepted() cannot fail.
  // False: there is none.
  bool reserve_accepted(const PeerKey& peer);
  void name_accepted(const PeerKey& peer, PdcId id) { accepted_[peer] = id; }
  // No PDC was opened after reserve_accepted().
  void drop_reserved(const PeerKey& peer);
  // The PDC that was opened here and that `peer` has answered; 0: there is none (PDS-63).
  PdcId opened_to(const PeerKey& peer) const { return id_in(opened_, peer); }
  // The peer of a PDC that was opened here may have become known.
  void note_peer(const Pdc& pdc);
  // Whether `peer` has opened a PDC with this Start_PSN that is open or has a tombstone.
  bool has_accepted(const PeerKey& peer, Psn start_psn) const;
  // The tombstone of the id if it is valid at `now`, else nullptr.
  const Tombstone* tombstone(PdcId id, Time now) const { return tombstones_.find(id, now); }

  // visit(Pdc&) for each PDC, finished PDCs included.
  template <class Visit>
  void for_each(Visit&& visit) {
    pdcs_.for_each(visit);
  }
  // Whether holds(const Pdc&) of any.
  template <class Predicate>
  bool any_of(Predicate&& holds) const {
    return pdcs_.any_of(holds);
  }

 private:
  struct PeerKeyHash {
    std::size_t operator()(const PeerKey& key) const noexcept;
  };
  using Names = std::unordered_map<PeerKey, PdcId, PeerKeyHash>;

  static PdcId id_in(const Names& names, const PeerKey& peer) {
    const auto entry = names.find(peer);
    return entry == names.end() ? PdcId{} : entry->second;
  }
  PdcId allocate_id();
  void remember(const Pdc& pdc, Time now);

  const Parameters& parameters_;
  KeyedSequence& secret_;
  PdcGuard* guard_ = nullptr;
  SlotArray<Pdc> pdcs_;
  IndexedPool<std::byte> slot_numbers_;
  IdIndex slot_of_id_;
  Tombstones tombstones_;
  std::optional<std::uint16_t> next_id_;  // empty: drawn
  Names accepted_;                        // tombstones included
  Names opened_;                          // that their peer has answered
};

}  // namespace uet::pds
