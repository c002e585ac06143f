// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From a receive call to an operation of SES: the same for an endpoint's own queue of receives and
// for one that endpoints share.
#pragma once

#include <rdma/fi_errno.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "compat.h"
#include "errors.h"
#include "hmem/hmem.h"
#include "objects/av_fid.h"
#include "objects/engine.h"
#include "objects/ep_options.h"
#include "process/engine_link.h"
#include "provider.h"
#include "settings/hints.h"
#include "uet/ses/api.h"

namespace uet::prov {

struct RxCall {
  const iovec* iov = nullptr;
  std::size_t count = 0;
  fi_addr_t from = FI_ADDR_UNSPEC;
  void* context = nullptr;
  std::uint64_t flags = 0;
  bool tagged = false;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  void* const* descriptors = nullptr;  // one for each piece, or none
  bool locked = false;                 // the caller has the domain's lock (WorkQueue)
  std::uint64_t mark = 0;              // goes into the user flags of SES beside `flags`
};

// Whose messages a receive takes: of a peer, of a job, or of all.
struct RxSource {
  std::optional<ses::Peer> peer;
  std::optional<JobId> job;
};

// The reason to refuse a call; nullptr if there is none.
const char* refuse_receive(const RxCall& call, const ReceiveSettings& settings);

using Slices = std::array<ses::IoSlice, ses::kMaxIoSlices>;

// Bytes of all pieces together; nothing if their sum does not fit.
inline std::optional<std::size_t> total_bytes(const iovec* iov, std::size_t count) {
  std::size_t total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (__builtin_add_overflow(total, iov[i].iov_len, &total)) return {};
  }
  return total;
}

// Likewise; `count` is at most that of `slices`.
inline std::optional<std::size_t> fill_slices(const iovec* iov, std::size_t count, Slices& slices) {
  for (std::size_t i = 0; i < count; ++i) {
    slices[i] = {static_cast<std::byte*>(iov[i].iov_base), iov[i].iov_len};
  }
  return total_bytes(iov, count);
}

// A receive may have a length and no address, as with other providers: it takes an empty message,
// and truncates others.
inline void empty_null_slices(std::span<ses::IoSlice> slices) {
  for (ses::IoSlice& slice : slices) {
    if (slice.data == nullptr) slice.length = 0;
  }
}

// Some piece has bytes and no address.
inline bool lacks_address(const iovec* iov, std::size_t count) {
  return std::any_of(iov, iov + count, [](const iovec& piece) {
    return piece.iov_base == nullptr && piece.iov_len != 0;
  });
}

// The fields that operations to receive and to peek have in common.
template <class Op>
Op operation_of(const RxCall& call, const RxSource& source) {
  Op op;
  op.tagged = call.tagged;
  op.tag = call.tag;
  op.ignore = call.ignore;
  op.source = source.peer ? &*source.peer : nullptr;
  op.job = source.job;
  op.context = call.context;
  op.user_flags = call.flags | call.mark;
  return op;
}

// The context of an endpoint that an engine in another process has.
struct LinkedContext {
  EngineLink& link;
  ContextNumber number;
};

// As ses::Ses::receive() and peek(): to a context or a queue of SES, or to the engine.
template <class Queue>
Result<void> start(ses::Ses& ses, Queue& queue, const ses::ReceiveOp& op, Time now) {
  return ses.receive(queue, op, now);
}
template <class Queue>
Result<void> start(ses::Ses& ses, Queue& queue, const ses::PeekOp& op, Time now) {
  return ses.peek(queue, op, now);
}
inline Result<void> start(ses::Ses&, const LinkedContext& to, const ses::ReceiveOp& op, Time) {
  return to.link.receive(to.number, op);
}
inline Result<void> start(ses::Ses&, const LinkedContext& to, const ses::PeekOp& op, Time) {
  return to.link.peek(to.number, op);
}

