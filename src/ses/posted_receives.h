// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The receives of all queues: their descriptors, the messages that are bound to them, and the
// completions that return them to the application. The receiver decides which message gets which
// receive.
#pragma once

#include <cstddef>

#include "ses/counters.h"
#include "ses/match.h"
#include "ses/message.h"
#include "uet/base/result.h"
#include "uet/base/slab.h"
#include "uet/ses/api.h"

namespace uet::ses {

// The report to the application when a message ends.
struct ReceiveEnd {
  Completion completion;
  PostedReceive* buffer = nullptr;  // a multi-receive that needs one more completion; else nullptr
};

class PostedReceives {
 public:
  // Holds up to `capacity` receives. `counters` outlives this object.
  PostedReceives(std::size_t capacity, Counters& counters);

  // A descriptor for a new receive of the queue, on no list. Invalid: the operation makes no sense.
  // Again: the queue or the pool of descriptors is full.
  Result<PostedReceive*> open(ReceiveQueue& queue, const ReceiveOp& op);
  // The next open() for this queue finds all memory that it may need.
  bool may_open(const ReceiveQueue& queue) {
    return receives_.ready() && more_slices_.ready() && queue.count < queue.size;
  }
  // Frees a receive that is on no list and bound to no message. Nothing completes.
  void release(PostedReceive& receive);

  // Gives the message the receive, or its part of the buffer of a multi-receive, which stays on its
  // list while it has at least `min_free` bytes left.
  void bind(const Envelope& message, Placement& placement, PostedReceive& receive);
  // Undoes bind() and the reservation of a CQ entry, as if the message had never come. The caller
  // frees the receive or posts it again.
  PostedReceive& withdraw(const Envelope& message, Placement& placement);
  // The message has ended: frees its receive, unless that is a multi-receive with other uses.
  // report() must follow, after the state of the message is freed.
  ReceiveEnd end(const Envelope& message, Placement& placement, Status status);
  // Writes the completion to the sink of the message's context, and the one of the buffer.
  void report(CompletionSink& sink, const ReceiveEnd& ended);
  // The multi-receive, which is on its list, takes no further message.
  void close(PostedReceive& receive);
  // Ends a receive that no message is bound to, with a completion: it is cancelled, or a
  // multi-receive whose last message has completed.
  void give_back(PostedReceive& receive, Status status);

  // Messages that have a receive.
  std::size_t bound() const { return bound_; }

 private:
  PostedReceive& unbind(Placement& placement);

  Counters& counters_;
  Slab<PostedReceive> receives_;
  Slab<MoreSlices> more_slices_;
  std::size_t bound_ = 0;
  std::uint64_t next_sequence_ = 0;
};

// The status of the last completion of a multi-receive.
inline Status last_status(const PostedReceive& receive) {
  return receive.cancelled ? Status::Cancelled : Status::Ok;
}

}  // namespace uet::ses
