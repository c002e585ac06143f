// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The messages in progress at either end and the memory they lie in. Data only: initiator.cc,
// target.cc and the objects of the receiver decide what happens to them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/chain_table.h"
#include "uet/base/intrusive_list.h"
#include "uet/base/packet.h"
#include "uet/base/slab.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"
#include "uet/ses/api.h"
#include "uet/wire/ses.h"

namespace uet::ses {

class Context;

// ---- user memory ------------------------------------------------------------------------------

std::uint64_t total_length(std::span<const IoSlice> slices);
// Copies `data` to byte `offset` of the slices; returns the number of bytes copied, which is less
// if the slices end before. `host` as for place().
std::uint32_t scatter(std::span<const IoSlice> to, std::uint64_t offset,
                      std::span<const std::byte> data, HostCopy* host);
// Copies `length` bytes from byte `offset` of the slices, which must hold them.
void gather(std::span<const IoSlice> from, std::uint64_t offset, std::uint32_t length,
            std::byte* to);
// As gather, to memory that `memory` has given.
void stage(std::span<const IoSlice> from, std::uint64_t offset, std::uint32_t length, std::byte* to,
           const StagingMemory& memory);
// Points `out` at bytes [offset, offset + length) of the slices, which must hold them. False, with
// `out` unspecified, when they lie in more than two pieces.
bool point(std::span<const IoSlice> from, std::uint64_t offset, std::uint32_t length,
           std::array<Slice, 2>& out);

// ---- payload that cannot stay in user memory ---------------------------------------------------

// A buffer with a part of a message in it: inject, gathers, read answers, unexpected messages.
struct Piece {
  Piece* next = nullptr;
  std::byte* data = nullptr;
  std::uint32_t offset = 0;  // in the message
  std::uint32_t length = 0;
  bool small = false;
};

// Hands out pieces: buffers of the FEP's pool, and small ones of its own.
class PieceStore {
 public:
  static constexpr std::uint32_t kSmallBytes = 256;

  explicit PieceStore(BufferPool& full);
  // Takes a piece for `length` bytes; nullptr if no buffer is free beyond the `reserve` full
  // buffers that the caller must leave to others.
  Piece* take(std::uint32_t length, std::size_t reserve = 0);
  void give_back(Piece* piece);
  // Gives back the whole chain and forgets it.
  void give_back_all(Piece*& first);
  // Bytes of memory that a piece for `length` bytes takes.
  std::size_t cost(std::uint32_t length) const {
    return sizeof(Piece) + (length <= kSmallBytes ? kSmallBytes : full_.buffer_bytes());
  }
  std::size_t capacity() const { return full_.capacity(); }
  // Full buffers that operations which begin here leave to answers to reads: the operations may
  // wait for reads that the peer answers only after its own.
  std::size_t for_answers() const { return (capacity() + 8) / 16; }
  // Full buffers that unexpected messages, which wait for the application, leave to all others.
  std::size_t for_expected() const { return 2 * for_answers(); }
  std::size_t available_bytes() const { return full_.available() * full_.buffer_bytes(); }
  std::uint32_t largest() const { return static_cast<std::uint32_t>(full_.buffer_bytes()); }
  std::size_t in_use() const { return pieces_.in_use(); }

 private:
  using Small = std::array<std::byte, kSmallBytes>;

