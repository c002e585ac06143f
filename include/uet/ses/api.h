// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the host (prov/uet, the simulator) asks of the semantic sublayer and gets from it:
// operations in, completions out. No libfabric type appears here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "uet/base/address.h"
#include "uet/base/device_memory.h"
#include "uet/base/packet.h"
#include "uet/base/types.h"
#include "uet/pds/api.h"
#include "uet/wire/ses.h"

namespace uet::ses {

// A piece of user memory; it must stay valid until the operation completes.
struct IoSlice {
  IoSlice() {}  // uninitialized: of the many slices of an operation, usually only one is used
  IoSlice(std::byte* begin, std::size_t bytes, DeviceMemory* memory = nullptr)
      : data(begin), length(bytes), device(memory) {}

  std::byte* data;
  std::size_t length;
  DeviceMemory* device;  // not nullptr: `data` is not for the CPU; not of an atomic
};

inline constexpr std::size_t kMaxIoSlices = 16;                // iov_limit
inline constexpr std::uint64_t kMaxMessageBytes = 0xFFFFF000;  // SES-32, section 12.1
// Of a send that its target reads in pieces (SES-164).
inline constexpr std::uint64_t kMaxOutsizedBytes = INT64_MAX;

// The endpoint at the other side: an AV entry resolved.
struct Peer {
  FepAddress fep;
  PidOnFep pid_on_fep;
  ResourceIndex resource_index;
  InitiatorId initiator;      // what directed receives match on (SES-20)
  bool relative = true;       // REL flag: PIDonFEP counts within the job (SES-12)
  RiGeneration generation{};  // of its resource index, as long as it has not told another (SES-154)
  bool hpc = false;           // its address states the HPC profile: RUDI, rendezvous (SES-151)
  bool ai_full = false;       // and the AI Full profile: deferrable sends
  bool one_mtu = false;       // it takes messages of at most one payload MTU
  bool optimized = false;     // and the optimised non-matching header: medium and small (SES-5)
  // Operations to it carry this JobID; nullopt: the context's. Receives from it want it (SES-146).
  std::optional<JobId> job{};
};

enum class Kind : std::uint8_t {
  Send,
  TaggedSend,
  Write,
  Read,
  Atomic,         // nothing comes back
  FetchAtomic,    // the old values come back
  CompareAtomic,  // compare-and-swap: the old value comes back
  Receive,
  TaggedReceive,
  RemoteWrite
};

enum class Status : std::uint8_t {
  Ok,
  Truncated,  // receive buffer too short; `length` placed, `excess` lost
  Cancelled,
  ReturnCode,  // the target refused: `return_code`
  PdsError,    // the transport gave up: `pds_error`
  NoMessage,   // a peek found nothing
  Abandoned,   // the sender gave up in mid-message (SES-113)
  PeerLost,    // the sender's PDC died in mid-message (SES-122)
};

constexpr bool is_atomic(Kind kind) { return kind >= Kind::Atomic && kind <= Kind::CompareAtomic; }
// Operations of the initiator that bytes come back for.
constexpr bool returns_data(Kind kind) {
  return kind == Kind::Read || kind == Kind::FetchAtomic || kind == Kind::CompareAtomic;
}

// One finished operation, one message in a multi-receive buffer, or (RemoteWrite) a write with
// immediate data that a peer has completed.
struct Completion {
  Completion() {}  // member by member, as SesRequest

