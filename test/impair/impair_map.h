// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the eBPF program and the tool that loads it tell each other. Plain C, for both compilers.
#ifndef UET_IMPAIR_MAP_H
#define UET_IMPAIR_MAP_H

#include <linux/bpf.h>
#include <linux/types.h>

// The one entry of the map "settings". drop, drop_other, duplicate, mark and trim are parts of
// 2^32.
struct impair_settings {
  __u32 drop;
  __u32 drop_other;  // of IP packets that are not UET
  __u32 duplicate;
  __u32 mark;
  __u32 trim;
  __u32 seed;
  __u32 dscp_trimmable;  // packets with this DSCP may be trimmed, ...
  __u32 dscp_trimmed;    // ... and then have this one
  __u32 native_protocol;
  // A queue in front of a link, which is counted and not kept: it fills with what passes and drains
  // at the link's rate. 0 = none.
  __u64 queue_bytes_per_second;
  __u64 queue_mark_from;  // bytes; up to here nothing is marked, ...
  __u64 queue_mark_to;    // ... from here on everything, between them in proportion; 0 = nothing
  __u64 queue_limit;      // bytes; what does not fit is dropped; 0 = no limit
};

// The one entry of the map "queue".
struct impair_queue {
  struct bpf_spin_lock lock;
  __u64 drained_ns;  // up to this time
  __u64 bytes;
};

// Entries of the map "counts".
enum impair_count {
  kImpairSeen = 0,
  kImpairDropped = 1,
  kImpairDuplicated = 2,
  kImpairMarked = 3,
  kImpairTrimmed = 4,
  kImpairOverflowed = 5,
  kImpairMarkedByQueue = 6,
  kImpairOther = 7,
  kImpairOtherDropped = 8,
  kImpairCounts = 9
};

#endif
