// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A slab of descriptors; what binding a message does to them, and the completions of both.
#include "ses/posted_receives.h"

#include <algorithm>

#include "ses/context.h"

namespace uet::ses {
namespace {

// The number of bytes that the message takes of a multi-receive buffer.
std::uint64_t room_taken(const Envelope& message, const Placement& placement) {
  return std::min<std::uint64_t>(message.request_length,
                                 placement.receive->capacity - placement.base);
}

std::byte* address_at(std::span<const IoSlice> slices, std::uint64_t offset) {
  for (const IoSlice& slice : slices) {
    if (offset < slice.length || offset == 0) return slice.data + offset;
    offset -= slice.length;
  }
  return nullptr;
}

Kind kind_of(const PostedReceive& receive) {
  return receive.tagged ? Kind::TaggedReceive : Kind::Receive;
}

}  // namespace

PostedReceives::PostedReceives(std::size_t capacity, Counters& counters)
    : counters_(counters),
      receives_(capacity),
      more_slices_(std::max<std::size_t>(capacity / 8, kMaxIoSlices)) {}

Result<PostedReceive*> PostedReceives::open(ReceiveQueue& queue, const ReceiveOp& op) {
  if (op.local.size() > kMaxIoSlices || (op.multi && op.claim)) return Error::Invalid;
  for (const IoSlice& slice : op.local) {
    if (slice.data == nullptr && slice.length > 0) return Error::Invalid;
  }
  if (queue.count >= queue.size) return Error::Again;
  MoreSlices* more = nullptr;
  if (op.local.size() > 1 && (more = more_slices_.take()) == nullptr) return Error::Again;
  PostedReceive* receive = receives_.take();
  if (receive == nullptr) {
    if (more != nullptr) more_slices_.give_back(more);
    return Error::Again;
  }
  set_criteria(*receive, queue, op);
  receive->multi = op.multi;
  receive->shared = queue.shared;
  receive->min_free = op.min_free;
  receive->queue = &queue;
  receive->slice_count = static_cast<std::uint32_t>(op.local.size());
  receive->more = more;
  std::copy(op.local.begin(), op.local.end(),
            more != nullptr ? more->slices.data() : &receive->slice);
  receive->capacity = total_length(op.local);
  receive->sequence = next_sequence_++;
  receive->operation = op.context;
  receive->user_flags = op.user_flags;
  ++queue.count;
  return receive;
}

void PostedReceives::release(PostedReceive& receive) {
  --receive.queue->count;
  if (receive.more != nullptr) more_slices_.give_back(receive.more);
  receives_.give_back(&receive);
}

// ---- messages ----------------------------------------------------------------------------------

void PostedReceives::bind(const Envelope& message, Placement& placement, PostedReceive& receive) {
  placement.receive = &receive;
  ++bound_;
  if (receive.multi) {
    ++receive.under_way;
    placement.base = receive.used;
    receive.used += room_taken(message, placement);
    const std::uint64_t left = receive.capacity - receive.used;
    if (left >= std::max<std::uint64_t>(receive.min_free, 1)) return;
    receive.closed = true;
  }
  if (receive.linked()) MatchQueue::remove(receive);
}

// Separates the message from its receive, which the caller completes or restores.
PostedReceive& PostedReceives::unbind(Placement& placement) {
  PostedReceive& receive = *placement.receive;
  placement.receive = nullptr;
  --bound_;
  if (receive.multi) --receive.under_way;
  return receive;
}

PostedReceive& PostedReceives::withdraw(const Envelope& message, Placement& placement) {
  const std::uint64_t taken = room_taken(message, placement);
  PostedReceive& receive = unbind(placement);
  if (receive.room_by_message()) message.context->sink.release_receive();
  // The end of the used part of the buffer can be used again.
  if (receive.multi && placement.base + taken == receive.used) receive.used = placement.base;
  return receive;
}

// ---- completions -------------------------------------------------------------------------------

ReceiveEnd PostedReceives::end(const Envelope& message, Placement& placement, Status status) {
  PostedReceive& receive = unbind(placement);
  ReceiveEnd ended;
  Completion& completion = ended.completion;
  completion.kind = kind_of(receive);
  completion.status = status;
  completion.context = receive.operation;
  completion.user_flags = receive.user_flags;
  completion.length = placement.placed;
  if (status == Status::Ok && message.request_length > receive.capacity) {
    completion.status = Status::Truncated;  // SES-42
    completion.excess = message.request_length - receive.capacity;
    ++counters_.truncated;
  }
  if (status != Status::Ok && receive.cancelled) completion.status = Status::Cancelled;
  completion.buffer = address_at(receive.slices(), placement.base);
  describe(message, completion);
  if (!receive.multi) {
    release(receive);
    return ended;
  }
  completion.multi = true;
  if (!receive.closed || receive.under_way > 0) return ended;
  if (completion.status != Status::Ok || receive.cancelled || receive.shared) {
    ended.buffer = &receive;
  } else {
    completion.released = true;
    release(receive);
  }
  return ended;
}

void PostedReceives::report(CompletionSink& sink, const ReceiveEnd& ended) {
  sink.complete(ended.completion);
  if (ended.buffer != nullptr) give_back(*ended.buffer, last_status(*ended.buffer));
}

void PostedReceives::close(PostedReceive& receive) {
  receive.closed = true;
  MatchQueue::remove(receive);
  if (receive.under_way == 0) give_back(receive, Status::Ok);
}

void PostedReceives::give_back(PostedReceive& receive, Status status) {
  CompletionSink& sink = receive.queue->sink;
  Completion completion;
  completion.kind = kind_of(receive);
  completion.status = status;
  completion.released = receive.multi;
  completion.context = receive.operation;
  completion.user_flags = receive.user_flags;
  completion.tag = receive.tag;
  release(receive);
  sink.complete(completion);
}

}  // namespace uet::ses
