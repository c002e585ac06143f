/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which packets of strangers a kernel program drops (PDS-236). */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "nic/guard/pds_packet.bpf.h"
#include "nic/pdc_guard.h"

#define GUARD_SECOND 1000000000ULL
#define GUARD_PDS_BYTES 12 /* that the decision takes */

/* Takes a token, of which one is added in each `interval`, `burst` / `interval` at most. Two
 * processors at once may get one token: the limit is no exact one. */
static __always_inline int guard_takes(__u64* until, __u64 now, __u64 interval, __u64 burst) {
  const __u64 spent = *(volatile __u64*)until;
  const __u64 from = spent > now ? spent : now;
  if (from - now + interval > burst) return 0;
  *(volatile __u64*)until = from + interval;
  return 1;
}

static __always_inline int guard_takes_per_second(__u64* until, __u64 now, __u64 rate,
                                                  __u64 burst) {
  return guard_takes(until, now, GUARD_SECOND / rate, burst * (GUARD_SECOND / rate));
}

static __always_inline __u64 guard_mix(__u64 value, __u64 secret) {
  value = (value ^ secret) * 0x9E3779B97F4A7C15ULL;
  value = (value ^ value >> 29) * 0xBF58476D1CE4E5B9ULL;
  return value ^ value >> 32;
}

/* Of the source address; IPv4: the first word, and three of 0. */
static __always_inline __u64 guard_source(const struct UetGuard* guard, const __u32* ip) {
  const __u64 low = (__u64)ip[0] << 32 | ip[1];
  const __u64 high = (__u64)ip[2] << 32 | ip[3];
  return guard_mix(guard_mix(low, guard->secret[0]) ^ high, guard->secret[1]);
}

/* Has a packet of this name come before, not long ago? Remembers it. */
static __always_inline int guard_knows(struct UetGuard* guard, __u64 name, __u64 now) {
  const __u32 at = name % UET_GUARD_NAMES;
  const __u32 rest = name >> 32;
  const __u32 seconds = now / GUARD_SECOND;
  const int known =
      guard->names[at].name == rest && seconds - guard->names[at].seconds <= UET_GUARD_MEMORY_S;
  guard->names[at].name = rest;
  guard->names[at].seconds = seconds;
  return known;
}

/* May a packet that opens a PDC, or names none that is open, pass? The name is that of its PDC: the
 * peer's, and with SYN the first PSN. */
static __always_inline int guard_admits(struct UetGuard* guard, __u64 source, const __u8* pds,
                                        int syn) {
  const __u64 now = bpf_ktime_get_ns();
  const __u32 psn = (__u32)pds[4] << 24 | pds[5] << 16 | pds[6] << 8 | pds[7];
  const __u32 spdcid = pds[8] << 8 | pds[9];
  const __u32 dpdcid = pds[10] << 8 | pds[11];
  const __u32 word = syn ? psn - (dpdcid & SYN_PSN_OFFSET) : dpdcid;
  const __u64 own = (__u64)(spdcid << 1 | (syn ? 1 : 0)) << 32 | word;
  struct UetGuardBuckets* buckets = &guard->buckets[syn ? UET_GUARD_SYN : UET_GUARD_STRAY];
  if (!guard_knows(guard, guard_mix(source ^ own, guard->secret[0]), now)) {
    if (syn) return guard_takes(&buckets->fresh, now, guard->syn_interval_ns, guard->syn_burst_ns);
    return guard_takes_per_second(&buckets->fresh, now, UET_GUARD_STRAY_RATE,
                                  UET_GUARD_STRAY_BURST);
  }
  if (!guard_takes_per_second(&guard->sources[source % UET_GUARD_SOURCES], now,
                              UET_GUARD_SOURCE_RATE, UET_GUARD_SOURCE_BURST)) {
    return 0;
  }
  if (syn) {
    return guard_takes_per_second(&buckets->repeated, now, UET_GUARD_REPEATED_SYN_RATE,
                                  UET_GUARD_REPEATED_SYN_BURST);
  }
  return guard_takes_per_second(&buckets->repeated, now, UET_GUARD_STRAY_RATE,
                                UET_GUARD_STRAY_BURST);
}

static __always_inline int guard_is_open(const struct UetGuard* guard, const __u8* pds) {
  const __u32 id = (pds[10] << 8 | pds[11]) & 0xFFFF;
  return guard->open[id / 32] >> id % 32 & 1;
}

/* `pds`: the first GUARD_PDS_BYTES bytes of a packet. True: the packet is dropped, and counted. */
static __always_inline int guard_drops(struct UetGuard* guard, const __u32* ip, const __u8* pds) {
  enum UetGuardDrop reason = UET_GUARD_STRAY;
  int passes = 0; /* an answer for a PDC that is not open has no effect */
  switch (pds[0] >> 3) {
    case RUD_REQ:
    case ROD_REQ:
    case RUD_CC_REQ:
    case ROD_CC_REQ:
    case CP:
      if (!(pds[1] & SYN)) {
        if (guard_is_open(guard, pds)) return 0;
        passes = guard_admits(guard, guard_source(guard, ip), pds, 0);
      } else {
        reason = UET_GUARD_SYN;
        passes = guard_admits(guard, guard_source(guard, ip), pds, 1);
      }
      break;
    case NACK:
    case NACK_CCX:
      if (pds[1] & NACK_NT) return 0;
      /* fallthrough */
    case ACK:
    case ACK_CC:
    case ACK_CCX:
      if (guard_is_open(guard, pds)) return 0;
      break;
    default:
      return 0; /* without a PDC, protected (TSS), or unknown: the process decides */
  }
  if (passes) return 0;
  const __u32 cpu = bpf_get_smp_processor_id() % UET_GUARD_CPUS;
  __sync_fetch_and_add(&guard->counts[cpu].dropped[reason], 1);
  return 1;
}
