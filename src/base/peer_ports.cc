// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A sorted vector: it changes with the application's address vectors and is looked at for packets
// that open a PDC or need none.
#include "base/peer_ports.h"

#include <algorithm>
#include <tuple>

namespace uet {
namespace {

bool is_before(const FepAddress& a, const FepAddress& b) {
  return std::tie(a.ip.is_ipv6, a.ip.bytes, a.sdi, a.port) <
         std::tie(b.ip.is_ipv6, b.ip.bytes, b.sdi, b.port);
}

}  // namespace

std::vector<PeerPorts::Known>::iterator PeerPorts::place(const FepAddress& fep) {
  return std::lower_bound(
      known_.begin(), known_.end(), fep,
      [](const Known& known, const FepAddress& wanted) { return is_before(known.fep, wanted); });
}

void PeerPorts::add(const FepAddress& fep) {
  if (is_ours(fep.port)) return;
  auto at = place(fep);
  if (at == known_.end() || !(at->fep == fep)) at = known_.insert(at, {fep, 0});
  ++at->count;
}

void PeerPorts::remove(const FepAddress& fep) {
  const auto at = place(fep);
  if (at == known_.end() || !(at->fep == fep)) return;
  if (--at->count == 0) known_.erase(at);
}

std::vector<PeerPorts::Known>::const_iterator PeerPorts::first_at(const FepAddress& source) const {
  return std::lower_bound(
      known_.begin(), known_.end(), FepAddress{source.ip, 0, source.sdi},
      [](const Known& known, const FepAddress& wanted) { return is_before(known.fep, wanted); });
}

FepAddress PeerPorts::find(const FepAddress& source) const {
  const auto lowest = first_at(source);
  FepAddress found = standard(source);
  for (auto at = lowest; at != known_.end() && is_at(at->fep, source); ++at) {
    if (at == lowest || at->fep.port == source.port) found = by_way_of(source, at->fep);
  }
  return found;
}

}  // namespace uet
