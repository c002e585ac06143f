// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The receives of an endpoint: posted ones, multi-receives, and looks at what has arrived (FI_PEEK,
// FI_CLAIM, FI_DISCARD of fi_tagged(3), here for untagged messages too).
#include <algorithm>
#include <span>

#include "objects/endpoint.h"
#include "objects/post_linked.h"
#include "objects/rx_side.h"
#include "settings/hints.h"
#include "submission/translation.h"

namespace uet::prov {
namespace {

constexpr std::uint64_t kLookFlags = FI_PEEK | FI_CLAIM | FI_DISCARD;
constexpr std::uint64_t kTrigger = FI_TRIGGER;
constexpr std::uint64_t kRxCallFlags =
    (kRxOpFlags & ~kTrigger) | FI_MORE | kLookFlags | kAuthKeyFlag;

}  // namespace

const char* refuse_receive(const RxCall& call, const ReceiveSettings& settings) {
  if (call.count > settings.iov_count) return "too many pieces; use at most iov_limit";
  if (!total_bytes(call.iov, call.count)) return "more than 2^64 bytes; use smaller pieces";
  if ((call.flags & ~kRxCallFlags) != 0) return "unsupported flag; see fi_msg(3)";
  const std::uint64_t look = call.flags & kLookFlags;
  if (look == FI_DISCARD || look == kLookFlags) {
    return "FI_DISCARD alone or with both; use either FI_PEEK or FI_CLAIM";
  }
  if ((look & FI_CLAIM) != 0 && call.context == nullptr)
    return "FI_CLAIM without a context; pass the context of the peek";
  if ((call.flags & FI_MULTI_RECV) == 0) return nullptr;
  if (lacks_address(call.iov, call.count))
    return "FI_MULTI_RECV without a buffer; pass its address";
  if (look != 0) return "FI_MULTI_RECV with FI_PEEK or FI_CLAIM; use one of them";
  if (call.tagged && !settings.tagged_multi) {
    return "tagged multi-receive without its capability; ask for FI_TAGGED_MULTI_RECV";
  }
  return nullptr;
}

// An operation with FI_TRIGGER waits in the domain's queue.
ssize_t RxSide::defer(const RxCall& call) noexcept {
  if (const int result = may_defer(state_); result != 0) return result;
  RxCall later = call;
  later.flags &= ~kTrigger;
  if ((call.flags & kLookFlags) != 0 || refuse_receive(later, options_.receive()) != nullptr) {
    return refuse_endpoint(-FI_EINVAL,
                           "fi_recvmsg: endpoint: FI_TRIGGER with FI_PEEK, FI_CLAIM or an invalid "
                           "receive; post without it");
  }
  return engine_.works().defer(endpoint_, later);
}

ssize_t RxSide::receive(const RxCall& call) noexcept {
  if ((call.flags & kTrigger) != 0) return defer(call);
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (!state_.may_receive) {
    return refuse_endpoint(-FI_EOPBADSTATE,
                           "fi_recv: endpoint: not enabled for receives; call fi_enable and bind a "
                           "CQ or counter first, or post to the shared receive context");
  }
  const bool after_others = state_.submission != nullptr && !call.locked;
  if (after_others && fits_command(call)) return submit(call);
  const auto post = [&](const RxSource& source, Time now) UET_NO_THREAD_ANALYSIS -> Result<void> {
    if (after_others && !state_.submission->drain_rx(now)) return Error::Again;
    return start(call, source, now);
  };
  return post_receive(
      engine_, call, options_.receive(), [this] { return state_.av; }, post);
}

// With the domain's lock.
Result<void> RxSide::start(const RxCall& call, const RxSource& source,
                           Time now) noexcept UET_NO_THREAD_ANALYSIS {
  if (!bindings_.take_rx()) return Error::Again;
  const ReceiveSettings& settings = options_.receive();
  Result<void> posted;
  if (EngineLink* const link = engine_.link()) {
    posted = hand_over_to(*link, state_.linked, engine_, call, settings, source, now);
  } else {
    posted = hand_over(engine_, *state_.context, call, settings, source, now);
  }
  if (!posted) bindings_.return_rx();
  // CM-34: after the end of the connection only what has come is left to receive.
  if (posted && state_.ended) state_.cancel_receives();
  return posted;
}

// FI_UET_ENGINE=thread: the receive becomes a command. 0 or a negative fi_errno; nothing is locked.
ssize_t RxSide::submit(const RxCall& call) noexcept {
  const ReceiveSettings& settings = options_.receive();
  if (const int result = check_receive(engine_, call, settings); result != 0) return result;
  RxSource source;
  if (const int result = find_source(call, settings, state_.av, source); result != 0) return result;
  if (engine_.knows_hmem()) {
    Slices slices;
    fill_slices(call.iov, call.count, slices);
    const auto pieces = std::span(slices.data(), call.count);
    if (mark_devices(call.descriptors, pieces) == Buffers::Wrong) return -FI_EINVAL;
  }
  const CommandRing::Claim claim = state_.submission->claim_rx(engine_.lock());
  if (claim.command == nullptr) return -FI_EAGAIN;
  Command* const command = claim.command;
  command->opcode = Opcode::Receive;
  command->tagged = call.tagged;
  command->tag = call.tag;
  command->key = call.ignore;
  command->flags = call.flags;
  command->context = call.context;
  command->has_peer = source.peer.has_value();
  if (source.peer) command->peer = *source.peer;
  command->compare = command->results = 0;
  command->cancelled = false;
  write_pieces(call.iov, call.count, call.descriptors, *command);
  state_.submission->submit(claim);
  return 0;
}

bool RxSide::execute(const Command& command, Time now) noexcept {
  std::array<iovec, kCommandPieces> pieces;
  read_pieces(command, pieces.data());
  const RxCall call{.iov = pieces.data(),
                    .count = command.pieces,
                    .context = command.context,
                    .flags = command.flags,
                    .tagged = command.tagged,
                    .tag = command.tag,
                    .ignore = command.key,
                    .descriptors = command.described ? command.descriptors.data() : nullptr,
                    .locked = true};
  RxSource source;
  if (command.has_peer) source.peer = command.peer;
  const Result<void> started = start(call, source, now);
  if (started) return true;
  if (started.error() == Error::Again || !bindings_.take_rx()) return false;
  endpoint_.reporter().fail(kind_of(command), command.context, command.flags,
                            -to_fi_errno(started.error()));
  return true;
}

ssize_t RxSide::size_left() noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (!state_.may_receive) return -FI_EOPBADSTATE;
  const Guard guard(engine_.lock());
  if (state_.submission != nullptr) state_.submission->drain_rx(clock_now());
  const std::size_t size = state_.config.rx_size;
  return static_cast<ssize_t>(size - std::min(size, bindings_.rx_in_progress()));
}

}  // namespace uet::prov
