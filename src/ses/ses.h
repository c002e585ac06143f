// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The semantic sublayer of a FEP: operations become messages and packets (Initiator), packets
// become memory and completions (Target). One object per FEP, under the FEP's one thread or lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/trace.h"
#include "ri/mr_table.h"
#include "ses/counters.h"
#include "ses/parameters.h"
#include "ses/waiting_operation.h"
#include "uet/base/packet.h"
#include "uet/base/result.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"
#include "uet/ses/api.h"

namespace uet::ses {

class Context;       // one libfabric endpoint: a resource index with its receive queues
class Initiator;     // the operations that this FEP sends
class ReceiveQueue;  // receives and the messages that wait for them

class Ses {
 public:
  // `buffers` gives payload_mtu-sized buffers for inject, gathers, read data and unexpected
  // messages. The referenced objects outlive this one.
  Ses(const Parameters& parameters, BufferPool& buffers, ri::MrTable& regions);
  ~Ses();

  // The interface that PDS calls.
  pds::Client& client();
  // Sets the interface that SES calls; once, before the first operation.
  void attach(pds::Delivery& delivery);
  // PDS ends before this object, with messages in progress or without: SES calls it no more.
  void detach();
  // As trace::Trace::keep_in.
  void keep_trace_in(trace::Ring* ring, const Time* clock);

  // Registers {JobID, PIDonFEP, ResourceIndex} if it receives; KeyInUse if taken, NoMemory if the
  // table is full.
  Result<Context*> open_context(const ContextConfig& config, CompletionSink& sink);
  // Enables receiving; until then requests for it are answered DISABLED (SES-115 step 6).
  void enable(Context& context);
  // From now on sends of the endpoint `peer` reach the context (ContextConfig::connected). Others
  // are answered PERM_VIOLATION.
  void connect(Context& context, const Peer& peer);
  // Changes what ContextConfig says of the two, at any time: operations in progress stay.
  void rebind(Context& context, std::size_t tx_size, bool remote_cq_data);
  // Memory that unexpected messages hold, in bytes, and how close the fullest context is to
  // refusing messages for lack of memory, 0 to 1. Where rendezvous is on, data that can be read
  // again later do not count, because they are dropped long before.
  std::size_t unexpected_bytes() const;
  double unexpected_occupancy() const;
  // Operations of this context that have not completed (receives not counted).
  std::size_t outstanding(const Context& context) const;
  // Ends the context: receives vanish without completion, unfinished sends have their PDC aborted,
  // so that no packet refers to user memory afterwards.
  void close_context(Context& context, Time now);
  const ContextConfig& config(const Context& context) const;

  // A queue of at most `size` receives for several contexts (ContextConfig::shared). `directed`:
  // honour the source of a receive. A message's completion goes to the context that it was sent to;
  // `sink` gets those that belong to none: peeks, cancelled receives, released buffers.
  // With an `owner` nothing is posted to the queue: the owner finds the receives, `size` of which
  // may be bound to messages at a time. A receive whose message is abandoned completes Abandoned.
  ReceiveQueue* open_receive_queue(std::size_t size, bool directed, CompletionSink& sink,
                                   ReceiveOwner* owner = nullptr);
  // Its contexts have been closed. Receives vanish without completion.
  void close_receive_queue(ReceiveQueue& queue);

  // Where sends, RMA and atomics are posted.
  Initiator& initiator();
  // Each returns Again when a pool or rx_size is exhausted, Invalid for an impossible argument,
  // TooLong beyond max_message_bytes. On success exactly one Completion follows.
  // A claim finds nothing: NotFound. For a context that receives from a queue of its own; posts of
  // the queue itself are for shared ones. The host has reserved one completion for each of these
  // posts, except those to shared queues.
  Result<void> receive(Context& context, const ReceiveOp& op, Time now);
  Result<void> receive(ReceiveQueue& queue, const ReceiveOp& op, Time now);
  // The owner has a receive for a message that SES keeps for it; or discards the message.
  Result<void> receive_kept(Envelope& message, const ReceiveOp& op, Time now);
  void discard_kept(Envelope& message, Time now);
  Result<void> peek(Context& context, const PeekOp& op, Time now);
  Result<void> peek(ReceiveQueue& queue, const PeekOp& op, Time now);
  // Cancels the oldest operation with this context pointer: a receive completes Cancelled (a
  // multi-receive after the messages that are under way to it); an operation of which packets are
  // still to be made too, when the peer has answered all sent ones (SES-113). NotFound otherwise;
  // Again when the CQ of a shared queue has no free entry.
  Result<void> cancel(Context& context, void* operation_context, Time now);
  Result<void> cancel(ReceiveQueue& queue, void* operation_context, Time now);

  // Cancels all posted receives of a context with a queue of its own, as cancel() one.
  void cancel_receives(Context& context);

  // Replaces `out` by operations that have not completed, at most `most`, the oldest of each
  // context first; receives do not count. Returns how many there are. May throw bad_alloc.
  std::size_t list_waiting(std::vector<WaitingOperation>& out, std::size_t most) const;
  // Goes on with what had to wait; part of every pass of the FEP.
  void progress(Time now);
  // When progress must be called at the latest; kNever if nothing waits.
  Time next_deadline() const;

  static constexpr std::uint64_t kMaxMessageBytes = ses::kMaxMessageBytes;
  std::size_t max_inject_bytes() const;
  // Operands of one atomic: what one packet holds (SES-90).
  std::size_t max_atomic_bytes() const;

  const Counters& counters() const;
  // True when nothing is in progress and every pool is full again (simulator oracle). Receives that
  // wait for a message do not count.
  bool idle() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace uet::ses
