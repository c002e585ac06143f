// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Compound operations: one RMA call that becomes several writes or reads of SES and has one
// completion. A call is compound if it names several remote ranges (rma_iov), or if it is longer
// than one message on the wire can be (SES-32). Each piece lies in one remote range.
//
// The pieces leave in order, a few at a time. The last piece of a write leaves when all others have
// been delivered if anything could tell the target too early that the write is complete (SES-162).
#pragma once

#include <rdma/fi_rma.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "uet/base/intrusive_list.h"
#include "uet/base/result.h"
#include "uet/base/time.h"
#include "uet/ses/api.h"

namespace uet::prov {

class Compounds;
struct Compound;
struct EpState;
struct CompoundTag;
struct WithPiecesTag;

// In the user flags of an operation of SES, where no flag of libfabric is: its context is a
// Compound.
inline constexpr std::uint64_t kCompound = std::uint64_t{1} << 60;

// The compound operations of a domain that have pieces left to post. With the domain's lock.
class PieceTurns {
 public:
  // Posts the pieces that can be posted now. Called where no call of SES is under way.
  void run(Time now) noexcept {
    if (!waiting_.empty()) run_all(now);
  }

 private:
  friend class Compounds;
  void run_all(Time now) noexcept;

  IntrusiveList<Compounds, WithPiecesTag> waiting_;
};

// The compound operations of one endpoint. Everything with the domain's lock.
class Compounds : public ListNode<WithPiecesTag> {
 public:
  // The completion of each compound operation goes to `sink`. The references outlive this object.
  Compounds(const EpState& state, ses::CompletionSink& sink) : state_(state), sink_(sink) {}
  ~Compounds();
  Compounds(const Compounds&) = delete;
  Compounds& operator=(const Compounds&) = delete;

  // Posts the write or read `op`; its `remote_offset` and `key` are not used, `ranges` are, at most
  // kMaxRmaRanges, as long together as op.local. NoMemory, or an error of SES for the first piece:
  // nothing was posted.
  Result<void> post(const ses::RmaOp& op, std::span<const fi_rma_iov> ranges, Time now) noexcept;
  // One of the pieces has ended. Ends the operation if nothing more is to come.
  static void piece_ended(const ses::Completion& completion) noexcept;
  // A new operation would overtake pieces that are still to be posted, although order or a fence
  // forbids it: it has to wait (-FI_EAGAIN).
  bool hold_back(bool fence) const noexcept { return waits() && (fence || is_ordered()); }
  // fi_cancel: false if no compound operation has this context, or it cannot be cancelled any more.
  bool cancel(const void* context, Time now) noexcept;
  // Some operation is in progress.
  bool any() const { return !all_.empty(); }
  // The endpoint has closed: forgets all operations without completions.
  void drop() noexcept;

 private:
  friend class PieceTurns;
  bool waits() const { return static_cast<const ListNode<WithPiecesTag>&>(*this).linked(); }
  bool is_ordered() const noexcept;
  PieceTurns& turns() const noexcept;
  Result<void> post_pieces(Compound& compound, Time now) noexcept;
  Result<void> post_piece(Compound& compound, Time now) noexcept;
  void post_all(Time now) noexcept;
  void end_if_done(Compound& compound) noexcept;
  void update_turn() noexcept;

  const EpState& state_;
  ses::CompletionSink& sink_;
  IntrusiveList<Compound, CompoundTag> all_;  // in order of posting
};

}  // namespace uet::prov
