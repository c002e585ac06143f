// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which of the processes that share a UDP port gets a packet: the one at the slot that it names.
// What names none is dropped, and what is for an empty slot. Packets of strangers to a slot whose
// process asks for it are dropped and counted too (pdc_guard.bpf.h).
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "slot.bpf.h"
#include "nic/guard/pdc_guard.bpf.h"
#include "nic/shared_steer.h"

#define UDP_BYTES 8

struct {
  __uint(type, BPF_MAP_TYPE_REUSEPORT_SOCKARRAY);
  __uint(max_entries, UET_SLOTS);
  __type(key, __u32);
  __type(value, __u64);
} UET_SHARED_SLOTS SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct UetSharedPort);
} UET_SHARED_PORT SEC(".maps");

/* Of each slot the map of the process that has it, or had it last. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, UET_SLOTS);
  __type(key, __u32);
  __array(values, struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct UetGuard));
  });
} UET_SHARED_GUARDS SEC(".maps");

static __always_inline int is_of_stranger(struct sk_reuseport_md* packet, __u32 slot) {
  const __u32 first = 0;
  __u32 source[4] = {};
  __u8 pds[GUARD_PDS_BYTES];
  void* const guards = bpf_map_lookup_elem(&UET_SHARED_GUARDS, &slot);
  if (!guards) return 0;
  struct UetGuard* const guard = bpf_map_lookup_elem(guards, &first);
  if (!guard || !guard->active) return 0;
  if (bpf_skb_load_bytes(packet, UDP_BYTES, pds, sizeof pds) != 0) return 0;
  const int ipv4 = packet->eth_protocol == bpf_htons(ETH_P_IP);
  const __u32 at = ipv4 ? offsetof(struct iphdr, saddr) : offsetof(struct ipv6hdr, saddr);
  if (ipv4) {
    if (bpf_skb_load_bytes_relative(packet, at, source, 4, BPF_HDR_START_NET) != 0) return 0;
  } else if (bpf_skb_load_bytes_relative(packet, at, source, 16, BPF_HDR_START_NET) != 0) {
    return 0;
  }
  return guard_drops(guard, source, pds);
}

SEC("sk_reuseport")
int UET_SHARED_PROGRAM(struct sk_reuseport_md* packet) {
  __u32 slot = slot_of(packet, UDP_BYTES);
  if (slot < UET_SLOTS && is_of_stranger(packet, slot)) return SK_DROP;
  if (slot < UET_SLOTS && bpf_sk_select_reuseport(packet, &UET_SHARED_SLOTS, &slot, 0) == 0) {
    return SK_PASS;
  }
  const __u32 first = 0;
  struct UetSharedPort* port = bpf_map_lookup_elem(&UET_SHARED_PORT, &first);
  if (port) __sync_fetch_and_add(&port->dropped, 1);
  return SK_DROP;
}

char uet_license[] SEC("license") = "Dual BSD/GPL";
