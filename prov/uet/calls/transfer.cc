// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The transmit side of an endpoint: from a call to an operation of SES.
// Nothing here allocates memory, except that a CQ grows when a post needs more entries than before.
#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "errors.h"
#include "objects/av_fid.h"
#include "objects/post_receive.h"
#include "objects/trigger.h"
#include "objects/tx_side.h"
#include "provider.h"
#include "settings/hints.h"

namespace uet::prov {
namespace {

constexpr std::uint64_t kTrigger = FI_TRIGGER;
constexpr std::uint64_t kTxCallFlags = FI_MORE | FI_REMOTE_CQ_DATA;  // beside op_flags

}  // namespace

// Does the application learn that the operation has succeeded? By an entry (FI_COMPLETION,
// fi_endpoint(3)), by a counter, or because the operation is a deferred one.
bool TxSide::is_awaited(const TxCall& call) const noexcept {
  return (call.flags & FI_COMPLETION) != 0 || call.mark != 0 || bindings_.count_sends();
}

// Data from device memory are sent from a copy, made here before anything is locked; data that
// come back are written to the device directly. 0 or a negative fi_errno.
int TxSide::stage_devices(const TxCall& call, std::span<ses::IoSlice> slices,
                          Staged*& staged) noexcept {
  const Buffers buffers = mark_devices(call.descriptors, slices);
  if (buffers == Buffers::Wrong) return -FI_EINVAL;
  if (buffers == Buffers::Host || call.places) return 0;
  if ((call.flags & FI_INJECT) != 0) {
    return refuse_endpoint(-FI_EINVAL, "FI_INJECT needs buffers of FI_HMEM_SYSTEM");
  }
  staged = stage(slices);
  return staged != nullptr ? 0
                           : refuse_endpoint(-FI_ENOMEM, "no memory to copy the device buffers to");
}

// The completion as the application's operation would have had it.
ses::Completion TxSide::unstage(const ses::Completion& completion) noexcept {
  const std::unique_ptr<Staged> staged(static_cast<Staged*>(completion.context));
  StagedList::remove(*staged);
  ses::Completion told = completion;
  told.context = staged->context;
  told.user_flags = staged->user_flags;
  return told;
}

// The checks, the peer and the CQ entry are common to all kinds; `post` hands over `op`.
template <class Op, class Post>
ssize_t TxSide::transmit(const TxCall& call, TransferKind kind, Op& op, Post post) noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (!state_.may_send) {
    return refuse_endpoint(-FI_EOPBADSTATE,
                           "call fi_enable and bind a CQ or counter for transmits first");
  }
  if (call.count > ses::kMaxIoSlices ||
      (call.flags & ~(kTxCallFlags | state_.type().tx_op_flags)) != 0) {
    return refuse_endpoint(-FI_EINVAL, "use at most iov_limit pieces and only supported flags");
  }
  if (lacks_address(call.iov, call.count)) {
    return refuse_endpoint(-FI_EINVAL, "a buffer has a length, but its address is NULL");
  }
  Slices slices;
  const std::optional<std::size_t> length = fill_slices(call.iov, call.count, slices);
  if (!length) {
    return refuse_endpoint(-FI_EINVAL, "the lengths of the pieces add up to more than 2^64");
  }
  op.local = std::span(slices.data(), call.count);
  op.inject = (call.flags & FI_INJECT) != 0;
  if (op.inject && *length > options_.limits().inject[kind]) {
    return refuse_endpoint(-FI_EINVAL, "more bytes than inject_size; post without injection");
  }
  if (*length > options_.limits().most[kind]) {
    return refuse_endpoint(-FI_EMSGSIZE, "more than max_msg_size bytes");
  }
  op.delivery_complete = (call.flags & kDelivered) != 0;
  op.fence = (call.flags & FI_FENCE) != 0;
  op.awaited = is_awaited(call);
  op.data = call.data;
  op.context = call.context;
  op.user_flags = call.flags | call.mark;
  std::unique_ptr<Staged> staged;
  if (engine_.knows_hmem()) [[unlikely]] {
    Staged* copy = nullptr;
    const int result = stage_devices(call, std::span(slices.data(), call.count), copy);
    if (result != 0) return result;
    staged.reset(copy);
    if (staged != nullptr) {
      staged->context = std::exchange(op.context, copy);
      staged->user_flags = std::exchange(op.user_flags, op.user_flags | kStaged);
    }
  }

