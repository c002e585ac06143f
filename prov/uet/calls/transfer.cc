// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The transmit side of an endpoint: from a call to an operation of SES.
// Nothing here allocates memory, except that a CQ grows when a post needs more entries than before.
#include <algorithm>
#include <span>
#include <type_traits>

#include "errors.h"
#include "objects/av_fid.h"
#include "objects/endpoint.h"
#include "objects/post_operation.h"
#include "objects/post_receive.h"
#include "objects/trigger.h"
#include "objects/tx_side.h"
#include "process/post_again.h"
#include "provider.h"
#include "ses/initiator.h"
#include "ses/message.h"
#include "settings/hints.h"
#include "submission/translation.h"

namespace uet::prov {
namespace {

constexpr std::uint64_t kTxCallFlags = FI_MORE | FI_REMOTE_CQ_DATA;  // beside op_flags

TransferKind transfer_kind(const ses::SendOp& op) { return op.tag ? kTagged : kMessage; }
TransferKind transfer_kind(const ses::RmaOp&) { return kRma; }
TransferKind transfer_kind(const ses::AtomicOp&) { return kAtomic; }

ses::Kind kind_of(const ses::SendOp& op) {
  return op.tag ? ses::Kind::TaggedSend : ses::Kind::Send;
}
ses::Kind kind_of(const ses::RmaOp& op) { return op.kind; }

}  // namespace

// Does the application learn that the operation has succeeded? By an entry (FI_COMPLETION,
// fi_endpoint(3)), by a counter, or because the operation is a deferred one.
bool TxSide::needs_prompt_ack(const TxCall& call) const noexcept {
  return (call.flags & FI_COMPLETION) != 0 || call.mark != 0 || bindings_.count_sends();
}

template <class Post>
ssize_t TxSide::defer(ses::Kind kind, const TxCall& call, Post post) noexcept {
  if (const int result = may_defer(state_); result != 0) return result;
  if (call.count > options_.limits().iov_count ||
      (call.flags & ~(kTxCallFlags | state_.type().tx_op_flags)) != 0) {
    return refuse_endpoint(-FI_EINVAL,
                           "fi_sendmsg, fi_writemsg: endpoint: too many pieces or an unsupported "
                           "flag; use at most iov_limit pieces");
  }
  const std::optional<std::size_t> length = total_bytes(call.iov, call.count);
  const bool inject = (call.flags & FI_INJECT) != 0;
  if (!length || (inject && *length > *std::max_element(options_.limits().inject.begin(),
                                                        options_.limits().inject.end()))) {
    return refuse_endpoint(
        -FI_EINVAL,
        "fi_sendmsg, fi_writemsg: endpoint: more bytes than inject_size or 2^64; post fewer");
  }
  if (inject && engine_.knows_hmem() && name_devices(call.descriptors, call.count)) {
    return refuse_endpoint(-FI_EINVAL,
                           "fi_sendmsg, fi_writemsg: endpoint: FI_INJECT with device memory; use "
                           "buffers of FI_HMEM_SYSTEM");
  }
  return guarded([&] { return engine_.works().defer(endpoint_, kind, call, post); });
}

// Marks the pieces that lie in device memory. 0 or a negative fi_errno. Packets to this host do not
// leave through the NIC.
int TxSide::find_devices(const TxCall& call, const ses::Peer& peer,
                         std::span<ses::IoSlice> slices) const noexcept {
  const bool leaves = peer.fep.ip != engine_.local_address().ip;
  const Reader reader = leaves && options_.may_use_p2p() ? Reader::Nic : Reader::Driver;
  const Buffers buffers = mark_devices(call.descriptors, slices, reader);
  if (buffers == Buffers::Wrong) return -FI_EINVAL;
  if (buffers == Buffers::Host || (call.flags & FI_INJECT) == 0) return 0;
  return refuse_endpoint(-FI_EINVAL,
                         "fi_sendmsg, fi_writemsg: endpoint: FI_INJECT with device memory; use "
                         "buffers of FI_HMEM_SYSTEM");
}

// The checks that all kinds have in common. Fills in `op`, whose pieces are in `slices`. 0 or a
// negative fi_errno.
int TxSide::prepare(const TxCall& call, TransferKind kind, ses::TxOp& op,
                    Slices& slices) const noexcept {
  if (kind == kTagged && !may_tag_) {
    return refuse_endpoint(-FI_EOPNOTSUPP,
                           "fi_tsend: endpoint: the profile has no tagged messages; use "
                           "FI_UET_PROFILE=ai_full or hpc");
  }
  if (kind == kAtomic && (state_.type().caps & FI_ATOMIC) == 0) {
    return refuse_endpoint(
        -FI_EOPNOTSUPP, "fi_atomic: endpoint: the profile has no atomics; use FI_UET_PROFILE=hpc");
  }
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (!state_.may_send) {
    return refuse_endpoint(-FI_EOPBADSTATE,
                           "fi_send, fi_write: endpoint: not enabled for transmits; call fi_enable "
                           "and bind a CQ or counter first");
  }
  if (call.count > options_.limits().iov_count ||
      (call.flags & ~(kTxCallFlags | state_.type().tx_op_flags)) != 0) {
    return refuse_endpoint(-FI_EINVAL,
                           "fi_send, fi_write: endpoint: too many pieces or an unsupported flag; "
                           "use at most iov_limit pieces");
  }
  if (lacks_address(call.iov, call.count)) {
    return refuse_endpoint(-FI_EINVAL,
                           "fi_send, fi_write: endpoint: a buffer with a length has the address "
                           "NULL; pass its address");
  }
  const std::optional<std::size_t> length = fill_slices(call.iov, call.count, slices);
  if (!length) {
    return refuse_endpoint(
        -FI_EINVAL,
        "fi_send, fi_write: endpoint: the lengths of the pieces exceed 2^64 bytes; post fewer");
  }
  op.local = std::span(slices.data(), call.count);
  if ((call.flags & FI_INJECT) != 0 && *length > options_.limits().inject[kind]) {
    return refuse_endpoint(
        -FI_EINVAL, "fi_inject: endpoint: more bytes than inject_size; post without injection");
  }
  if (*length > options_.limits().most[kind]) {
    return refuse_endpoint(
        -FI_EMSGSIZE,
        "fi_send, fi_write: endpoint: more than max_msg_size bytes; post several operations");
  }
  set_common(call, op);
  return 0;
}

// The fields that follow from the call alone.
void TxSide::set_common(const TxCall& call, ses::TxOp& op) const noexcept {
  op.inject = (call.flags & FI_INJECT) != 0;
  op.delivery_complete = (call.flags & kDelivered) != 0;
  op.fence = (call.flags & FI_FENCE) != 0;
  if (call.data) op.data = *call.data;
  op.context = call.context;
  op.user_flags = call.flags | call.mark;
}

// 0 or a negative fi_errno. That of a connected endpoint is `state_.peer`, for those who have the
// domain's lock.
int TxSide::find_destination(const TxCall& call, ses::Peer& peer) const noexcept {
  if (state_.connects()) {
    if (state_.has_peer) return 0;
    return refuse_endpoint(-FI_ENOTCONN,
                           "fi_send, fi_write: endpoint: not connected; wait for FI_CONNECTED");
  }
  if (state_.av->read_peer(call.to, peer)) return 0;
  return refuse_endpoint(
      -FI_EINVAL,
      "fi_send, fi_write: endpoint: the destination is not in the AV; call fi_av_insert first");
}

// An operation that is longer than a message of SES may be, or that goes to several ranges, becomes
// several messages.
template <class Op>
bool TxSide::is_compound(const Op& op) const noexcept {
  if constexpr (std::is_same_v<Op, RangesOp>) return true;
  if constexpr (!std::is_same_v<Op, ses::RmaOp>) return false;
  return ses::total_length(op.local) > engine_.piece_bytes();
}

Result<void> TxSide::post_compound(const RangesOp& op, Time now) noexcept {
  return compounds_.post(op, {op.ranges.data(), op.range_count}, now);
}

Result<void> TxSide::post_compound(const ses::RmaOp& op, Time now) noexcept {
  const fi_rma_iov range{op.remote_offset, ses::total_length(op.local), op.key.value};
  return compounds_.post(op, {&range, 1}, now);
}

// The side that has the destination, if it is not this one. A WorkQueue has its operations from the
// right side.
TxSide* TxSide::other_side(fi_addr_t to, bool locked) const noexcept {
  return locked || engine_.dead() ? nullptr : division_->side_of(to);
}

// Its target has to read it (SES-164), which a part cannot offer.
bool TxSide::is_outsized(const TxCall& call) const noexcept {
  std::uint64_t left = engine_.piece_bytes();
  for (const iovec& piece : std::span(call.iov, call.count)) {
    if (piece.iov_len > left) return true;
    left -= piece.iov_len;
  }
  return false;
}

template <class Op>
ssize_t TxSide::post(const TxCall& call, Op&& op) noexcept {
  if (division_ != nullptr) [[unlikely]] {
    TxSide* const other = other_side(call.to, call.locked);
    const bool moves = other != nullptr && std::is_same_v<Op, ses::SendOp> && is_outsized(call);
    if (moves && !division_->move_to_whole(call.to)) return -FI_EAGAIN;
    if (other != nullptr && !moves) return other->post(call, std::forward<Op>(op));
  }
  if constexpr (!std::is_same_v<Op, ses::AtomicOp>) {
    if ((call.flags & FI_TRIGGER) != 0) {
      return defer(kind_of(op), call, [this, op](const TxCall& due) { return post(due, Op(op)); });
    }
  }
  Slices slices;
  int result = prepare(call, transfer_kind(op), op, slices);
  if (result != 0) return result;

  if constexpr (!std::is_same_v<Op, RangesOp>) {
    const bool submits = state_.submission != nullptr && !call.locked;
    if (submits && fits_command(call, op)) return submit(call, op, slices);
  }
  const Guard guard(engine_.lock(), call.locked);
  ses::Peer peer;
  result = find_destination(call, peer);
  if (result != 0) return result;
  Op own(op);
  own.peer = state_.connects() ? &*state_.peer : &peer;
  own.prompt_ack = needs_prompt_ack(call);
  if (engine_.knows_hmem()) [[unlikely]] {
    result = find_devices(call, *own.peer, std::span(slices.data(), call.count));
    if (result != 0) return result;
  }
  const Time now = clock_now();
  if (state_.submission != nullptr && !call.locked && !state_.submission->drain_tx(now)) {
    return -FI_EAGAIN;
  }
  if (!take_slot(own.fence)) {
    engine_.progress(now);
    return -FI_EAGAIN;
  }
  Result<void> posted;
  if (is_compound(own)) {
    if constexpr (std::is_base_of_v<ses::RmaOp, Op>) posted = post_compound(own, now);
  } else if constexpr (!std::is_same_v<Op, RangesOp>) {
    // As post_operation, but without one more function on the way of every operation.
    if (EngineLink* const link = engine_.link()) [[unlikely]]
      posted = post_linked(*link, own, call.locked);
    else
      posted = engine_.fep().ses().initiator().post(*state_.context, own, now);
  }
  if (posted) {
    const bool more = (call.flags & FI_MORE) != 0;
    if (!more && engine_.fep().wants_push_after_post()) engine_.fep().push(now);
    engine_.end_post(now);
    return 0;
  }
  bindings_.return_tx();
  // Progress here: the application may repeat the post without reading a queue.
  if (posted.error() == Error::Again) engine_.progress(now);
  return to_fi_errno(posted.error());
}

// To the engine in another process; `locked` as in TxCall.
template <class Op>
Result<void> TxSide::post_linked(EngineLink& link, const Op& op, bool locked) noexcept {
  const auto post = [&] { return link.post(state_.linked, op); };
  const Result<void> posted = post();
  if (posted || posted.error() != Error::Again || locked) return posted;
  return post_again(engine_, true, post);
}

// A slot and an entry of the CQ. False: the operation has to wait. With the domain's lock.
bool TxSide::take_slot(bool fence) noexcept UET_NO_THREAD_ANALYSIS {
  if (!compounds_.hold_back(fence) && bindings_.take_tx()) return true;
  state_.request_acks_now();
  return false;
}

// All that can be wrong with an operation before it is posted; nothing is locked. 0 or a negative
// fi_errno. Of a connected endpoint `peer` is not read.
template <class Op>
int TxSide::check_unlocked(const TxCall& call, Op& op, Slices& slices,
                           const ses::Peer& peer) const noexcept {
  op.peer = &peer;
  if (!is_compound(op)) {
    const auto possible = ses::check_operation(op, state_.config.mode, state_.submission->limits());
    if (!possible) return to_fi_errno(possible.error());
  }
  if (!engine_.knows_hmem() || state_.connects()) return 0;
  return find_devices(call, peer, std::span(slices.data(), call.count));
}

// FI_UET_ENGINE=thread: the operation becomes a command, which TxSide::execute makes an operation
// again. 0 or a negative fi_errno. The destination is written to the command at once: a copy that
// is read in other units than it was written in waits until all stores before it have reached the
// engine's processor. A refused call leaves an empty command.
template <class Op>
ssize_t TxSide::submit(const TxCall& call, Op& op, Slices& slices) noexcept {
  const CommandRing::Claim claim = state_.submission->claim_tx(engine_.lock());
  if (claim.command == nullptr) return -FI_EAGAIN;
  Command& command = *claim.command;
  int result = find_destination(call, command.peer);
  if (result == 0) result = check_unlocked(call, op, slices, command.peer);
  if (result != 0) {
    command.opcode = Opcode::None;
    state_.submission->submit(claim);
    return result;
  }
  command.flags = call.flags;
  command.context = call.context;
  command.has_data = call.data.has_value();
  if (call.data) command.data = *call.data;
  command.has_peer = !state_.connects();
  command.compare = command.results = 0;
  command.cancelled = false;
  if (op.inject) {
    write_inline(call, state_.submission->tx(), command);
  } else {
    write_pieces(call.iov, call.count, call.descriptors, command);
  }
  write_operation(op, command);
  state_.submission->submit(claim);
  return 0;
}

template ssize_t TxSide::post(const TxCall&, ses::SendOp&&) noexcept;
template ssize_t TxSide::post(const TxCall&, ses::RmaOp&&) noexcept;
template ssize_t TxSide::post(const TxCall&, RangesOp&&) noexcept;
template ssize_t TxSide::post(const TxCall&, ses::AtomicOp&&) noexcept;

bool TxSide::execute(const Command& command, Time now) noexcept UET_NO_THREAD_ANALYSIS {
  const auto& peer = command.has_peer ? std::optional(command.peer) : state_.peer;
  Slices slices;
  std::array<iovec, kCommandPieces> pieces;
  fill_slices(pieces.data(), read_pieces(command, pieces.data()), slices);
  const TxCall call{.iov = pieces.data(),
                    .count = command.pieces,
                    .context = command.context,
                    .flags = command.flags,
                    .data = command.has_data ? std::optional(command.data) : std::nullopt,
                    .descriptors = command.described ? command.descriptors.data() : nullptr,
                    .locked = true};
  const auto local = std::span(slices.data(), command.pieces);
  const auto run = [&](auto op) UET_NO_THREAD_ANALYSIS -> int {
    if (!peer) return -FI_ENOTCONN;  // the connection ended after the call
    if (engine_.knows_hmem() && find_devices(call, *peer, local) != 0) return -FI_EINVAL;
    read_operation(command, slices, op);
    set_common(call, op);
    op.local = local;
    op.peer = &*peer;
    op.prompt_ack = needs_prompt_ack(call);
    if (!take_slot(op.fence)) return -FI_EAGAIN;
    Result<void> posted;
    if (is_compound(op)) {
      if constexpr (std::is_base_of_v<ses::RmaOp, decltype(op)>) posted = post_compound(op, now);
    } else {
      posted = post_operation(state_, op, now);
    }
    if (posted) return 0;
    bindings_.return_tx();
    return to_fi_errno(posted.error());
  };
  int result = 0;
  if (command.opcode == Opcode::Send) result = run(ses::SendOp{});
  if (command.opcode == Opcode::Rma) result = run(ses::RmaOp{});
  if (command.opcode == Opcode::Atomic) result = run(ses::AtomicOp{});
  if (result == 0) return true;
  if (result == -FI_EAGAIN || !bindings_.take_tx()) return false;
  endpoint_.reporter().fail(kind_of(command), command.context, command.flags, -result);
  return true;
}

ssize_t TxSide::size_left() noexcept {
  ssize_t left = size_left_here();
  if (left < 0 || division_ == nullptr) return left;
  division_->for_each([&](Endpoint& part) {
    left = std::min(left, part.tx().size_left_here());
    return 0;
  });
  return left;
}

ssize_t TxSide::size_left_here() noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (!state_.may_send) return -FI_EOPBADSTATE;
  const Guard guard(engine_.lock());
  if (state_.submission != nullptr) state_.submission->drain_tx(clock_now());
  if (const auto& shared = bindings_.shared_slots(); shared != nullptr) {
    return static_cast<ssize_t>(shared->left());
  }
  return static_cast<ssize_t>(state_.config.tx_size - bindings_.tx_in_progress());
}

}  // namespace uet::prov
