// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory that the application has registered, by address: finds the region that contains a piece
// of payload. Each device defines the data that it keeps for a region.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "uet/base/packet.h"

namespace uet::nic {

template <class Region>
class RegisteredRegions {
 public:
  // Regions may overlap. The result names it, and is never 0.
  std::uint64_t add(std::span<const std::byte> memory, Region region) {
    const std::uint64_t id = next_++;
    entries_.emplace(std::pair(begin_of(memory.data()), id),
                     Entry{memory.size(), std::move(region)});
    return id;
  }
  // Of the regions that begin next before the piece the latest, if the piece is inside.
  Region* find(const Slice& piece) {
    auto after = entries_.upper_bound({begin_of(piece.data), UINT64_MAX});
    if (after == entries_.begin()) return nullptr;
    auto& [place, entry] = *--after;
    const std::size_t offset = begin_of(piece.data) - place.first;
    const bool inside = offset <= entry.bytes && piece.length <= entry.bytes - offset;
    return inside ? &entry.region : nullptr;
  }
  // nullptr if there is none of that name.
  Region* get(std::uint64_t id) {
    const auto found = place_of(id);
    return found != entries_.end() ? &found->second.region : nullptr;
  }
  void remove(std::uint64_t id) {
    if (const auto found = place_of(id); found != entries_.end()) entries_.erase(found);
  }
  void clear() { entries_.clear(); }
  template <class Do>
  void for_each(Do&& action) {
    for (auto& [place, entry] : entries_) action(entry.region);
  }

 private:
  struct Entry {
    std::size_t bytes;
    Region region;
  };
  using Entries = std::map<std::pair<std::uintptr_t, std::uint64_t>, Entry>;

  static std::uintptr_t begin_of(const std::byte* data) {
    return reinterpret_cast<std::uintptr_t>(data);
  }
  typename Entries::iterator place_of(std::uint64_t id) {
    return std::find_if(entries_.begin(), entries_.end(),
                        [id](const auto& entry) { return entry.first.second == id; });
  }

  Entries entries_;
  std::uint64_t next_ = 1;
};

}  // namespace uet::nic