  const Guard guard(engine_.lock(), call.locked);
  const auto peer = state_.av->peer(call.to);
  if (!peer) {
    return refuse_endpoint(-FI_EINVAL, "the destination is not in the AV; call fi_av_insert first");
  }
  op.peer = &*peer;
  const Time now = clock_now();
  if (!bindings_.take_tx()) {
    engine_.fep().ses().hurry(*state_.context);
    engine_.progress(now);
    return -FI_EAGAIN;
  }
  if (staged != nullptr) staged_.push_back(*staged);  // it may complete at once
  const Result<void> posted = post(engine_.fep().ses(), op, now);
  if (posted) {
    (void)staged.release();
    engine_.posted(now, (call.flags & FI_MORE) != 0);
    return 0;
  }
  if (staged != nullptr) StagedList::remove(*staged);
  bindings_.return_tx();
  // Progress here: the application may repeat the post without reading a queue.
  if (posted.error() == Error::Again) engine_.progress(now);
  return to_fi_errno(posted.error());
}

template <class Post>
ssize_t TxSide::defer(ses::Kind kind, const TxCall& call, Post post) noexcept {
  if (const int result = may_defer(state_); result != 0) return result;
  if (call.count > ses::kMaxIoSlices ||
      (call.flags & ~(kTxCallFlags | state_.type().tx_op_flags)) != 0) {
    return refuse_endpoint(-FI_EINVAL, "use at most iov_limit pieces and only supported flags");
  }
  const std::optional<std::size_t> length = total_bytes(call.iov, call.count);
  const bool inject = (call.flags & FI_INJECT) != 0;
  if (!length || (inject && *length > *std::max_element(options_.limits().inject.begin(),
                                                        options_.limits().inject.end()))) {
    return refuse_endpoint(-FI_EINVAL, "more bytes than inject_size or 2^64");
  }
  if (inject && engine_.knows_hmem() && name_devices(call.descriptors, call.count)) {
    return refuse_endpoint(-FI_EINVAL, "FI_INJECT needs buffers of FI_HMEM_SYSTEM");
  }
  return guarded([&] { return engine_.works().defer(endpoint_, kind, call, post); });
}

ssize_t TxSide::send(const TxCall& call, std::optional<std::uint64_t> tag) noexcept {
  if ((call.flags & kTrigger) != 0) {
    return defer(tag ? ses::Kind::TaggedSend : ses::Kind::Send, call,
                 [this, tag](const TxCall& due) { return send(due, tag); });
  }
  if (tag && !may_tag_) {
    return refuse_endpoint(-FI_EOPNOTSUPP, "the profile has no tagged messages");
  }
  ses::SendOp op;
  op.tag = tag;
  return transmit(call, tag ? kTagged : kMessage, op,
                  [this](ses::Ses& ses, const ses::SendOp& send, Time now) {
                    return ses.send(*state_.context, send, now);
                  });
}

ssize_t TxSide::post_rma(const TxCall& call, std::uint64_t remote, std::uint64_t key,
                         Result<void> (ses::Ses::*post)(ses::Context&, const ses::RmaOp&,
                                                        Time)) noexcept {
  ses::RmaOp op;
  op.remote_offset = remote;
  op.key = Rkey{key};
  return transmit(call, kRma, op, [this, post](ses::Ses& ses, const ses::RmaOp& rma, Time now) {
    return (ses.*post)(*state_.context, rma, now);
  });
}

ssize_t TxSide::write(const TxCall& call, std::uint64_t remote, std::uint64_t key) noexcept {
  if ((call.flags & kTrigger) != 0) {
    return defer(ses::Kind::Write, call,
                 [this, remote, key](const TxCall& due) { return write(due, remote, key); });
  }
  return post_rma(call, remote, key, &ses::Ses::write);
}

ssize_t TxSide::read(const TxCall& call, std::uint64_t remote, std::uint64_t key) noexcept {
  TxCall read = call;
  read.places = true;
  read.flags &= ~static_cast<std::uint64_t>(FI_INJECT);  // there is nothing to copy
  if ((read.flags & kTrigger) != 0) {
    return defer(ses::Kind::Read, read,
                 [this, remote, key](const TxCall& due) { return this->read(due, remote, key); });
  }
  return post_rma(read, remote, key, &ses::Ses::read);
}

ssize_t TxSide::post_atomic(const TxCall& call, ses::AtomicOp& op) noexcept {
  if ((state_.type().caps & FI_ATOMIC) == 0) {
    return refuse_endpoint(-FI_EOPNOTSUPP, "the profile has no atomics");
  }
  return transmit(call, kAtomic, op, [this](ses::Ses& ses, const ses::AtomicOp& atomic, Time now) {
    return ses.atomic(*state_.context, atomic, now);
  });
}

ssize_t TxSide::size_left() noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (!state_.may_send) return -FI_EOPBADSTATE;
  const Guard guard(engine_.lock());
  if (bindings_.stx() != nullptr) return static_cast<ssize_t>(bindings_.stx()->left());
  return static_cast<ssize_t>(state_.config.tx_size - bindings_.tx_in_progress());
}

void* TxSide::operation_of(void* context) noexcept {
  for (Staged& staged : staged_) {
    if (staged.context == context) return &staged;
  }
  return context;
}

void TxSide::drop_staged() noexcept {
  while (!staged_.empty()) delete &staged_.pop_front();
}

}  // namespace uet::prov
