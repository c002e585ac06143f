// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_UET_ENGINE=process: the memory that a domain of an application shares with its engine, which
// has made it. docs/submission.md shows the layout for readers without this file.
//
//   application                                     engine process
//   writes commands, and the head of events          writes events, and the heads of commands
//
// A command or event belongs to its reader once `sequence` is its position in the ring + 1. The
// engine trusts nothing that it reads here: it copies a command before it looks at it. Numbers are
// of the host's order; a struct has the same size in both processes, which control.h checks.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "uet/ses/api.h"

namespace uet::prov {

inline constexpr std::size_t kShareCommands = 256;
inline constexpr std::size_t kShareEvents = 4096;
inline constexpr std::size_t kShareInlineBytes = 16 << 10;  // of each transmit: two packets at most

// Of an operation in the application's table; comes back in its events.
using OperationNumber = std::uint32_t;
inline constexpr OperationNumber kNoOperation = UINT32_MAX;

// Addresses of the application travel as numbers.
inline std::byte* address_of(std::uint64_t number) {
  return reinterpret_cast<std::byte*>(number);  // NOLINT(performance-no-int-to-ptr)
}

// A ses::Peer.
struct SharedPeer {
  enum Mark : std::uint8_t {
    kIpv6 = 1,
    kRelative = 2,
    kHpc = 4,
    kAiFull = 8,
    kOneMtu = 16,
    kOptimized = 32,
    kHasJob = 64,
  };

  std::array<std::uint8_t, 16> ip;
  std::uint32_t sdi;
  std::uint32_t initiator;
  std::uint32_t job;
  std::uint16_t port;
  std::uint16_t pid_on_fep;
  std::uint16_t resource_index;
  std::uint8_t generation;
  std::uint8_t marks;
};

SharedPeer share(const ses::Peer& peer);
ses::Peer peer_of(const SharedPeer& shared);

// A piece of the application's memory.
struct SharedPiece {
  std::uint64_t address;
  std::uint64_t length;
};

enum class CommandKind : std::uint8_t { Send = 1, Rma = 2, Receive = 3, Atomic = 4 };

struct alignas(64) SharedCommand {
  enum Mark : std::uint16_t {
    kTagged = 1,
    kHasData = 2,
    kHasPeer = 4,
    kInlined = 8,  // the bytes lie in the inline memory of the command, not in `pieces`
    kDelivered = 16,
    kFence = 32,
    kPromptAck = 64,
    kClaim = 128,
    kMulti = 256,
    kHasJob = 512,
    kIsRead = 1024,
  };

  std::uint64_t sequence;
  std::uint8_t kind;    // CommandKind
  std::uint8_t part;    // ses::Part, of a write
  std::uint8_t pieces;  // of an atomic those of its results
  std::uint8_t access;  // of an atomic: Atomic, FetchAtomic or CompareAtomic of ses::Kind
  std::uint8_t op;      // likewise, wire::AmoOp and wire::AmoDatatype
  std::uint8_t datatype;
  std::uint16_t context;
  std::uint16_t marks;
  std::uint32_t inlined_bytes;
  std::uint32_t compared_bytes;  // behind them, of an atomic
  OperationNumber operation;
  std::uint64_t tag;  // of RMA the remote offset
  std::uint64_t key;  // memory key; of a receive the bits of the tag to ignore
  std::uint64_t data;
  std::uint64_t min_free;
  std::uint32_t job;
  SharedPeer peer;
  std::array<SharedPiece, ses::kMaxIoSlices> piece;
};

enum class EventKind : std::uint8_t {
  Completion = 1,
  ContextAccess =
      2,  // peers' RMA through a context: ses::CompletionSink::remote_access, remote_part
  RegionAccess = 3,  // the same, of a region: ri::AccessObserver
  Refusal = 4,       // nic::Nic::take_refusal(): the source
  PeerGivenUp = 5,   // pds::PeerWatcher: the source, and `pds_error`
};

struct alignas(64) SharedEvent {
  enum Mark : std::uint8_t {
    kHasData = 1,
    kMulti = 2,
    kReleased = 4,
    kTookReceive = 8,
    kIpv6 = 16,
  };

