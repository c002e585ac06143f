// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The map by which a process and the kernel's programs keep strangers away (PDS-236): the process
// writes which PDCs are open, the program counts what it drops. Also compiled as C for the kernel's
// virtual machine, hence the plain types.
#pragma once

#include <linux/types.h>

#define UET_GUARD_IDS 65536     // of PDCs
#define UET_GUARD_CPUS 64       // that have counts of their own
#define UET_GUARD_SOURCES 1024  // buckets of source addresses
#define UET_GUARD_NAMES 65536   // packets that are remembered
#define UET_GUARD_MEMORY_S 16   // for so many seconds

// Packets a second, and how many at once. A power of two each.
// Repetitions from one source address:
#define UET_GUARD_SOURCE_RATE 4096
#define UET_GUARD_SOURCE_BURST 8192
// Repetitions of packets with SYN, of all sources: a peer sends SYN until it has the first answer.
#define UET_GUARD_REPEATED_SYN_RATE 16384
#define UET_GUARD_REPEATED_SYN_BURST 65536
// For PDCs that are not open, of all sources; as many repetitions.
#define UET_GUARD_STRAY_RATE 1024
#define UET_GUARD_STRAY_BURST 1024

enum UetGuardDrop {
  UET_GUARD_STRAY,  // for a PDC that is not open
  UET_GUARD_SYN,
  UET_GUARD_DROPS,
};

// A token bucket: the time until which its tokens are spent.
struct UetGuardBuckets {
  __u64 fresh;  // packets that are not remembered
  __u64 repeated;
};

struct UetGuard {
  // Written by the process alone.
  __u32 open[UET_GUARD_IDS / 32];  // a bit for each PDC id
  __u64 secret[2];                 // of the hash of addresses
  __u64 syn_interval_ns;           // between new PDCs
  __u64 syn_burst_ns;
  __u64 active;
  // Written by the program.
  struct {
    __u64 dropped[UET_GUARD_DROPS];
    __u64 unused[6];  // a cache line each
  } counts[UET_GUARD_CPUS];
  struct UetGuardBuckets buckets[UET_GUARD_DROPS];
  __u64 sources[UET_GUARD_SOURCES];
  struct {
    __u32 name;
    __u32 seconds;  // when it came last
  } names[UET_GUARD_NAMES];
};
