// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The address vector: small numbers for peers. An index is what libfabric calls fi_addr_t.
// Control path: insert and remove may allocate; find and find_source do not. A job has many peers
// and each rank knows them all, so that an entry takes 40 bytes and its place in the index 6 to 11.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "av/address.h"
#include "uet/base/result.h"

namespace uet::av {

class Av {
 public:
  // Where the address is found again: the lowest free index, so that without removals indices
  // count 0, 1, 2 ... The same address may be inserted any
  // number of times. Invalid if nothing can be sent to it (check_destination).
  Result<std::uint64_t> insert(const UetAddress& address);
  // NotFound if nothing is there.
  Result<void> remove(std::uint64_t index);
  // nullptr if nothing is there; valid until the next insert or remove.
  const UetAddress* find(std::uint64_t index) const {
    if (index >= slots_.size() || !slots_[index]) return nullptr;
    return &*slots_[index];
  }
  // The entry of the sender (FI_SOURCE): the lowest index of equal ones, of those from `from` on;
  // empty for a stranger.
  std::optional<std::uint64_t> find_source(const FepAddress& fep, InitiatorId initiator,
                                           std::uint64_t from = 0) const;

  // Calls `visit(address)` for every entry.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& slot : slots_) {
      if (slot) visit(*slot);
    }
  }

  // Reserves memory for `count` more addresses, so that adding them moves no entries.
  void reserve(std::size_t count);

  // Above all indices in use.
  std::uint64_t end() const { return slots_.size(); }
  std::size_t size() const { return slots_.size() - free_.size(); }
  // Memory of all entries, with what is reserved for more.
  std::size_t bytes() const;

 private:
  // An index of slots_ and 1; 0: a free place.
  using Place = std::uint32_t;

  std::size_t home(const FepAddress& fep, InitiatorId initiator) const;
  std::size_t home(Place place) const;
  void enter(Place place);
  void leave(Place place);
  void make_room(std::size_t count);

  std::vector<std::optional<UetAddress>> slots_;
  std::vector<std::uint32_t> free_;  // a heap, the lowest index first
  // Where a sender's entries are found: open addressing, at most 3/4 full, a power of two in size.
  std::vector<Place> places_;
};

}  // namespace uet::av
