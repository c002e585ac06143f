// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The transmit side of an endpoint: calls become operations of SES. The data transfer calls
// (msg.cc, tagged.cc, rma.cc, atomic.cc) fill in a TxCall or an AtomicCall and come here.
#pragma once

#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "hmem/hmem.h"
#include "objects/compound.h"
#include "objects/ep_bindings.h"
#include "objects/ep_options.h"
#include "objects/ep_state.h"

namespace uet::prov {

class Endpoint;
class Submission;
class TxDivision;
struct AtomicCall;
struct Command;

// The arguments that all transmitting calls have in common.
struct TxCall {
  const iovec* iov = nullptr;
  std::size_t count = 0;
  fi_addr_t to = FI_ADDR_UNSPEC;
  void* context = nullptr;
  std::uint64_t flags = 0;             // of this call: FI_COMPLETION, FI_INJECT, FI_MORE ...
  std::optional<std::uint64_t> data;   // remote CQ data
  void* const* descriptors = nullptr;  // one for each piece, or none
  bool locked = false;                 // the caller has the domain's lock (WorkQueue)
  std::uint64_t mark = 0;              // goes into the user flags of SES beside `flags`
};

// A write or read of several remote ranges, as long together as the local buffers.
struct RangesOp : ses::RmaOp {
  std::array<fi_rma_iov, kMaxRmaRanges> ranges{};
  std::size_t range_count = 0;
};

class TxSide {
 public:
  // Completions go to `sink`. `endpoint`: whose operations wait in the domain's WorkQueue.
  TxSide(const EpState& state, EpBindings& bindings, const EpOptions& options,
         ses::CompletionSink& sink, Endpoint& endpoint)
      : engine_(state.engine),
        state_(state),
        bindings_(bindings),
        options_(options),
        endpoint_(endpoint),
        may_tag_((state.type().caps & FI_TAGGED) != 0),
        compounds_(state, sink) {}

  // Posts an operation: 0 or a negative fi_errno, -FI_EAGAIN if no slot is free now. `op`: a
  // ses::SendOp, ses::RmaOp or RangesOp with the fields that `call` does not have. A call with
  // FI_TRIGGER waits in the domain's WorkQueue.
  template <class Op>
  ssize_t post(const TxCall& call, Op&& op) noexcept;
  // Likewise.
  ssize_t atomic(const AtomicCall& call) noexcept;
  // fi_tx_size_left(3).
  ssize_t size_left() noexcept;
  // Before the first operation: from now on those to some peers go to other sides. `division`
  // outlives it.
  void divide(TxDivision& division) noexcept { division_ = &division; }

  // The rest with the domain's lock.
  // A command of its submission ring, whose injected bytes lie in `local`. False: it has to
  // wait; else it has been posted, or has completed with an error.
  bool execute(const Command& command, Time now) noexcept;
  // Its operations of several pieces.
  Compounds& compounds() noexcept { return compounds_; }

 private:
  TxSide* other_side(fi_addr_t to, bool locked) const noexcept;
  bool is_outsized(const TxCall& call) const noexcept;
  ssize_t size_left_here() noexcept;
  bool needs_prompt_ack(const TxCall& call) const noexcept;
  ssize_t defer_atomic(const AtomicCall& call, const TxCall& tx,
                       std::uint32_t element_bytes) noexcept;
  template <class Post>
  ssize_t defer(ses::Kind kind, const TxCall& call, Post post) noexcept;
  void set_common(const TxCall& call, ses::TxOp& op) const noexcept;
  bool take_slot(bool fence) noexcept;
  template <class Op>
  int check_unlocked(const TxCall& call, Op& op, Slices& slices,
                     const ses::Peer& peer) const noexcept;
  template <class Op>
  ssize_t submit(const TxCall& call, Op& op, Slices& slices) noexcept;
  template <class Op>
  Result<void> post_linked(EngineLink& link, const Op& op, bool locked) noexcept;
  int find_destination(const TxCall& call, ses::Peer& peer) const noexcept;
  int prepare(const TxCall& call, TransferKind kind, ses::TxOp& op, Slices& slices) const noexcept;
  int find_devices(const TxCall& call, const ses::Peer& peer,
                   std::span<ses::IoSlice> slices) const noexcept;
  template <class Op>
  bool is_compound(const Op& op) const noexcept;
  Result<void> post_compound(const ses::RmaOp& op, Time now) noexcept;
  Result<void> post_compound(const RangesOp& op, Time now) noexcept;

  Engine& engine_;
  const EpState& state_;
  EpBindings& bindings_;
  const EpOptions& options_;
  Endpoint& endpoint_;
  const bool may_tag_;              // the endpoint's type has tagged messages
  TxDivision* division_ = nullptr;  // nullptr: it has all peers
  Compounds compounds_;
};

}  // namespace uet::prov
