// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The endpoint's data path: from a call to an operation of SES, from its completion to an entry.
// Nothing here allocates memory, except that a CQ grows when a post needs more entries than before.
#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "errors.h"
#include "objects/endpoint.h"
#include "objects/trigger.h"
#include "provider.h"
#include "settings/hints.h"

namespace uet::prov {
namespace {

constexpr std::uint64_t kTrigger = FI_TRIGGER;
constexpr std::uint64_t kTxCallFlags = FI_MORE | FI_REMOTE_CQ_DATA;  // beside op_flags

std::uint64_t entry_flags(const ses::Completion& completion) {
  std::uint64_t flags = 0;
  switch (completion.kind) {
    case ses::Kind::Send:
      return FI_SEND | FI_MSG;
    case ses::Kind::TaggedSend:
      return FI_SEND | FI_TAGGED;
    case ses::Kind::Write:
      return FI_WRITE | FI_RMA;
    case ses::Kind::Read:
      return FI_READ | FI_RMA;
    case ses::Kind::Atomic:
      return FI_WRITE | FI_ATOMIC;
    case ses::Kind::FetchAtomic:
    case ses::Kind::CompareAtomic:
      return FI_READ | FI_ATOMIC;
    case ses::Kind::Receive:
      flags = FI_RECV | FI_MSG;
      break;
    case ses::Kind::TaggedReceive:
      flags = FI_RECV | FI_TAGGED;
      break;
    case ses::Kind::RemoteWrite:
      flags = FI_REMOTE_WRITE | FI_RMA;
      break;
  }
  return completion.has_data ? flags | FI_REMOTE_CQ_DATA : flags;
}

bool is_receive(ses::Kind kind) {
  return kind == ses::Kind::Receive || kind == ses::Kind::TaggedReceive;
}

// Peeks and the release of a multi-receive buffer transfer nothing.
bool counts(const ses::Completion& completion) {
  if (!is_receive(completion.kind)) return true;
  const bool only_releases = completion.released && !completion.multi;
  return (completion.user_flags & (FI_PEEK | FI_DISCARD)) == 0 &&
         (!only_releases || completion.status != ses::Status::Ok);
}

}  // namespace

// Takes a slot for one operation, also in the shared context, and a CQ entry for its completion.
bool Endpoint::take_tx_room() noexcept {
  if (stx_ != nullptr && !stx_->take()) return false;
  if (tx_cq_ != nullptr && !tx_cq_->reserve()) {
    if (stx_ != nullptr) stx_->give_back();
    return false;
  }
  ++tx_outstanding_;
  return true;
}

// Does the application learn that the operation has succeeded? By an entry (FI_COMPLETION,
// fi_endpoint(3)), by a counter, or because the operation is a deferred one.
bool Endpoint::is_awaited(const TxCall& call) const noexcept {
  const bool counted = counters_[kSend] != nullptr || counters_[kWrite] != nullptr;
  return (call.flags & FI_COMPLETION) != 0 || call.mark != 0 || counted;
}

// The completion has used its CQ entry, or gives the entry back itself.
void Endpoint::give_back_tx_room() noexcept {
  --tx_outstanding_;
  if (stx_ != nullptr) stx_->give_back();
}

// Data from device memory are sent from a copy, made here before anything is locked; data that
// come back are written to the device directly. 0 or a negative fi_errno.
int Endpoint::stage_devices(const TxCall& call, std::span<ses::IoSlice> slices,
                            Staged*& staged) noexcept {
  const Buffers buffers = mark_devices(call.descriptors, slices);
  if (buffers == Buffers::Wrong) return -FI_EINVAL;
  if (buffers == Buffers::Host || call.places) return 0;
  if ((call.flags & FI_INJECT) != 0) {
    return refuse(-FI_EINVAL, "FI_INJECT needs buffers of FI_HMEM_SYSTEM");
  }
  staged = stage(slices);
  return staged != nullptr ? 0 : refuse(-FI_ENOMEM, "no memory to copy the device buffers to");
}

// The completion as the application's operation would have had it.
ses::Completion Endpoint::unstage(const ses::Completion& completion) noexcept {
  const std::unique_ptr<Staged> staged(static_cast<Staged*>(completion.context));
  StagedList::remove(*staged);
  ses::Completion told = completion;
  told.context = staged->context;
  told.user_flags = staged->user_flags;
  return told;
}

// The checks, the peer and the CQ entry are common to all kinds; `post` hands over `op`.
template <class Op, class Post>
ssize_t Endpoint::transmit(const TxCall& call, TransferKind kind, Op& op, Post post) noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (!may_send_) {
    return refuse(-FI_EOPBADSTATE, "call fi_enable and bind a CQ or counter for transmits first");
  }
  if (call.count > ses::kMaxIoSlices || (call.flags & ~(kTxCallFlags | type().tx_op_flags)) != 0) {
    return refuse(-FI_EINVAL, "use at most iov_limit pieces and only supported flags");
  }
  if (lacks_address(call.iov, call.count)) {
    return refuse(-FI_EINVAL, "a buffer has a length, but its address is NULL");
  }
  Slices slices;
  const std::optional<std::size_t> length = fill_slices(call.iov, call.count, slices);
  if (!length) return refuse(-FI_EINVAL, "the lengths of the pieces add up to more than 2^64");
  op.local = std::span(slices.data(), call.count);
  op.inject = (call.flags & FI_INJECT) != 0;
  if (op.inject && *length > limits_.inject[kind]) {
    return refuse(-FI_EINVAL, "more bytes than inject_size; post without injection");
  }
  if (*length > limits_.most[kind]) return refuse(-FI_EMSGSIZE, "more than max_msg_size bytes");
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
  const auto peer = av_->peer(call.to);
  if (!peer) return refuse(-FI_EINVAL, "the destination is not in the AV; call fi_av_insert first");
  op.peer = &*peer;
  const Time now = clock_now();
  if (!take_tx_room()) {
    engine_.fep().ses().hurry(*ses_context_);
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
  give_back_tx_room();
  if (tx_cq_ != nullptr) tx_cq_->release();
  // Progress here: the application may repeat the post without reading a queue.
  if (posted.error() == Error::Again) engine_.progress(now);
  return to_fi_errno(posted.error());
}

// An operation with FI_TRIGGER waits in the domain's queue.
int Endpoint::may_defer() const noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (!enabled_) return refuse(-FI_EOPBADSTATE, "not enabled; call fi_enable first");
  return (caps_ & FI_TRIGGER) != 0 ? 0 : refuse(-FI_EINVAL, "FI_TRIGGER was not requested");
}

