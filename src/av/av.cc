// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Slots, their reuse, and the way back from a packet's source to a slot.
#include "uet/av/av.h"

#include <algorithm>
#include <functional>

namespace uet::av {

Result<std::uint64_t> Av::insert(const UetAddress& address) {
  if (auto fit = check_destination(address); !fit) return fit.error();
  std::uint64_t index = slots_.size();
  if (free_.empty()) {
    // Room for every slot, so that remove cannot fail.
    if (free_.capacity() <= slots_.size()) free_.reserve(2 * slots_.size() + 1);
    slots_.emplace_back();
  } else {
    std::pop_heap(free_.begin(), free_.end(), std::greater{});
    index = free_.back();
    free_.pop_back();
  }
  sources_.emplace(Source{address.fep(), address.initiator_id}, index);
  slots_[index] = address;
  return index;
}

Result<void> Av::remove(std::uint64_t index) {
  const UetAddress* address = find(index);
  if (address == nullptr) return Error::NotFound;
  const auto [first, last] = sources_.equal_range({address->fep(), address->initiator_id});
  sources_.erase(
      std::find_if(first, last, [&](const auto& entry) { return entry.second == index; }));
  slots_[index].reset();
  free_.push_back(index);
  std::push_heap(free_.begin(), free_.end(), std::greater{});
  return {};
}

void Av::reserve(std::size_t count) {
  slots_.reserve(slots_.size() + count);
  free_.reserve(slots_.size() + count);
  sources_.reserve(slots_.size() + count);
}

std::optional<std::uint64_t> Av::find_source(const FepAddress& fep, InitiatorId initiator) const {
  const auto [first, last] = sources_.equal_range({fep, initiator});
  if (first == last) return {};
  return std::min_element(first, last,
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->second;
}

}  // namespace uet::av