  Kind kind = Kind::Send;
  Status status = Status::Ok;
  wire::ReturnCode return_code{};
  pds::PdsError pds_error{};
  int host_error = 0;            // not 0: the host has ended the operation, with a code of its own
  void* context = nullptr;       // as given in the operation; nullptr for RemoteWrite
  std::uint64_t user_flags = 0;  // as given in the operation
  std::uint64_t length = 0;      // bytes placed; of the whole operation at the initiator
  std::uint64_t excess = 0;      // bytes lost to truncation
  void* buffer = nullptr;        // where the message begins in the receive buffer
  std::uint64_t tag = 0;
  bool has_data = false;  // header_data came with the message (HD)
  std::uint64_t data = 0;
  bool multi = false;     // a message in a multi-receive buffer; another completion follows for it
  bool released = false;  // the last entry of a multi-receive buffer: it is the application's again
  bool took_receive = false;  // RemoteWrite: `context` and the CQ entry are those of a receive
  FepAddress source;          // receives, RemoteWrite: who sent it
  InitiatorId source_initiator;
  JobId source_job;
};

// Where a context's completions go: the CQs and counters bound to the endpoint.
class CompletionSink {
 public:
  virtual ~CompletionSink() = default;
  virtual void complete(const Completion& completion) noexcept = 0;
  // Can the queue take a completion for which no posted operation has reserved an entry
  // (RemoteWrite)? false: the target answers NACK NO_RESOURCE, and the peer retransmits later.
  virtual bool can_take_event() noexcept = 0;
  // Reserves an entry for a receive completion that no post has reserved: of a message in a multi-
  // receive buffer, or with a receive of a shared queue. false refuses the message for now.
  virtual bool reserve_receive() noexcept = 0;
  // Gives back an entry that reserve_receive has reserved and that no completion will use.
  virtual void release_receive() noexcept = 0;
  // A peer's RMA or atomic touched memory through this context, without immediate data: counters
  // only. `kind`: Write, Read, Atomic, FetchAtomic or CompareAtomic.
  virtual void remote_access(Kind kind, std::uint64_t length) noexcept = 0;
  // Does remote_access tell the application of reads? Then the bytes read must be safe from what it
  // does next; else they are sent from where they lie.
  virtual bool counts_reads() const noexcept { return true; }
  // Likewise, a part of an operation of which more follows: bytes without an event.
  virtual void remote_part(Kind, std::uint64_t) noexcept {}
};

class ReceiveQueue;

struct ContextConfig {
  bool serves(JobId asked) const {
    return asked == job || std::find(more_jobs.begin(), more_jobs.end(), asked) != more_jobs.end();
  }