template <class Post>
ssize_t Endpoint::defer(ses::Kind kind, const TxCall& call, Post post) noexcept {
  if (const int result = may_defer(); result != 0) return result;
  if (call.count > ses::kMaxIoSlices || (call.flags & ~(kTxCallFlags | type().tx_op_flags)) != 0) {
    return refuse(-FI_EINVAL, "use at most iov_limit pieces and only supported flags");
  }
  const std::optional<std::size_t> length = total_bytes(call.iov, call.count);
  const bool inject = (call.flags & FI_INJECT) != 0;
  if (!length ||
      (inject && *length > *std::max_element(limits_.inject.begin(), limits_.inject.end()))) {
    return refuse(-FI_EINVAL, "more bytes than inject_size or 2^64");
  }
  if (inject && engine_.knows_hmem() && name_devices(call.descriptors, call.count)) {
    return refuse(-FI_EINVAL, "FI_INJECT needs buffers of FI_HMEM_SYSTEM");
  }
  return guarded([&] { return engine_.works().defer(*this, kind, call, post); });
}

ssize_t Endpoint::send(const TxCall& call, std::optional<std::uint64_t> tag) noexcept {
  if ((call.flags & kTrigger) != 0) {
    return defer(tag ? ses::Kind::TaggedSend : ses::Kind::Send, call,
                 [this, tag](const TxCall& due) { return send(due, tag); });
  }
  if (tag && !may_tag_) return refuse(-FI_EOPNOTSUPP, "the profile has no tagged messages");
  ses::SendOp op;
  op.tag = tag;
  return transmit(call, tag ? kTagged : kMessage, op,
                  [this](ses::Ses& ses, const ses::SendOp& send, Time now) {
                    return ses.send(*ses_context_, send, now);
                  });
}

