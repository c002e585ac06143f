// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The layout of a live page: the file in which a domain shows its counters and its peers while it
// runs. docs/live-page.md describes it for readers in other languages. A change that moves or
// reinterprets a field raises kPageVersion; an area or a record may grow at its end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace uet::live {

inline constexpr std::uint64_t kPageMagic = 0x314556494C544555;  // "UETLIVE1", little endian
inline constexpr std::uint32_t kPageVersion = 1;
inline constexpr std::size_t kMaxCounters = 512;
inline constexpr std::size_t kMaxPeers = 256;
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
  std::array<char, 128> reserved{};
};

// The state of the counters and peers at one moment. While it is written `sequence` is odd.
struct Moment {
  std::uint64_t sequence = 0;
  std::uint64_t updated_ns = 0;    // CLOCK_REALTIME
  std::uint64_t monotonic_ns = 0;  // CLOCK_MONOTONIC
  std::uint64_t peers_shown = 0;   // records of the area `peers`: the peers with most traffic
  std::uint64_t peers_known = 0;   // all
  std::uint64_t reserved[3] = {};
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

struct Page {
  Head head;
  alignas(64) Moment moment;
  std::array<std::uint64_t, kMaxCounters> counters;
  std::array<PeerRecord, kMaxPeers> peers;
  std::array<char, kMaxText> text;
  std::array<std::uint8_t, kMaxCounters> gauges;
};
static_assert(std::is_trivially_copyable_v<Page> && sizeof(Head) % 8 == 0);
static_assert(sizeof(PeerRecord) % sizeof(std::uint64_t) == 0);

}  // namespace uet::live
