// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which of the processes that share a UDP port gets a packet: the one at the slot that it names.
// What names none is dropped, and what is for an empty slot.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "slot.bpf.h"
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

SEC("sk_reuseport")
int UET_SHARED_PROGRAM(struct sk_reuseport_md* packet) {
  __u32 slot = slot_of(packet, UDP_BYTES);
  if (slot < UET_SLOTS && bpf_sk_select_reuseport(packet, &UET_SHARED_SLOTS, &slot, 0) == 0) {
    return SK_PASS;
  }
  const __u32 first = 0;
  struct UetSharedPort* port = bpf_map_lookup_elem(&UET_SHARED_PORT, &first);
  if (port) __sync_fetch_and_add(&port->dropped, 1);
  return SK_DROP;
}

char uet_license[] SEC("license") = "Dual BSD/GPL";