  BufferPool& full_;
  Slab<Small> small_{SIZE_MAX};  // who needs them is bounded by operations and memory
  Slab<Piece> pieces_{SIZE_MAX};
};

// ---- initiator ---------------------------------------------------------------------------------

struct OutstandingTag;
struct HeldTag;
struct AwaitingReadTag;
struct AwaitingDataTag;
struct DeferrableTag;
struct ServedTag;
struct AwaitingChunkTag;
struct StagingPool;
struct Train;
struct ReadAnswer;
struct RxMessage;

// The request_length of a rendezvous send that is longer than it can state (SES-164).
inline constexpr std::uint32_t kOutsized = UINT32_MAX;

// The bytes of a message that lie on a device and are sent from copies (staging.h).
struct StagedBytes : ListNode<AwaitingChunkTag> {
  StagingPool* staging = nullptr;  // nullptr: the message has no such bytes
  Train* trains = nullptr;         // the copies, the newest first
};

// A message that was refused with a code that passes (retries.h).
struct RetriedMessage {
  bool refused = false;    // at least once, or it may have been: on ROD all later ones wait for it
  bool try_again = false;  // to be sent again instead of completing
  bool plain = false;      // its target does not know the opcode that it had first
  bool trial = false;      // a plain send until it is known how its target takes long ones
  std::uint16_t tries = 0;
  std::uint32_t packets_unconsumed = 0;  // of those answered, by PdsError::NotConsumed
  Time not_before{};                     // of the next try
};

// A send that the target can read again (rendezvous_source.h).
struct ReadableMessage {
  bool readable = false;     // its packets say where
  bool awaits_read = false;  // the target will: not complete before it has read to the end
  bool watched = false;      // its PDC asks whether the target still lives
  bool read_out = false;
  std::uint64_t last_read_bytes = 0;  // answered of the read that reaches the end
  Time awaiting_since{};
};

// A send that the target may put off (deferred_sends.h).
struct DeferrableMessage {
  std::uint32_t restart_token = 0;         // ours; not 0: it may
  std::uint32_t target_restart_token = 0;  // of the next try
  bool deferred = false;                   // it has: not complete before it was sent again
  bool restart = false;                    // and asks for it now
};

// An operation of the initiator, from the post to its completion.
struct TxMessage : pds::Message,
                   ListNode<OutstandingTag>,
                   ListNode<HeldTag>,
                   ListNode<AwaitingReadTag>,
                   ListNode<AwaitingDataTag>,
                   ListNode<DeferrableTag>,
                   StagedBytes,
                   RetriedMessage,
                   ReadableMessage,
                   DeferrableMessage {
  std::span<const IoSlice> slices() const { return {iov.data(), iov_count}; }
  bool failed() const { return status != Status::Ok; }
  // The first error wins (SES-109).
  void fail(wire::ReturnCode code) {
    if (failed()) return;
    status = Status::ReturnCode;
    return_code = code;
  }
  // Also ends a message that was to be sent again.
  void fail(pds::PdsError error) {
    if (failed() && !try_again) return;
    try_again = false;
    status = Status::PdsError;
    pds_error = error;
  }
  // Its target has put it off, or is still to read it.
  bool waits_for_target() const { return deferred || (awaits_read && !read_out); }
  // PDS may be asked to take it back as if it had never been sent.
  bool withdrawable() const {
    return mode == DeliveryMode::Uud || mode == DeliveryMode::Rudi || (packets_made == 0 && !ended);
  }

  // Bytes that its own packets carry.
  std::uint64_t eager_bytes() const {
    return header.request_length == kOutsized ? header.rendezvous.eager_length : length;
  }

  Context* context = nullptr;  // nullptr: the context is closed, no completion is due
  Kind kind = Kind::Send;
  DeliveryMode mode = DeliveryMode::Rud;
  Status status = Status::Ok;  // the first error (SES-109)
  wire::ReturnCode return_code{};
  pds::PdsError pds_error{};
  bool ended = false;          // no packet will be made any more
  bool owes_error = false;     // except a MSG_ERROR, when all others are answered
  bool cancelled = false;      // when it had left whole: a failure is then FI_ECANCELED
  std::uint64_t sequence = 0;  // order of posting
  bool has_data = false;       // remote CQ data go with the first packet
  bool fence = false;          // waits for all earlier ones of its context to the same peer
  FepAddress to;
  wire::SesRequest header;         // what all its packets repeat (SES-23)
  wire::LaterHeader later_header;  // of those behind the first, if there are such
  std::uint64_t length = 0;
  std::uint64_t offset = 0;  // bytes that packets have been made for
  std::uint64_t packets_made = 0;
  std::uint64_t packets_answered = 0;
  std::uint32_t pieces_awaited = 0;              // read requests without data or error yet
  std::uint64_t bytes_awaited = 0;               // and the bytes they asked for
  IntrusiveList<ReadAnswer, ServedTag> answers;  // that point into its memory
  bool pull = false;                             // a read of the target's own,
  RxMessage* pull_for = nullptr;                 // for this message, until its bytes are here

  Piece* gathered = nullptr;       // packets that do not point to user memory, by offset
  Piece* next_gathered = nullptr;  // first one not sent yet
  void* operation = nullptr;       // TxOp::context
  std::uint64_t user_flags = 0;
  std::uint32_t iov_count = 0;
  std::array<IoSlice, kMaxIoSlices> iov;
};

// Its target must read it to the end (SES-164).
inline bool is_outsized(const TxMessage& message) {
  return message.header.request_length == kOutsized;
}

// To the same resource index of the same FEP.
inline bool same_peer(const TxMessage& a, const TxMessage& b) {
  return a.to == b.to && a.header.pid_on_fep == b.header.pid_on_fep &&
         a.header.resource_index == b.header.resource_index && a.header.rel == b.header.rel;
}

// ---- target ------------------------------------------------------------------------------------

struct AnsweringTag;

// The data that answer one read request packet, on their way in the return direction: a copy in
// `piece`, or what they were when the read came of a message that is still being sent.
struct ReadAnswer : pds::Message, ListNode<AnsweringTag>, ListNode<ServedTag> {
  wire::SesResponseHeader header;
  std::uint64_t host = 0;  // host_hash of the initiator
  Piece* piece = nullptr;
  TxMessage* source = nullptr;
  Train* train = nullptr;          // of `source`, if the payload lies in one
  std::optional<Rkey> region;      // that the payload lies in
  std::array<Slice, 2> payload{};  // in the piece, the memory of `source` or the region
  DeviceMemory* device = nullptr;  // as Packet::device
};

// More slices than a receive descriptor holds itself.
struct MoreSlices {
  std::array<IoSlice, kMaxIoSlices> slices;
};

// Which messages a receive or a peek is for.
struct MatchCriteria {
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  bool tagged = false;
  bool directed = false;  // only from source / source_initiator
  InitiatorId source_initiator;
  FepAddress source;
  std::optional<JobId> job;  // only of this job
};

class ReceiveQueue;
struct PostedTag;
struct WildcardTag;
struct ExactTag;

// A receive that waits for a message, or is bound to one; a multi-receive may be both, and bound to
// several.
struct PostedReceive : ListNode<PostedTag>,
                       ListNode<WildcardTag>,
                       ChainNode<ExactTag>,
                       MatchCriteria {
  // It waits for a message.
  bool linked() const { return ListNode<PostedTag>::linked(); }
  std::span<const IoSlice> slices() const {
    return {more != nullptr ? more->slices.data() : &slice, slice_count};
  }
  // Its completions need places that the post has not reserved.
  bool room_by_message() const { return multi || shared; }
  // A message of this length may be bound to it. Only one that no buffer of this size could hold is
  // truncated.
  bool fits(std::uint64_t length) const { return !multi || used == 0 || length <= capacity - used; }

  bool multi = false;
  bool shared = false;     // of a queue that serves several contexts
  bool closed = false;     // multi: takes no more messages; off the list
  bool cancelled = false;  // takes no more messages; a failure is FI_ECANCELED
  ReceiveQueue* queue = nullptr;
  IoSlice slice;
  MoreSlices* more = nullptr;
  std::uint32_t slice_count = 0;
  std::uint64_t capacity = 0;  // bytes
  std::uint64_t sequence = 0;  // order of posting
  void* operation = nullptr;   // ReceiveOp::context
  std::uint64_t user_flags = 0;
  std::uint64_t min_free = 0;   // multi
  std::uint64_t used = 0;       // multi: bytes that messages have taken
  std::uint32_t under_way = 0;  // multi: messages bound to it
};

enum class RxState : std::uint8_t {
  Matched,     // goes to `receive`
  Unexpected,  // is kept in `pieces`; waits for a receive, or for the one that claims it
  Writing,     // goes to registered memory
  Error,       // its packets are dropped and answered with `return_code` (SES-35); discarded: OK
};

struct UnexpectedTag;
struct SameTagTag;
struct SameSourceTag;
struct ArrivingTag;
struct PullTag;

// The properties of an arriving message that its first packet states: those that a receive matches
// and those in its completion and its answers. While it waits for a receive, a queue lists it.
struct Envelope : ListNode<UnexpectedTag>, ChainNode<SameTagTag>, ChainNode<SameSourceTag> {
  explicit Envelope(bool is_single) : single(is_single) {}
  // As the request, the first packet that arrives of a message to `to`, says.
  void describe(const pds::RequestView& view, const wire::SesRequest& request, Context& to);
  // Takes over what the packet with SOM alone carries.
  void describe_first(const wire::SesRequest& request);
  bool tagged() const { return kind == Kind::TaggedSend; }