ssize_t Endpoint::post_rma(const TxCall& call, std::uint64_t remote, std::uint64_t key,
                           Result<void> (ses::Ses::*post)(ses::Context&, const ses::RmaOp&,
                                                          Time)) noexcept {
  ses::RmaOp op;
  op.remote_offset = remote;
  op.key = Rkey{key};
  return transmit(call, kRma, op, [this, post](ses::Ses& ses, const ses::RmaOp& rma, Time now) {
    return (ses.*post)(*ses_context_, rma, now);
  });
}

ssize_t Endpoint::write(const TxCall& call, std::uint64_t remote, std::uint64_t key) noexcept {
  if ((call.flags & kTrigger) != 0) {
    return defer(ses::Kind::Write, call,
                 [this, remote, key](const TxCall& due) { return write(due, remote, key); });
  }
  return post_rma(call, remote, key, &ses::Ses::write);
}

ssize_t Endpoint::read(const TxCall& call, std::uint64_t remote, std::uint64_t key) noexcept {
  TxCall read = call;
  read.places = true;
  read.flags &= ~static_cast<std::uint64_t>(FI_INJECT);  // there is nothing to copy
  if ((read.flags & kTrigger) != 0) {
    return defer(ses::Kind::Read, read,
                 [this, remote, key](const TxCall& due) { return this->read(due, remote, key); });
  }
  return post_rma(read, remote, key, &ses::Ses::read);
}

ssize_t Endpoint::post_atomic(const TxCall& call, ses::AtomicOp& op) noexcept {
  if ((type().caps & FI_ATOMIC) == 0) return refuse(-FI_EOPNOTSUPP, "the profile has no atomics");
  return transmit(call, kAtomic, op, [this](ses::Ses& ses, const ses::AtomicOp& atomic, Time now) {
    return ses.atomic(*ses_context_, atomic, now);
  });
}

ssize_t Endpoint::cancel(void* operation_context) noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (!enabled_) return refuse(-FI_EOPBADSTATE, "not enabled; call fi_enable first");
  const Guard guard(engine_.lock());
  if (engine_.works().cancel(*this, operation_context)) return 0;
  for (Staged& staged : staged_) {
    if (staged.context != operation_context) continue;
    operation_context = &staged;
    break;
  }
  const Time now = clock_now();
  const auto result = engine_.fep().ses().cancel(*ses_context_, operation_context, now);
  if (result) engine_.posted(now, false);
  return result ? 0 : to_fi_errno(result.error());
}

ssize_t Endpoint::tx_size_left() noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (!may_send_) return -FI_EOPBADSTATE;
  const Guard guard(engine_.lock());
  if (stx_ != nullptr) return static_cast<ssize_t>(stx_->left());
  return static_cast<ssize_t>(ses_config_.tx_size - tx_outstanding_);
}

ssize_t Endpoint::rx_size_left() noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (!may_receive_) return -FI_EOPBADSTATE;
  const Guard guard(engine_.lock());
  return static_cast<ssize_t>(ses_config_.rx_size - std::min(ses_config_.rx_size, rx_outstanding_));
}

Cq* Endpoint::queue_of(ses::Kind kind) const {
  return is_receive(kind) || kind == ses::Kind::RemoteWrite ? rx_cq_ : tx_cq_;
}

Cntr* Endpoint::counter_of(ses::Kind kind) const {
  switch (kind) {
    case ses::Kind::Send:
    case ses::Kind::TaggedSend:
      return counters_[kSend];
    case ses::Kind::Write:
    case ses::Kind::Atomic:
      return counters_[kWrite];
    case ses::Kind::Read:
    case ses::Kind::FetchAtomic:
    case ses::Kind::CompareAtomic:
      return counters_[kRead];
    case ses::Kind::Receive:
    case ses::Kind::TaggedReceive:
      return counters_[kRecv];
    case ses::Kind::RemoteWrite:
      return counters_[kRemoteWrite];
  }
  return nullptr;
}

