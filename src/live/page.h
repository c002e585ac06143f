// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The layout of a live page: the file in which a domain shows its counters and its peers while it
// runs. docs/live-page.md describes it for readers in other languages. A change that moves or
// reinterprets a field raises kPageVersion; an area or a record may grow at its end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/trace.h"

namespace uet::live {

inline constexpr std::uint64_t kPageMagic = 0x314556494C544555;  // "UETLIVE1", little endian
inline constexpr std::uint32_t kPageVersion = 1;
inline constexpr std::size_t kMaxCounters = 512;
inline constexpr std::size_t kMaxPeers = 256;
inline constexpr std::size_t kMaxPdcs = 128;
inline constexpr std::size_t kMaxOperations = 128;
inline constexpr std::size_t kMaxText = 56 * 1024;
inline constexpr std::size_t kNackCodes = 32;

// Where an area of the page begins, in bytes from the start of the file, and what it consists of.
struct Area {
  std::uint32_t at = 0;
  std::uint32_t element_bytes = 0;
  std::uint32_t elements = 0;
  std::uint32_t reserved = 0;
};

// Written once. Texts end with a zero byte.
struct Head {
  std::uint64_t magic = 0;
  std::uint32_t version = 0;
  std::uint32_t page_bytes = 0;
  std::int32_t pid = 0;  // in the PID name space `pid_namespace`
  std::uint32_t uid = 0;
  std::uint64_t start_time = 0;     // of the process: field 22 of /proc/PID/stat, clock ticks
  std::uint64_t pid_namespace = 0;  // inode of /proc/self/ns/pid
  std::uint64_t opened_ns = 0;      // CLOCK_REALTIME
  Area moment;
  Area counters;
  Area peers;
  Area text;    // for each counter its name and its meaning, each with a zero byte behind
  Area gauges;  // for each counter a byte: 1 if it shows a state, 0 if it counts and only grows
  std::array<char, 64> program{};
  std::array<char, 32> interface {};
  std::array<char, 32> nic{};  // the back end, as in FI_UET_NIC
  std::array<char, 80> address{};
  // 0 elements in pages of earlier versions.
  Area trace;  // a trace::Ring: its elements are the records, `at` is where the first one begins
  Area pdcs;
  Area operations;
  std::array<char, 80> reserved{};
};

// The state of the counters and peers at one moment. While it is written `sequence` is odd.
struct Moment {
  std::uint64_t sequence = 0;
  std::uint64_t updated_ns = 0;        // CLOCK_REALTIME
  std::uint64_t monotonic_ns = 0;      // CLOCK_MONOTONIC
  std::uint64_t peers_shown = 0;       // records of the area `peers`: the peers with most traffic
  std::uint64_t peers_known = 0;       // all
  std::uint64_t pdcs_shown = 0;        // records of `pdcs`: those that wait for their peers longest
  std::uint64_t operations_shown = 0;  // records of `operations`: the oldest of each endpoint
  std::uint64_t operations_known = 0;  // all
};

// A peer. Numbers that are not said to be sums of counts are gauges. Bytes of packets are nominal
// (CMS-6).
struct PeerRecord {
  std::array<std::uint8_t, 16> ip{};  // network order; IPv4 in the first four bytes
  std::uint16_t port = 0;
  std::uint8_t is_ipv6 = 0;
  std::uint8_t reserved8 = 0;
  std::uint32_t sdi = 0;  // secure domain, 0: the domain's own
  std::uint64_t pdcs = 0;
  std::uint64_t base_rtt_ns = 0;
  std::uint64_t rtt_ns = 0;
  std::uint64_t window_bytes = 0;
  std::uint64_t inflight_bytes = 0;
  std::uint64_t credit_bytes = 0;
  std::uint64_t paths = 0;
  std::uint64_t paths_banned = 0;
  std::uint64_t packets_outstanding = 0;
  std::uint64_t oldest_outstanding_ns = 0;
  std::uint64_t silent_ns = 0;
  std::uint64_t packets_sent = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t packets_received = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t acks_received = 0;
  std::uint64_t rto_retransmissions = 0;
  std::uint64_t nack_retransmissions = 0;
  std::uint64_t inferred_loss_retransmissions = 0;
  std::uint64_t marks_received = 0;
  std::uint64_t trimmed_received = 0;
  std::array<std::uint64_t, kNackCodes> nacks_received{};
};

// A PDC that waits: packets are outstanding, or messages are queued. Times are those of the
// domain's clock, 0: none.
struct PdcRecord {
  std::array<std::uint8_t, 16> ip{};  // of the peer, as in PeerRecord
  std::uint16_t port = 0;
  std::uint8_t is_ipv6 = 0;
  std::uint8_t target = 0;       // 1: the peer has opened it
  std::uint16_t pdc = 0;         // its id here
  std::uint8_t state = 0;        // pds::PdcState
  std::uint8_t ordered = 0;      // 1: ROD
  std::uint32_t oldest_psn = 0;  // of the packets that the peer has not acknowledged
  std::uint16_t oldest_transmissions = 0;
  std::uint16_t oldest_message = 0;  // message id of an operation; 0: a control packet, or none
  std::uint8_t oldest_sacked = 0;    // 1: the peer has it, its final answer is missing
  std::uint8_t wait = 0;             // trace::Wait
  std::array<std::uint8_t, 6> reserved{};
  std::int64_t oldest_first_sent_ns = 0;
  std::int64_t oldest_last_sent_ns = 0;
  std::int64_t wait_since_ns = 0;
  std::int64_t peer_heard_ns = 0;  // a request, ACK or NACK came from the peer
  std::uint64_t packets_outstanding = 0;
  std::uint64_t messages_queued = 0;
  std::uint64_t window_bytes = 0;
  std::uint64_t inflight_bytes = 0;
};

// An operation of the application that has not completed.
struct OperationRecord {
  std::array<std::uint8_t, 16> ip{};  // of the target, as in PeerRecord
  std::uint16_t port = 0;
  std::uint8_t is_ipv6 = 0;
  std::uint8_t kind = 0;  // ses::Kind
  std::uint16_t message_id = 0;
  std::uint16_t pdc = 0;   // 0: it has none yet
  std::uint8_t waits = 0;  // ses::OperationWait
  std::array<std::uint8_t, 7> reserved{};
  std::int64_t posted_ns = 0;  // by the domain's clock
  std::uint64_t bytes = 0;
  std::uint64_t packets_made = 0;
  std::uint64_t packets_answered = 0;
};

struct Page {
  Head head;
  alignas(64) Moment moment;
  std::array<std::uint64_t, kMaxCounters> counters;
  std::array<PeerRecord, kMaxPeers> peers;
  std::array<char, kMaxText> text;
  std::array<std::uint8_t, kMaxCounters> gauges;
  alignas(8) std::array<PdcRecord, kMaxPdcs> pdcs;
  std::array<OperationRecord, kMaxOperations> operations;
  trace::Ring trace;
};
static_assert(std::is_trivially_copyable_v<Page> && sizeof(Head) % 8 == 0);
static_assert(sizeof(PeerRecord) % sizeof(std::uint64_t) == 0);
static_assert(sizeof(PdcRecord) % sizeof(std::uint64_t) == 0);
static_assert(sizeof(OperationRecord) % sizeof(std::uint64_t) == 0);

}  // namespace uet::live
