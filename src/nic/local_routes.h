// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Where packets to each address of this host go: through a ring, or to the NIC below because no
// process of the same user has the address (local.h). Addresses of other hosts have no entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "nic/host_addresses.h"
#include "nic/local_outgoing.h"
#include "uet/base/address.h"
#include "uet/base/time.h"

namespace uet::nic {

struct LocalRoute {
  // An address without a local process is asked for again after ...
  static constexpr Duration kFirstRetry = std::chrono::milliseconds(10);
  static constexpr Duration kLastRetry = std::chrono::seconds(1);

  std::unique_ptr<LocalOutgoing> ring;  // nullptr: to the NIC below
  Time next_try{};
  Duration wait = kFirstRetry;

  // The ring to `to`, which `connect(to)` makes if there is none and the time has come. `connect`
  // returns nullptr if no process has the address, and may throw bad_alloc. nullptr: no ring.
  template <class Connect>
  LocalOutgoing* ring_or_connect(const FepAddress& to, Time now, Connect connect);
};

class LocalRoutes {
 public:
  // So many addresses without a ring are remembered.
  static constexpr std::size_t kMost = 1024;

  explicit LocalRoutes(HostAddresses hosts = HostAddresses()) : hosts_(std::move(hosts)) {}

  bool is_of_this_host(const FabricAddress& ip, Time now) { return hosts_.has(ip, now); }
  // For each packet: as find_or_add, and quick if the address is that of the call before.
  LocalRoute* for_packet(const FepAddress& to, bool may_add, Time now);
  // nullptr: an address of another host, or one that is not known and may not be added.
  LocalRoute* find_or_add(const FepAddress& to, bool may_add, Time now);
  // nullptr: the address is not known.
  LocalRoute* find(const FepAddress& to);
  // The route whose ring has this id; nullptr: there is none.
  LocalRoute* of_connection(std::uint16_t id);

  std::size_t size() const { return routes_.size(); }
  auto begin() { return routes_.begin(); }
  auto end() { return routes_.end(); }

 private:
  using Routes = std::unordered_map<FepAddress, LocalRoute, FepAddressHash>;
  void make_room();

  Routes routes_;
  std::size_t limit_ = kMost;
  Routes::value_type* last_ = nullptr;     // that was asked for
  std::optional<FepAddress> last_remote_;  // another host's, that was asked for
  HostAddresses hosts_;
};

template <class Connect>
LocalOutgoing* LocalRoute::ring_or_connect(const FepAddress& to, Time now, Connect connect) {
  if (ring != nullptr || now < next_try) return ring.get();
  try {
    ring = connect(to);
  } catch (const std::bad_alloc&) {  // as if no process had the address
  }
  next_try = now + wait;
  wait = std::min(2 * wait, kLastRetry);
  return ring.get();
}

}  // namespace uet::nic