  JobId job;
  std::span<const JobId> more_jobs;  // it serves them too (SES-146); valid while it is open
  PidOnFep pid_on_fep;
  ResourceIndex resource_index;
  InitiatorId initiator;
  // Its packets leave from this port (FepAddress::via). Not 0: peers reach another FEP there, so
  // that no send of it is a rendezvous or may be put off by its target.
  std::uint8_t via = 0;
  bool receives = true;  // false: no request reaches it, and its resource index takes no place
  bool relative = true;
  // Absolute: its job alone reaches its receives, and through it the regions that are restricted to
  // no job of their own (SES-17).
  bool own_job_only = false;
  // Rod when the application asked for any order (SES-124); Uud: sends and receives datagrams only.
  DeliveryMode mode = DeliveryMode::Rud;
  std::uint8_t traffic_class = 0;  // of what it sends: 0 or pds::class_of_dscp (SES-130)
  std::size_t tx_size = 1024;      // operations in progress
  std::size_t rx_size = 1024;      // posted receives
  bool directed_receive = false;   // honour the source of a receive (FI_DIRECTED_RECV)
  ReceiveQueue* shared = nullptr;  // takes its receives from this queue instead of one of its own
  // A context of a connection: it takes sends of its peer alone (Ses::connect), of nothing before.
  bool connected = false;
  bool remote_cq_data = true;  // its receive CQ can report immediate data (SES-80)
  // Immediate data of a write take the oldest untagged receive for its source, whose buffer stays
  // as it is, or one use of a multi-receive (libfabric's FI_RX_CQ_DATA). While none is posted, the
  // target refuses the end of the write with NACK NO_RESOURCE. Not with a ReceiveOwner.
  bool data_takes_receive = false;
  RiGeneration generation{};  // the first one; requests must name it (SES-115 step 9)
};

// Common to all operations of the initiator.
struct TxOp {
  const Peer* peer = nullptr;      // only read during the call
  std::span<const IoSlice> local;  // only the memory behind it must stay valid
  bool inject = false;             // copy now: the buffer is free when the call returns
  bool delivery_complete = false;  // DC flag (SES-110)
  bool fence = false;  // waits, with all posted after it to this peer, for all posted before it
  // A CQ entry or a counter depends on the completion: request a prompt ACK. If false, the ACK may
  // come later, with the ACKs of the next operations to this peer (PDS-128); all may be posted so.
  bool prompt_ack = true;
  std::optional<std::uint64_t> data;  // remote CQ data: HD flag and header_data
  void* context = nullptr;
  std::uint64_t user_flags = 0;
};

// In a context of mode Uud a send is a DATAGRAM_SEND: at most one payload MTU, no tag, no DC; it
// completes when the NIC has taken it, and may get lost (SES-77).
struct SendOp : TxOp {
  std::optional<std::uint64_t> tag;  // set: TAGGED_SEND
};

// The place of a write in the operation of the application (SES-162). The target's counters count
// an operation once, and each region that it writes to once.
enum class Part : std::uint8_t {
  Whole = 0,      // the whole operation, or its last write
  Inside = 1,     // other writes to the same region follow
  RegionEnd = 2,  // only writes to other regions follow
};

struct RmaOp : TxOp {
  Kind kind = Kind::Write;          // or Read
  std::uint64_t remote_offset = 0;  // buffer_offset on the wire
  Rkey key;
  Part part = Part::Whole;  // of a write
};

// One packet: at most Ses::max_atomic_bytes of operands, and one element for CompareAtomic.
// `kind`: Atomic, FetchAtomic or CompareAtomic.
struct AtomicOp : RmaOp {
  AtomicOp() { kind = Kind::Atomic; }
  wire::AmoOp op{};                  // `local`: its operands; none for Read
  wire::AmoDatatype datatype{};      // of operands, comparison values and results
  std::span<const IoSlice> compare;  // CompareAtomic
  std::span<const IoSlice> results;  // FetchAtomic, CompareAtomic: where the old values go
};

struct ReceiveOp {
  std::span<const IoSlice> local;
  bool tagged = false;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  const Peer* source = nullptr;  // only from this peer; nullptr = anyone
  std::optional<JobId> job{};    // only of this job; nullopt = any, or that of `source`
  // Takes the message that a peek claimed with the same `context`; tag and source are not read.
  bool claim = false;
  // Takes message after message, one behind the other, each with a completion (`multi`) of its own.
  // Ends with `released`, once fewer than `min_free` bytes are left or a message does not fit into
  // the rest. A message longer than the whole buffer is truncated if it comes first.
  bool multi = false;
  std::uint64_t min_free = 0;
  void* context = nullptr;
  std::uint64_t user_flags = 0;
};

// Looks at the oldest unexpected message that a receive with these properties would take. Completes
// at once as a receive does, with the message's whole length, or with Status::NoMessage.
struct PeekOp {
  bool tagged = false;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  const Peer* source = nullptr;
  std::optional<JobId> job{};
  bool claimed = false;  // looks at what was claimed with the same `context` instead
  bool claim = false;    // reserves the message for the receive that claims it
  bool discard = false;  // drops the message
  void* context = nullptr;
  std::uint64_t user_flags = 0;
};

// The properties by which a message that has begun to arrive is matched.
struct Arrival {
  bool tagged = false;
  std::uint64_t tag = 0;
  std::uint64_t length = 0;
  FepAddress source;
  InitiatorId initiator;
  JobId job;
  std::optional<std::uint64_t> data;  // header_data, if the packet that has come carries them
};

struct Envelope;  // of a message that waits for its receive; the host only hands it back

// Matches messages with receives in the place of SES: the owner of a queue whose receives messages
// of several transports may take. SES calls it for contexts whose ContextConfig::shared has one.
class ReceiveOwner {
 public:
  enum class Found : std::uint8_t {
    Receive,  // the owner has taken a receive off its list for this message
    Nothing,  // SES shall keep the message; it calls `kept` or `refused` at once
    NotNow,   // SES refuses the message, and the sender retransmits it
  };
  virtual ~ReceiveOwner() = default;
  // Receive: fills in `op`, whose `context` comes back in the completion; the slices must be good
  // until SES is called again. Nothing: sets `token`, the owner's name for the message.
  virtual Found find(const Arrival& arrival, ReceiveOp& op, void*& token) noexcept = 0;
  // The message waits for Ses::receive_kept or Ses::discard_kept.
  virtual void kept(void* token, Envelope& message) noexcept = 0;
  // SES has no memory for the message and refuses it; the sender retransmits it.
  virtual void refused(void* token) noexcept = 0;
  // The message will not be wanted any more: its sender is gone or has given up, or its context
  // closes.
  virtual void lost(void* token) noexcept = 0;
  // A receive ends without a completion, because the context of its message closes.
  virtual void vanished(void* operation) noexcept = 0;
};

}  // namespace uet::ses
