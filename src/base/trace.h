// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The event trace of a FEP: the newest 8,192 events, so that a hang can be explained afterwards.
// The ring is plain memory that the owner of the FEP provides; another process may read it while it
// is written (docs/live-page.md). Without a ring nothing is kept. Allocates nothing, reads no
// clock.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "uet/base/address.h"
#include "uet/base/time.h"
#include "uet/base/types.h"

namespace uet::trace {

// An event. Numbers stay as they are: other programs read them. The comments say what
// `detail`, `psn`, `a` and `b` of a record are; unnamed ones are 0. Bytes are nominal (CMS-6).
enum class Kind : std::uint8_t {
  None = 0,
  // detail: bit 0 target, bit 1 ROD, bit 2 IPv6; psn: UDP port of the peer; a, b: its IP address.
  PdcOpened = 1,
  // detail: the new pds::PdcState; a: the old one, and 256 if the peer is reached through a
  // ring in memory of this host; b: pds::PdsError if the PDC has failed.
  PdcState = 2,
  // Packets with a PSN; in one record those of consecutive PSNs that one call has sent or received
  // on a PDC. A packet that is sent again, and a control packet, has a record of its own. psn: of
  // the first; detail: bit 0 sent again, bit 1 control packet; a: packets << 32 | bytes.
  Sent = 3,          // b: entropy << 32 | transmissions << 16 | message id, of the first
  Received = 4,      // b: entropy << 32, of the first
  AckSent = 5,       // psn: the packet that it names; detail: ECN mark; a: CACK_PSN; b: SACK bitmap
  AckReceived = 6,   // psn: CACK_PSN; detail: ECN mark; a: window << 32 | bytes in flight
  NackSent = 7,      // detail: wire::NackCode; psn: the refused packet
  NackReceived = 8,  // detail: wire::NackCode; psn: the refused packet
  ControlSent = 9,   // detail: wire::CpType; psn: its PSN or payload. Without a PSN of its own
  ControlReceived = 10,  // detail: wire::CpType; psn: its PSN or payload. Without a PSN of its own
  Lost = 11,        // detail: Loss; a: ns since it was last sent; b: entropy << 32 | transmissions
  Window = 12,      // after a loss or a NACK. a: window bytes; b: bytes in flight
  PathBanned = 13,  // a: entropy of the path; b: banned paths of this context
  // Data has waited for so long that a person may want to know. detail: Wait; pdc: 0 if all waited;
  // a: ns that it took.
  Waited = 14,
  NotPolled = 15,  // packets waited since the program did not call. a: ns; b: packets
  Posted = 16,     // detail: ses::Kind; psn: message id; a: bytes; b: number in posting order
  Ended = 17,      // detail: ses::Status; psn: message id; a: return code or PdsError
  PeerLost = 18,   // the process of a peer on this host ended. the rest as PdcOpened
};

enum class Loss : std::uint8_t { TimeOut = 0, Inferred = 1, Refused = 2, GivenUp = 3, Rail = 4 };

// The resource that data waits for.
enum class Wait : std::uint8_t {
  Nothing = 0,
  Window = 1,      // congestion window
  Credit = 2,      // the receiver's
  PeerWindow = 3,  // MP_RANGE of the peer (MPR)
  Packets = 4,     // the packet pool of this FEP is empty
  Nic = 5,         // the NIC takes no more
};

struct Record {
  std::int64_t time_ns = 0;  // on the time line of the FEP: CLOCK_MONOTONIC of a host
  Kind kind{};
  std::uint8_t detail = 0;
  std::uint16_t pdc = 0;  // 0: none
  std::uint32_t psn = 0;
  std::uint64_t a = 0;
  std::uint64_t b = 0;
};
static_assert(sizeof(Record) == 32 && std::is_trivially_copyable_v<Record>);

inline constexpr std::size_t kRecords = 8192;
inline constexpr std::uint64_t kThroughRing = 256;  // see Kind::PdcState

struct alignas(64) Ring {
  std::uint64_t written = 0;      // records so far: the newest is records[(written - 1) % kRecords]
  std::int64_t last_pass_ns = 0;  // when the owner last called the FEP; set by the owner
  std::int64_t sleeping_since_ns = 0;  // not before last_pass_ns: the owner sleeps until an event
  std::uint64_t failed_operations =
      0;  // that have ended with an error; cancelled ones do not count
  std::uint64_t reserved[4] = {};
  std::array<Record, kRecords> records{};
};
static_assert(sizeof(Ring) == 64 + kRecords * sizeof(Record));

// The two words of an IP address.
inline std::array<std::uint64_t, 2> words_of(const FabricAddress& ip) {
  return std::bit_cast<std::array<std::uint64_t, 2>>(ip.bytes);
}

// A part of a FEP that writes to the ring. All parts of a FEP run in one thread or under one lock.
class Trace {
 public:
  // From now on events go to `ring`, with the time at `clock`; nullptr: nowhere. Both outlive the
  // trace or the next call.
  void keep_in(Ring* ring, const Time* clock) {
    ring_ = ring;
    clock_ = clock;
    run_owner_ = nullptr;
  }
  Ring* ring() const { return ring_; }
  // The owner has slept since the last call, until an event.
  bool slept() const {
    return ring_ != nullptr && ring_->sleeping_since_ns != 0 &&
           ring_->sleeping_since_ns >= ring_->last_pass_ns;
  }