  Context* context = nullptr;
  // Operation context of the peek that claims it, or what the queue's owner knows it by.
  void* claimed_by = nullptr;
  std::uint64_t match_bits = 0;
  std::uint64_t data = 0;
  FepAddress source;
  InitiatorId initiator;
  // Of the whole message, an outsized one too (SES-164). Packed: there may be a million of these.
  std::uint64_t request_length : 63 = 0;
  std::uint64_t answer_owed : 1 = 0;  // NO_RESPONSE was said to the packet `answer_psn` (SES-46)
  Psn answer_psn;
  JobId job;
  PdcId pdc;
  MsgId message_id;
  const bool single;  // a SingleMessage (unexpected.h); else an RxMessage
  Kind kind = Kind::Send;
  bool som_seen = false;
  bool has_data = false;
};

// Where the bytes of a message go that has a receive.
struct Placement {
  PostedReceive* receive = nullptr;
  std::uint64_t base = 0;  // where it begins in the buffer of `receive`
  std::uint64_t placed = 0;
};

// A message that arrives, or an unexpected one that has arrived in several packets or must be read.
struct RxMessage : Envelope, Placement, ListNode<ArrivingTag>, ListNode<PullTag> {
  RxMessage() : Envelope(false) {}
  bool complete() const { return som_seen && received == expected; }