// The peer knows why; its answer is all that reaches this side.
void Endpoint::warn_refused(wire::ReturnCode code) const noexcept {
  char text[128];
  describe_prov_errno(static_cast<int>(code), text, sizeof text);
  FI_WARN(&provider, FI_LOG_EP_DATA, "the target refused an operation: %s\n", text);
  if (code == wire::ReturnCode::OpViolation) {  // SES-26
    FI_WARN(&provider, FI_LOG_EP_DATA,
            "if it was a message: both ends need the same payload MTU, here it is %u bytes "
            "(FI_UET_PAYLOAD_MTU sets it)\n",
            engine_.payload_mtu());
  }
}

bool Endpoint::end_unposted(ses::Kind kind, void* operation_context,
                            std::uint64_t user_flags) noexcept {
  if (!is_receive(kind)) {
    if (!take_tx_room()) return false;
  } else if (!reserve_receive()) {
    return false;
  }
  ses::Completion completion;
  completion.kind = kind;
  completion.status = ses::Status::Cancelled;
  completion.context = operation_context;
  completion.user_flags = user_flags;
  complete(completion);
  return true;
}

void Endpoint::complete(const ses::Completion& completion) noexcept {
  if ((completion.user_flags & kStaged) != 0) return complete(unstage(completion));
  if ((completion.user_flags & kDeferred) != 0) {
    return complete(
        engine_.works().finish(completion, counter_of(completion.kind), counts(completion)));
  }
  PeerReceives* const peer =
      srx_ != nullptr && is_receive(completion.kind) ? srx_->peer() : nullptr;
  if (peer == nullptr) return tell(completion);
  PeerRxEntry& entry = *static_cast<PeerRxEntry*>(completion.context);
  ses::Completion of_owner = completion;
  of_owner.context = entry.context;
  of_owner.user_flags = entry.flags & FI_COMPLETION;
  tell(of_owner);
  peer->release(entry);
}

// Counters and queues hear of it.
void Endpoint::tell(const ses::Completion& completion) noexcept {
  const bool event = completion.kind == ses::Kind::RemoteWrite;
  const bool receive = is_receive(completion.kind);
  if (receive) {
    --rx_outstanding_;
  } else if (!event) {
    give_back_tx_room();
  }
  // A multi-receive's last entry rides on that of its last message: its own place is free.
  if (completion.multi && completion.released) release_receive();
  const CompletionError error = to_completion_error(completion);
  if (completion.status == ses::Status::ReturnCode) warn_refused(completion.return_code);
  Cntr* counter = counter_of(completion.kind);
  if (counter != nullptr && counts(completion) && (completion.user_flags & kUncounted) == 0) {
    counter->count(error.err == 0, completion.length);
  }
  Cq* cq = queue_of(completion.kind);
  if (cq == nullptr) return;
  // Errors, events and released buffers are always told, successes if the call wanted it. Receives
  // of a shared context were posted without knowing this endpoint.
  const bool always = event || error.err != 0 || completion.released;
  const bool by_endpoint = receive && (completion.user_flags & kUncounted) == 0;
  const std::uint64_t flags = completion.user_flags | (by_endpoint ? rx_always_ : 0);
  if (!always && (flags & FI_COMPLETION) == 0) {
    cq->release();
    return;
  }
  Cq::Entry entry;
  entry.fields.op_context = completion.context;
  // fi_endpoint(3): an error without a context of its own comes with the endpoint's.
  if (error.err != 0 && completion.context == nullptr) entry.fields.op_context = context_;
  entry.fields.flags = entry_flags(completion);
  entry.err = error.err;
  entry.prov_errno = error.prov_errno;
  entry.excess = completion.excess;
  if (receive || event) describe_receive(completion, entry);
  if (event) {
    cq->push_event(entry);
  } else {
    cq->push(entry);
  }
}

bool Endpoint::can_take_event() noexcept { return rx_cq_ == nullptr || rx_cq_->can_take_event(); }

// fi_endpoint(3): FI_REMOTE_READ counts reads, fetching and comparing atomics.
void Endpoint::remote_access(ses::Kind kind, std::uint64_t length) noexcept {
  Cntr* counter = counters_[ses::returns_data(kind) ? kRemoteRead : kRemoteWrite];
  if (counter != nullptr) counter->count(true, length);
}

}  // namespace uet::prov
