// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The base round trip time of peers whose congestion context has ended (CMS-141), so that the next
// one need not learn it again. The cache does not know how a context uses it.
#pragma once

#include <cstddef>
#include <new>
#include <optional>
#include <unordered_map>

#include "uet/base/address.h"
#include "uet/base/time.h"

namespace uet::cms {

class RttCache {
 public:
  static constexpr std::size_t kPeers = 4096;  // what is kept beyond that displaces another peer

  explicit RttCache(Duration lifetime = std::chrono::hours(1)) : lifetime_(lifetime) {}

  // Without memory nothing is kept.
  void keep(const FepAddress& peer, Duration base_rtt, Time now) noexcept {
    const bool known = entries_.contains(peer);
    if (!known && entries_.size() >= kPeers) {
      std::erase_if(entries_, [&](const auto& entry) { return expired(entry.second, now); });
      if (entries_.size() >= kPeers) entries_.erase(entries_.begin());
    }
    try {
      entries_[peer] = {base_rtt, now};
    } catch (const std::bad_alloc&) {
    }
  }
  // Empty if nothing was kept for this peer within the lifetime.
  std::optional<Duration> find(const FepAddress& peer, Time now) const {
    const auto entry = entries_.find(peer);
    if (entry == entries_.end() || expired(entry->second, now)) return std::nullopt;
    return entry->second.base_rtt;
  }
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Duration base_rtt{};
    Time kept{};
  };
  bool expired(const Entry& entry, Time now) const { return now - entry.kept > lifetime_; }

  Duration lifetime_;
  std::unordered_map<FepAddress, Entry, FepAddressHash> entries_;
};

}  // namespace uet::cms
