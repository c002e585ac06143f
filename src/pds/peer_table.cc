// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which peers the table holds, and for how long.
#include "pds/peer_table.h"

namespace uet::pds {

Peer& PeerTable::join(const FepAddress& address) {
  Peer& peer = peers_[address];
  peer.address = address;
  if (peer.linked()) idle_.remove(peer);
  ++peer.users;
  return peer;
}

void PeerTable::leave(Peer& peer) {
  if (--peer.users > 0) return;
  idle_.push_back(peer);
  if (peers_.size() <= most_) return;
  Peer& oldest = idle_.pop_front();
  peers_.erase(peers_.find(oldest.address));
}

}  // namespace uet::pds
