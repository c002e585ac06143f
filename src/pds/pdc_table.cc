// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Ids, names and tombstones of PDCs.
#include "pds/pdc_table.h"

#include <algorithm>
#include <new>

#include "pds/close_handshake.h"

namespace uet::pds {

namespace {

constexpr int kIdDraws = 64;  // of a PDC id; then the next one that is free

// A target PDC whose peer has not been told by a close handshake how much was delivered.
bool ended_untold(const Pdc& pdc) { return pdc.role() == Role::Target && pdc.error(); }

// PDS-175, PDS-217.
Time remembered_until(const Parameters& parameters, const Pdc& pdc, Time now) {
  Duration time = parameters.tombstone_time;
  if (ended_untold(pdc)) time = std::max(time, CloseHandshake::patience(parameters, true));
  if (pdc.syn_came_again()) time = std::max(time, parameters.syn_retx_safety_time.value_or(time));
  return now + time;
}

}  // namespace

std::size_t PdcTable::PeerKeyHash::operator()(const PeerKey& key) const noexcept {
  const std::size_t a = FepAddressHash{}(key.address);
  return a ^ (key.spdcid.value + 0x9E3779B97F4A7C15ULL + (a << 6) + (a >> 2));
}

PdcTable::PdcTable(const Parameters& parameters, KeyedSequence& secret)
    : parameters_(parameters),
      secret_(secret),
      pdcs_(parameters.pdc_count),
      slot_numbers_(parameters.pdc_count),
      tombstones_(std::min<std::size_t>(parameters.id_share.size() / 2 - 1, Tombstones::kMost)),
      next_id_(parameters.first_pdc_id) {}

// ---- ids ---------------------------------------------------------------------------------------

// PDS-31: drawn, so that no other host can tell the next one; those of tombstones are skipped.
PdcId PdcTable::allocate_id() {
  const auto in_share = [this](std::uint16_t id) { return parameters_.id_share.of(id); };
  const auto is_free = [this](PdcId id) {
    return id != PdcId{} && !slot_of_id_.has(id) && !tombstones_.holds(id);
  };
  const auto drawn = [this] { return static_cast<std::uint16_t>(secret_.next()); };
  std::uint16_t id = next_id_ ? *next_id_ : drawn();
  for (int draws = 1; !is_free(in_share(id)); ++draws) {
    const bool draw = !next_id_ && draws < kIdDraws;
    id = draw ? drawn() : static_cast<std::uint16_t>(id + 1);
  }
  if (next_id_) next_id_ = static_cast<std::uint16_t>(id + 1);
  return in_share(id);
}

std::optional<PdcTable::Place> PdcTable::reserve() {
  const std::optional<std::uint16_t> slot = slot_numbers_.take();
  if (!slot) return std::nullopt;
  return Place{*slot, allocate_id()};
}

Pdc& PdcTable::emplace(const Place& place, Environment& environment, Role role, PdcId peer_id,
                       const Destination& destination, Psn start_psn, SharedCcc& ccc, Time now) {
  tombstones_.prepare(place.id, slot_numbers_.in_use());
  slot_of_id_.prepare(place.id);
  Pdc& pdc = pdcs_.emplace(place.slot, environment, role, place.id, peer_id, destination, start_psn,
                           ccc, now);
  slot_of_id_.set(place.id, place.slot);
  if (guard_ != nullptr) guard_->open(place.id);
  return pdc;
}

// ---- names that peers give ---------------------------------------------------------------------

bool PdcTable::reserve_accepted(const PeerKey& peer) {
  try {
    accepted_.try_emplace(peer);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void PdcTable::drop_reserved(const PeerKey& peer) {
  const auto entry = accepted_.find(peer);
  if (entry != accepted_.end() && entry->second == PdcId{}) accepted_.erase(entry);
}

// Without memory for it a SYN of that PDC is not recognized: it is refused by its window instead.
void PdcTable::note_peer(const Pdc& pdc) {
  if (pdc.role() != Role::Initiator || pdc.peer_id() == PdcId{}) return;
  try {
    opened_[{pdc.destination().address, pdc.peer_id()}] = pdc.id();
  } catch (const std::bad_alloc&) {
    return;
  }
}

bool PdcTable::has_accepted(const PeerKey& peer, Psn start_psn) const {
  const PdcId id = accepted_from(peer);
  if (const Pdc* pdc = at(id); pdc != nullptr) return pdc->start_psn() == start_psn;
  const Tombstone* tombstone = tombstones_.at(id);
  return tombstone != nullptr && tombstone->start_psn == start_psn;
}

// ---- the end of a PDC --------------------------------------------------------------------------

void PdcTable::remember(const Pdc& pdc, Time now) {
  const PeerKey peer{pdc.destination().address, pdc.peer_id()};
  Tombstone tombstone{.id = pdc.id(),
                      .peer = peer,
                      .role = pdc.role(),
                      .start_psn = pdc.start_psn(),
                      .close_psn = pdc.close_psn(),
                      .until = remembered_until(parameters_, pdc, now)};
  if (ended_untold(pdc)) tombstone.delivered = pdc.receive_side().delivered();
  const std::optional<Tombstone> replaced = tombstones_.add(tombstone);
  if (replaced && accepted_from(replaced->peer) == replaced->id) accepted_.erase(replaced->peer);
  if (replaced) note_stray(replaced->id);
  if (opened_to(peer) == pdc.id()) opened_.erase(peer);
}

void PdcTable::free(Pdc& pdc, Time now) {
  remember(pdc, now);
  const std::uint16_t slot = slot_of_id_[pdc.id()];
  slot_of_id_.remove(pdc.id());
  pdc.discard();
  pdcs_.erase(slot);
  slot_numbers_.give_back(slot);
}

void PdcTable::discard_all() {
  for (std::size_t slot = 0; slot < pdcs_.size(); ++slot) {
    if (pdcs_.holds(slot)) pdcs_[slot].discard();
    pdcs_.erase(slot);
  }
}

}  // namespace uet::pds
