// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the eBPF program and the tool that loads it tell each other. Plain C, for both compilers.
#ifndef UET_IMPAIR_MAP_H
#define UET_IMPAIR_MAP_H

#include <linux/types.h>

// The one entry of the map "settings". Rates are parts of 2^32.
struct impair_settings {
  __u32 drop;
  __u32 duplicate;
  __u32 mark;
  __u32 trim;
  __u32 seed;
  __u32 dscp_trimmable;  // packets with this DSCP may be trimmed, ...
  __u32 dscp_trimmed;    // ... and then have this one
  __u32 native_protocol;
};

// Entries of the map "counts".
enum impair_count {
  kImpairSeen = 0,
  kImpairDropped = 1,
  kImpairDuplicated = 2,
  kImpairMarked = 3,
  kImpairTrimmed = 4,
  kImpairCounts = 5
};

#endif
