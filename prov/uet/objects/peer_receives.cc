// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Between SES and the owner of the receives. A sender that the AV does not know is refused unless a
// receive from any source is posted: waiting messages must have an address, since the owner would
// ask the provider that inserts an address next, not us, for the addresses of entries without one.
#include "objects/peer_receives.h"

#include <algorithm>

#include "objects/shared_ctx.h"
#include "objects/trigger.h"

namespace uet::prov {

PeerSrxPeerOps PeerReceives::peer_ops = {
    .size = sizeof(PeerSrxPeerOps),
    .start_msg = start,
    .start_tag = start,
    .discard_msg = discard,
    .discard_tag = discard,
};

PeerReceives::PeerReceives(Srx& srx, PeerSrx& owner, std::size_t capacity)
    : srx_(srx), owner_(owner), slab_(capacity) {
  owner_.peer_ops = &peer_ops;
}

// The owner keeps the entries, and will not start them any more.
PeerReceives::~PeerReceives() {
  while (!kept_.empty()) forget(kept_.front());
}

void PeerReceives::forget(Kept& kept) noexcept {
  IntrusiveList<Kept, KeptTag>::remove(kept);
  slab_.give_back(&kept);
}

// A receive into memory that cannot be used takes nothing and completes truncated.
void PeerReceives::fill(PeerRxEntry& entry, ses::ReceiveOp& op) noexcept {
  const std::size_t count = entry.count;
  op.tagged = (entry.flags & FI_TAGGED) != 0;
  op.context = &entry;
  op.user_flags = kOfOwner;
  if (count > slices_.size() || lacks_address(entry.iov, count)) return;
  if (!fill_slices(entry.iov, count, slices_)) return;
  const std::span slices(slices_.data(), count);
  if (srx_.engine().knows_hmem() && mark_devices(entry.desc, slices) == Buffers::Wrong) return;
  op.local = slices;
}

ses::ReceiveOwner::Found PeerReceives::find(const ses::Arrival& arrival, ses::ReceiveOp& op,
                                            void*& token) noexcept {
  Kept* kept = slab_.take();
  if (kept == nullptr) return Found::NotNow;
  const AvFid* av = srx_.av();
  PeerMatchAttr attr{};
  attr.addr =
      av != nullptr ? av->source(arrival.source, arrival.initiator, arrival.job) : FI_ADDR_UNSPEC;
  attr.msg_size = arrival.length;
  attr.tag = arrival.tag;
  PeerRxEntry* entry = nullptr;
  int found = 0;
  {
    const CallOut call_out(srx_.engine().lock());  // the owner may register memory
    const auto get = arrival.tagged ? owner_.owner_ops->get_tag : owner_.owner_ops->get_msg;
    found = get(&owner_, &attr, &entry);
  }
  if (found == -FI_ENOENT && attr.addr != FI_ADDR_UNSPEC) {
    kept->receives = this;
    kept->entry = entry;
    kept->tagged = arrival.tagged;
    entry->peer_context = kept;
    entry->msg_size = arrival.length;
    if (arrival.data) {
      entry->flags |= FI_REMOTE_CQ_DATA;
      entry->cq_data = *arrival.data;
    }
    kept_.push_back(*kept);
    token = kept;
    return Found::Nothing;
  }
  slab_.give_back(kept);
  if (found == 0) {
    fill(*entry, op);
    return Found::Receive;
  }
  if (found == -FI_ENOENT) owner_.owner_ops->free_entry(entry);
  return Found::NotNow;
}

void PeerReceives::kept(void* token, ses::Envelope& message) noexcept {
  Kept& kept = *static_cast<Kept*>(token);
  kept.message = &message;
  const auto queue = kept.tagged ? owner_.owner_ops->queue_tag : owner_.owner_ops->queue_msg;
  if (queue(kept.entry) != 0) {
    FI_WARN(&provider, FI_LOG_EP_DATA,
            "the owner (fi_peer) refused to queue an unexpected message\n");
  }
}

void PeerReceives::refused(void* token) noexcept {
  Kept& kept = *static_cast<Kept*>(token);
  owner_.owner_ops->free_entry(kept.entry);
  forget(kept);
}

void PeerReceives::lost(void* token) noexcept { static_cast<Kept*>(token)->message = nullptr; }

void PeerReceives::vanished(void* operation) noexcept {
  release(*static_cast<PeerRxEntry*>(operation));
}

// The owner has a receive for a message that waits.
int PeerReceives::start(PeerRxEntry* entry) noexcept {
  PeerReceives& receives = *static_cast<Kept*>(entry->peer_context)->receives;
  Engine& engine = receives.srx_.engine();
  if (engine.dead()) return -FI_EOPNOTSUPP;
  const Guard guard(engine.lock());
  return receives.give(*entry, engine);
}

int PeerReceives::give(PeerRxEntry& entry, Engine& engine) noexcept {
  Kept& kept = *static_cast<Kept*>(entry.peer_context);
  ses::Envelope* const message = kept.message;
  const bool tagged = kept.tagged;
  forget(kept);
  if (message != nullptr) {
    const Time now = clock_now();
    ses::ReceiveOp op;
    fill(entry, op);
    op.tagged = tagged;
    ses::Ses& ses = engine.fep().ses();
    const auto received = ses.receive_kept(*message, op, now);
    UET_ASSERT(received.ok());  // there are as many receives as messages
    if (!received) ses.discard_kept(*message, now);
    engine.posted(now, false);
    if (received) return 0;
  }
  ses::Completion ended;
  ended.kind = tagged ? ses::Kind::TaggedReceive : ses::Kind::Receive;
  ended.status = ses::Status::PeerLost;
  ended.context = &entry;
  ended.user_flags = kOfOwner;
  srx_.complete(ended);
  return 0;
}

// Drops an unwanted message. The owner frees the entry itself, as owners in libfabric do.
int PeerReceives::discard(PeerRxEntry* entry) noexcept {
  Kept& kept = *static_cast<Kept*>(entry->peer_context);
  PeerReceives& receives = *kept.receives;
  Engine& engine = receives.srx_.engine();
  if (engine.dead()) return -FI_EOPNOTSUPP;
  const Guard guard(engine.lock());
  ses::Envelope* const message = kept.message;
  receives.forget(kept);
  const Time now = clock_now();
  if (message != nullptr) engine.fep().ses().discard_kept(*message, now);
  engine.posted(now, false);
  return 0;
}

}  // namespace uet::prov