  RxMessage* next_in_bucket = nullptr;
  RxState state = RxState::Error;
  wire::ReturnCode return_code{};
  bool delivery_complete = false;  // its sender wants to know (SES-110)
  bool kept = false;               // counts as unexpected memory, not as a message in progress
  bool holds_pdc = false;          // its PDC asks whether the sender still lives
  bool watches = false;            // and may close meanwhile: all that comes on it is here
  PdcId reserve;                   // whose state beyond the capacity this is; 0: it is none
  Piece* pieces = nullptr;
  std::uint64_t received = 0;  // payload bytes, placed or dropped
  std::uint64_t expected = 0;  // when the message ends: its length, or where it was abandoned
  std::uint64_t charged = 0;   // to the context's unexpected memory
  std::uint64_t reserved = 0;  // of it, for packets that have not come yet
  Time heard{};                // when its last packet came
  // What every packet must repeat (SES-115 step 15), beside what the envelope says.
  wire::SesOpcode opcode{};
  std::uint64_t buffer_offset = 0;
  // Of a rendezvous send: what is not here, and where it can be read (SES-56).
  bool relative = false;
  bool readable = false;        // from its first byte on, not only behind the eager part
  bool outsized = false;        // SES-164: read_offset states its length
  bool must_read = false;       // its sender waits until it has been read to the end
  bool leaving = false;         // all that is left to do is to inform the sender
  bool undelivered = false;     // no receive will get it; the sender is informed
  std::uint16_t tries = 0;      // of its reads, that the sender's FEP did not consume
  std::uint64_t read_from = 0;  // the bytes before it are here
  std::uint64_t read_now = 0;   // and so many behind them requested
  // A deferrable send of which nothing was kept (deferred_receives.h).
  bool parked = false;
  std::uint32_t restart_token = 0;  // ours; not 0: it has been asked for
  Time parked_since{};              // or asked for, since
  wire::RendezvousExtension rendezvous;
};

}  // namespace uet::ses
