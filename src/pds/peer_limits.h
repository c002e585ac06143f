// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Limits of other implementations, learnt from their refusals: PSNs outstanding at once
// (PDS-220), some control packets (PDS-221), more than one PDC (PDS-237). Kept for later PDCs to
// the same address. A hint: an entry may give way to that of another address, and is learnt again
// then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "uet/base/address.h"
#include "uet/base/time.h"
#include "uet/wire/pds.h"

namespace uet::pds {

class PeerLimits {
 public:
  static constexpr std::size_t kPeers = 256;

  // Control packets that a peer may refuse and that others can do without.
  static constexpr bool is_optional(wire::CpType type) {
    return type == wire::CpType::Noop || type == wire::CpType::ClearRequest ||
           type == wire::CpType::Probe || type == wire::CpType::Credit ||
           type == wire::CpType::CreditRequest;
  }

  // PSNs that the peer takes at most; 0: nothing is known.
  std::uint16_t range(const FepAddress& peer) const {
    const Entry* entry = find(peer);
    return entry != nullptr ? entry->range : std::uint16_t{0};
  }
  void set_range(const FepAddress& peer, std::uint16_t range) { at(peer).range = range; }
  // The peer itself has said how many.
  void forget_range(const FepAddress& peer) {
    if (find(peer) != nullptr) at(peer).range = 0;
  }

  // It has refused this type of control packet.
  bool refuses(const FepAddress& peer, wire::CpType type) const {
    const Entry* entry = find(peer);
    return entry != nullptr && (entry->refused & bit(type)) != 0;
  }
  void note_refusal(const FepAddress& peer, wire::CpType type) { at(peer).refused |= bit(type); }

  // It has refused a PDC beside another one: until then no further one is opened (PDS-237).
  Time no_additional_pdc_until(const FepAddress& peer) const {
    const Entry* entry = find(peer);
    return entry != nullptr ? entry->no_additional_pdc_until : Time{};
  }
  void refuse_additional_pdcs(const FepAddress& peer, Time until) {
    at(peer).no_additional_pdc_until = until;
  }

 private:
  struct Entry {
    FepAddress peer;
    std::uint16_t range = 0;
    std::uint16_t refused = 0;  // a bit for each CpType
    Time no_additional_pdc_until{};
  };

  static std::uint16_t bit(wire::CpType type) {
    return static_cast<std::uint16_t>(1U << static_cast<unsigned>(type));
  }
  static std::size_t position(const FepAddress& peer) { return FepAddressHash{}(peer) % kPeers; }
  const Entry* find(const FepAddress& peer) const {
    if (entries_.empty()) return nullptr;
    const Entry& entry = entries_[position(peer)];
    return entry.peer == peer ? &entry : nullptr;
  }
  Entry& at(const FepAddress& peer) {
    if (entries_.empty()) entries_.resize(kPeers);
    Entry& entry = entries_[position(peer)];
    if (entry.peer != peer) entry = Entry{.peer = peer};
    return entry;
  }

  std::vector<Entry> entries_;  // none until a peer refuses something
};

}  // namespace uet::pds
