// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Slots, their reuse, and the way back from a packet's source to a slot.
#include "av/av.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>

namespace uet::av {
namespace {

constexpr std::size_t kFewestPlaces = 8;
constexpr std::size_t kMostEntries = std::numeric_limits<std::uint32_t>::max() - 1;

bool is_from(const UetAddress& address, const FepAddress& fep, InitiatorId initiator) {
  return address.initiator_id == initiator && address.fep() == fep;
}

}  // namespace

// Where the search for an entry begins.
std::size_t Av::home(const FepAddress& fep, InitiatorId initiator) const {
  const std::uint64_t hash =
      (FepAddressHash{}(fep) ^ initiator.value) * std::uint64_t{0x9E3779B97F4A7C15};
  return static_cast<std::size_t>(hash >> 32) & (places_.size() - 1);
}

std::size_t Av::home(Place place) const {
  const UetAddress& address = *slots_[place - 1];
  return home(address.fep(), address.initiator_id);
}

void Av::enter(Place place) {
  std::size_t at = home(place);
  while (places_[at] != 0) at = (at + 1) & (places_.size() - 1);
  places_[at] = place;
}

// Later entries of the probe sequence move up, as far as they may, so that no search ends too soon.
void Av::leave(Place place) {
  const std::size_t mask = places_.size() - 1;
  std::size_t gap = home(place);
  while (places_[gap] != place) gap = (gap + 1) & mask;
  for (std::size_t at = (gap + 1) & mask; places_[at] != 0; at = (at + 1) & mask) {
    const std::size_t wanted = home(places_[at]);
    if (((at - wanted) & mask) < ((at - gap) & mask)) continue;
    places_[gap] = places_[at];
    gap = at;
  }
  places_[gap] = 0;
}

void Av::make_room(std::size_t count) {
  if (count <= places_.size() / 4 * 3) return;
  std::vector<Place> old(std::bit_ceil(std::max(count / 3 * 4 + 4, kFewestPlaces)));
  old.swap(places_);
  for (const Place place : old) {
    if (place != 0) enter(place);
  }
}

Result<std::uint64_t> Av::insert(const UetAddress& address) {
  if (auto fit = check_destination(address); !fit) return fit.error();
  std::uint64_t index = slots_.size();
  if (free_.empty() && index >= kMostEntries) return Error::NoMemory;
  make_room(size() + 1);
  if (free_.empty()) {
    // Reserves an element for every slot, so that remove cannot fail.
    if (free_.capacity() <= slots_.size()) free_.reserve(2 * slots_.size() + 1);
    slots_.emplace_back();
  } else {
    std::pop_heap(free_.begin(), free_.end(), std::greater{});
    index = free_.back();
    free_.pop_back();
  }
  slots_[index] = address;
  enter(static_cast<Place>(index + 1));
  return index;
}

Result<void> Av::remove(std::uint64_t index) {
  if (find(index) == nullptr) return Error::NotFound;
  leave(static_cast<Place>(index + 1));
  slots_[index].reset();
  free_.push_back(static_cast<std::uint32_t>(index));
  std::push_heap(free_.begin(), free_.end(), std::greater{});
  return {};
}

void Av::reserve(std::size_t count) {
  slots_.reserve(slots_.size() + count);
  free_.reserve(slots_.size() + count);
  make_room(size() + count);
}

std::optional<std::uint64_t> Av::find_source(const FepAddress& fep, InitiatorId initiator,
                                             std::uint64_t from) const {
  if (places_.empty()) return {};
  Place lowest = 0;
  for (std::size_t at = home(fep, initiator); places_[at] != 0;
       at = (at + 1) & (places_.size() - 1)) {
    const Place place = places_[at];
    if (place > from && (lowest == 0 || place < lowest) &&
        is_from(*slots_[place - 1], fep, initiator)) {
      lowest = place;
    }
  }
  if (lowest == 0) return {};
  return lowest - 1;
}

std::size_t Av::bytes() const {
  return slots_.capacity() * sizeof slots_[0] + free_.capacity() * sizeof free_[0] +
         places_.capacity() * sizeof places_[0];
}

}  // namespace uet::av