  void write(Kind kind, unsigned detail, PdcId pdc, Psn psn, std::uint64_t a = 0,
             std::uint64_t b = 0) {
    if (ring_ != nullptr) write_at(*clock_, kind, detail, pdc, psn, a, b);
  }
  void write_at(Time time, Kind kind, unsigned detail, PdcId pdc, Psn psn, std::uint64_t a = 0,
                std::uint64_t b = 0) {
    if (ring_ == nullptr) return;
    const std::uint64_t number = ring_->written;
    ring_->records[number % kRecords] = {.time_ns = to_ns(time),
                                         .kind = kind,
                                         .detail = static_cast<std::uint8_t>(detail),
                                         .pdc = pdc.value,
                                         .psn = psn.value,
                                         .a = a,
                                         .b = b};
    std::atomic_ref(ring_->written).store(number + 1, std::memory_order_release);
  }
  // A burst of packets has arrived: they begin records of their own.
  void burst_begins() { run_owner_ = nullptr; }
  // A packet that has arrived, for a record of several (Received). Cheap, because it is called for
  // each packet. `owner` stands for the PDC: packets of another one begin another record.
  void received(const void* owner, PdcId pdc, Psn psn, std::uint32_t bytes, std::uint16_t entropy) {
    if (run_owner_ == owner && run_next_psn_ == psn.value) {
      ++run_next_psn_;
      run_->a += kOnePacket + bytes;
      return;
    }
    if (ring_ == nullptr) return;
    run_owner_ = owner;
    run_ = &ring_->records[ring_->written % kRecords];
    run_next_psn_ = psn.value + 1;
    write(Kind::Received, 0, pdc, psn, kOnePacket + bytes, std::uint64_t{entropy} << 32);
  }
  void note_failed_operation() {
    if (ring_ != nullptr) ++ring_->failed_operations;
  }
  // Data no longer waits for `wait`; short waits are usual and are not kept.
  void waited(Wait wait, PdcId pdc, Duration took) {
    if (took < kShortestWait) return;
    write(Kind::Waited, static_cast<unsigned>(wait), pdc, {},
          static_cast<std::uint64_t>(took.count()));
  }

 private:
  static constexpr Duration kShortestWait = std::chrono::microseconds(100);
  static constexpr std::uint64_t kOnePacket = std::uint64_t{1} << 32;

  Ring* ring_ = nullptr;
  const Time* clock_ = nullptr;
  const void* run_owner_ = nullptr;  // nullptr: no packet joins the newest record of its kind
  Record* run_ = nullptr;
  std::uint32_t run_next_psn_ = 0;
};

}  // namespace uet::trace
