// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receives that are posted to another provider (fi_peer(3), peer SRX): asks it for the receive of a
// message that arrives; the owner passes later receives for waiting messages. Under the domain's
// lock; the owner's part of the interface has no lock, so that its calls, also those that read our
// CQ, must not run side by side. Hence no domain with FI_PEER has a progress thread.
#pragma once

#include <cstddef>

#include "objects/post_receive.h"
#include "peer.h"
#include "uet/base/intrusive_list.h"
#include "uet/base/slab.h"
#include "uet/ses/api.h"

namespace uet::prov {

class Srx;

class PeerReceives final : public ses::ReceiveOwner {
 public:
  // At most `capacity` messages wait for receives. `owner` outlives this one; its peer_ops are set.
  PeerReceives(Srx& srx, PeerSrx& owner, std::size_t capacity);
  ~PeerReceives() override;

  // Gives the entry of a receive that has completed back to the owner.
  void release(PeerRxEntry& entry) noexcept { owner_.owner_ops->free_entry(&entry); }

  // ses::ReceiveOwner
  Found find(const ses::Arrival& arrival, ses::ReceiveOp& op, void*& token) noexcept override;
  void kept(void* token, ses::Envelope& message) noexcept override;
  void refused(void* token) noexcept override;
  void lost(void* token) noexcept override;
  void vanished(void* operation) noexcept override;

 private:
  struct KeptTag;
  // A message that waits for a receive: peer_context of the owner's entry.
  struct Kept : ListNode<KeptTag> {
    PeerReceives* receives = nullptr;
    PeerRxEntry* entry = nullptr;
    ses::Envelope* message = nullptr;  // nullptr: it is gone, which the owner cannot be told
    bool tagged = false;
  };

  static int start(PeerRxEntry* entry) noexcept;
  static int discard(PeerRxEntry* entry) noexcept;
  static PeerSrxPeerOps peer_ops;
  void forget(Kept& kept) noexcept;
  int give(PeerRxEntry& entry, Engine& engine) noexcept UET_REQUIRES(engine.lock());
  void fill(PeerRxEntry& entry, ses::ReceiveOp& op) noexcept;

  Srx& srx_;
  PeerSrx& owner_;
  Slab<Kept> slab_;
  IntrusiveList<Kept, KeptTag> kept_;
  Slices slices_;
};

}  // namespace uet::prov