// `queue`: a context or a queue of SES, or a LinkedContext. With the lock, which the analysis does
// not see.
template <class Queue>
Result<void> hand_over(Engine& engine, Queue& queue, const RxCall& call,
                       const ReceiveSettings& settings, const RxSource& source,
                       Time now) noexcept UET_NO_THREAD_ANALYSIS {
  ses::Ses& ses = engine.fep().ses();
  if ((call.flags & (FI_PEEK | FI_DISCARD)) != 0) {
    engine.progress(now);  // what has come belongs to the answer
    auto op = operation_of<ses::PeekOp>(call, source);
    op.claimed = (call.flags & FI_PEEK) == 0;
    op.claim = !op.claimed && (call.flags & FI_CLAIM) != 0;
    op.discard = (call.flags & FI_DISCARD) != 0;
    return prov::start(ses, queue, op, now);
  }
  Slices slices;
  fill_slices(call.iov, call.count, slices);
  empty_null_slices(std::span(slices.data(), call.count));
  if (engine.knows_hmem() &&
      mark_devices(call.descriptors, std::span(slices.data(), call.count)) == Buffers::Wrong) {
    return Error::Invalid;
  }
  auto op = operation_of<ses::ReceiveOp>(call, source);
  op.local = std::span(slices.data(), call.count);
  op.claim = (call.flags & FI_CLAIM) != 0;
  op.multi = (call.flags & FI_MULTI_RECV) != 0;
  op.min_free = settings.min_multi_receive;
  return prov::start(ses, queue, op, now);
}

// Logs why a receive call is refused; returns `error`.
inline int log_refusal(const RxCall& call, int error, const char* why) noexcept {
  const char* const name = call.tagged ? "fi_trecv" : "fi_recv";
  FI_WARN(&provider, FI_LOG_EP_DATA, "%s: endpoint: %s\n", name, why);
  return error;
}

// The checks without a lock: 0 or a negative fi_errno.
inline int check_receive(const Engine& engine, const RxCall& call,
                         const ReceiveSettings& settings) noexcept {
  if (const char* why = refuse_receive(call, settings)) return log_refusal(call, -FI_EINVAL, why);
  if (call.tagged && engine.params().profile == Profile::AiBase) {
    return log_refusal(call, -FI_EOPNOTSUPP,
                       "the profile has no tagged messages; use FI_UET_PROFILE=ai_full or hpc");
  }
  if (call.tagged && call.ignore != 0 && engine.params().profile != Profile::Hpc) {  // SES-41
    return log_refusal(call, -FI_EINVAL,
                       "the profile does not ignore bits of a tag; use FI_UET_PROFILE=hpc");
  }
  return 0;
}

// The source that the AV (nullptr: none) knows by call.from: 0 or a negative fi_errno.
inline int find_source(const RxCall& call, const ReceiveSettings& settings, const AvFid* av,
                       RxSource& source) noexcept {
  const bool directed = call.tagged ? settings.tagged_directed : settings.directed;
  const bool by_key = (call.flags & kAuthKeyFlag) != 0;
  if (by_key && !directed) {
    return log_refusal(
        call, -FI_EINVAL,
        "FI_AUTH_KEY without its capability; ask for FI_DIRECTED_RECV or FI_TAGGED_DIRECTED_RECV");
  }
  if (!directed || call.from == FI_ADDR_UNSPEC) return 0;
  if (av != nullptr && by_key) source.job = av->key_job(call.from);
  if (av != nullptr && !by_key) source.peer = av->peer(call.from);
  if (source.peer || source.job) return 0;
  return log_refusal(call, -FI_EINVAL,
                     "the source address is not in the AV; call fi_av_insert first");
}

// The AV that `av` gives resolves the source. `post` reserves a CQ entry for the completion and
// calls hand_over. Both are called with the lock.
template <class GetAv, class Post>
ssize_t post_receive(Engine& engine, const RxCall& call, const ReceiveSettings& settings, GetAv av,
                     Post post) noexcept {
  if (const int result = check_receive(engine, call, settings); result != 0) return result;
  const Guard guard(engine.lock(), call.locked);
  RxSource source;
  if (const int result = find_source(call, settings, av(), source); result != 0) return result;
  const Time now = clock_now();
  const Result<void> posted = post(source, now);
  if (posted) {
    engine.posted(now, (call.flags & FI_MORE) != 0);
    return 0;
  }
  // Progress here: the application may repeat the post without reading a queue.
  if (posted.error() == Error::Again) engine.progress(now);
  if (posted.error() == Error::NotFound) {
    return log_refusal(call, -FI_ENOENT,
                       "FI_CLAIM without a message of this context; claim one with FI_PEEK first");
  }
  return to_fi_errno(posted.error());
}

}  // namespace uet::prov
