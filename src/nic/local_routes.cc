// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "nic/local_routes.h"

#include <algorithm>
#include <new>

namespace uet::nic {

LocalRoute* LocalRoutes::for_packet(const FepAddress& to, bool may_add, Time now) {
  if (last_ != nullptr && last_->first == to) return &last_->second;
  if (last_remote_ == to && hosts_.is_fresh(now)) return nullptr;
  return find_or_add(to, may_add, now);
}

LocalRoute* LocalRoutes::find_or_add(const FepAddress& to, bool may_add, Time now) {
  auto at = routes_.find(to);
  if (at == routes_.end()) {
    if (!may_add) return nullptr;
    if (!is_of_this_host(to.ip, now)) {
      last_remote_ = to;
      return nullptr;
    }
    if (routes_.size() >= limit_) make_room();
    try {
      at = routes_.try_emplace(to).first;
    } catch (const std::bad_alloc&) {
      return nullptr;  // the NIC below needs none
    }
  }
  last_ = &*at;
  return &at->second;
}

LocalRoute* LocalRoutes::find(const FepAddress& to) {
  const auto at = routes_.find(to);
  return at == routes_.end() ? nullptr : &at->second;
}

LocalRoute* LocalRoutes::of_connection(std::uint16_t id) {
  const auto at = std::find_if(routes_.begin(), routes_.end(), [&](const auto& entry) {
    return entry.second.ring != nullptr && entry.second.ring->id == id;
  });
  return at == routes_.end() ? nullptr : &at->second;
}

// Addresses without a ring are forgotten, so that they are asked for sooner than they might be.
void LocalRoutes::make_room() {
  last_ = nullptr;
  std::erase_if(routes_, [](const auto& entry) { return entry.second.ring == nullptr; });
  limit_ = routes_.size() + kMost;
}

}  // namespace uet::nic
