// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "live_view/change.h"

#include <unordered_map>

namespace uet::view {

Change change_between(const Domain& before, const Domain& now) {
  Change change;
  if (now.monotonic_ns > before.monotonic_ns) {
    change.seconds = static_cast<double>(now.monotonic_ns - before.monotonic_ns) / 1e9;
  }
  std::unordered_map<std::string, std::uint64_t> counters;
  for (const live::Counter& counter : before.counters) counters[counter.name] = counter.value;
  for (const live::Counter& counter : now.counters) {
    const std::uint64_t earlier = counters[counter.name];
    if (earlier == counter.value) continue;
    change.counters.push_back({counter.name, counter.gauge, earlier, counter.value});
  }
  std::unordered_map<std::string, const Peer*> peers;
  for (const Peer& peer : before.peers) peers[peer.name] = &peer;
  const auto columns = peer_columns();
  for (const Peer& peer : now.peers) {
    const Peer* const earlier = peers[peer.name];
    PeerChange of_peer{peer.name, {}};
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::uint64_t was = earlier != nullptr ? earlier->values[i] : 0;
      if (was == peer.values[i]) continue;
      of_peer.numbers.push_back({columns[i].name, columns[i].gauge, was, peer.values[i]});
    }
    if (!of_peer.numbers.empty()) change.peers.push_back(std::move(of_peer));
  }
  return change;
}

}  // namespace uet::view