  std::uint64_t sequence;
  std::uint8_t kind;       // EventKind
  std::uint8_t operation;  // ses::Kind; of RegionAccess ri::Access
  std::uint8_t status;     // ses::Status
  std::uint8_t marks;
  std::uint8_t return_code;
  std::uint8_t pds_error;
  std::uint16_t context;
  std::int32_t host_error;
  OperationNumber number;
  std::uint64_t length;  // of accesses: bytes of all events together
  std::uint64_t excess;  // of accesses: events
  std::uint64_t buffer;  // of RegionAccess: the key
  std::uint64_t tag;
  std::uint64_t data;
  std::array<std::uint8_t, 16> source_ip;
  std::uint32_t source_sdi;
  std::uint32_t source_initiator;
  std::uint32_t source_job;
  std::uint16_t source_port;
};

// A ring of commands. Transmits and receives have one each, since receives must not wait behind
// transmits.
struct CommandQueue {
  alignas(64) std::uint64_t head;   // commands that the engine has taken
  alignas(64) std::uint32_t waits;  // 1: the first command has to wait for the end of others
  std::array<SharedCommand, kShareCommands> commands;
};

struct Share {
  CommandQueue transmits;
  CommandQueue receives;
  alignas(64) std::uint64_t event_head;  // events that the application has taken
  alignas(64) std::uint32_t engine_sleeps;
  alignas(64) std::uint32_t application_sleeps;
  // 1: queues of the application are full, and it has set aside what belongs there. Peers are told
  // to send again what needs a place there.
  alignas(64) std::uint32_t queues_full;
  std::array<SharedEvent, kShareEvents> events;
  std::array<std::array<std::byte, kShareInlineBytes>, kShareCommands> inlined;  // of transmits
};
static_assert(std::is_trivially_copyable_v<Share>);

// One end of either ring; `Most` entries.
template <class Entry, std::size_t Most>
class SharedWriter {
 public:
  using Ring = std::array<Entry, Most>;
  // `head`: how many entries the reader has taken.
  SharedWriter(Ring& ring, std::uint64_t& head) : ring_(ring), head_(head) {}

  std::size_t place() const { return tail_ % Most; }
  // The entry to fill in, except for `sequence`; nullptr: the ring is full. A head that cannot be
  // counts as a full ring.
  Entry* claim() {
    if (tail_ - known_head_ >= Most) {
      known_head_ = std::atomic_ref(head_).load(std::memory_order_acquire);
      if (tail_ - known_head_ >= Most) return nullptr;
    }
    return &ring_[place()];
  }
  void publish() {
    std::atomic_ref(ring_[place()].sequence).store(tail_ + 1, std::memory_order_release);
    ++tail_;
  }

 private:
  Ring& ring_;
  std::uint64_t& head_;
  std::uint64_t tail_ = 0;
  std::uint64_t known_head_ = 0;
};

template <class Entry, std::size_t Most>
class SharedReader {
 public:
  using Ring = std::array<Entry, Most>;
  SharedReader(Ring& ring, std::uint64_t& head) : ring_(ring), head_(head) {}

  std::size_t place() const { return taken_ % Most; }
  // nullptr: the next one is not there yet.
  const Entry* front() const {
    Entry& entry = ring_[place()];
    const auto sequence = std::atomic_ref(entry.sequence).load(std::memory_order_acquire);
    return sequence == taken_ + 1 ? &entry : nullptr;
  }
  void pop() { std::atomic_ref(head_).store(++taken_, std::memory_order_release); }

 private:
  Ring& ring_;
  std::uint64_t& head_;
  std::uint64_t taken_ = 0;
};

using CommandWriter = SharedWriter<SharedCommand, kShareCommands>;
using CommandReader = SharedReader<SharedCommand, kShareCommands>;
using EventWriter = SharedWriter<SharedEvent, kShareEvents>;
using EventReader = SharedReader<SharedEvent, kShareEvents>;

// A sleeper says so before it looks whether there is something to do, and a writer looks after it
// has written: one of them sees the other. The writer that wakes the sleeper takes the word back.
inline void note_sleep(std::uint32_t& sleeps) {
  std::atomic_ref(sleeps).store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}
inline bool sleeps_now(std::uint32_t& sleeps) {
  return std::atomic_ref(sleeps).load(std::memory_order_relaxed) != 0;
}
// After a publish(): must the caller wake the reader?
inline bool must_wake(std::uint32_t& sleeps) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return sleeps_now(sleeps) && std::atomic_ref(sleeps).exchange(0, std::memory_order_relaxed) != 0;
}

}  // namespace uet::prov
