// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A bad network at the ingress or egress of an interface (tc, direct action): drops, trims, marks
// and duplicates UET packets, over UDP and native IP, by the rates in a map; of all other IP packets it drops a share. What
// happens to the n-th packet follows from n and the seed. And the queue in front of a slow link,
// with marks and a limit, for all packets: a program cannot see how full a qdisc behind it is, so
// it counts with the rate of that. Control packets of UET are for its first band (CMS 1.4).
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "impair_map.h"

#define FIRST_PORT 4793
#define LAST_PORT 5816
#define SEEN_MARK 0x55455431  // on a packet: it has been here, as what a duplicate is of
// A switch keeps at least 24 bytes behind the IP header (WIRE 1.3); these are a few more.
#define KEPT_BYTES 48

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct impair_settings);
} settings SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, kImpairCounts);
  __type(key, __u32);
  __type(value, __u64);
} counts SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct impair_queue);
} queue SEC(".maps");

static __always_inline __u64 count(__u32 what) {
  __u64* value = bpf_map_lookup_elem(&counts, &what);
  return value ? __sync_fetch_and_add(value, 1) : 0;
}

// A number for each kind of event of each packet.
static __always_inline __u32 draw(__u32 seed, __u64 packet, __u32 kind) {
  __u64 x = (packet * 8 + kind + 1) * 0x9E3779B97F4A7C15ULL ^ ((__u64)seed << 32 | seed);
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ x >> 27) * 0x94D049BB133111EBULL;
  return (__u32)(x ^ x >> 31);
}

struct packet {
  __u32 ip_bytes;  // of the IP header
  __u8 is_ipv6;
  __u8 is_udp;
  __u8 traffic_class;
};

static __always_inline int is_uet(struct __sk_buff* skb, const struct impair_settings* set,
                                  struct packet* out) {
  __u8 protocol;
  if (skb->protocol == bpf_htons(ETH_P_IP)) {
    struct iphdr ip;
    if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof ip) < 0) return 0;
    out->ip_bytes = ip.ihl * 4;
    out->is_ipv6 = 0;
    out->traffic_class = ip.tos;
    protocol = ip.protocol;
    if (ip.ihl != 5) return 0;
  } else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
    struct ipv6hdr ip;
    if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof ip) < 0) return 0;
    out->ip_bytes = sizeof ip;
    out->is_ipv6 = 1;
    out->traffic_class = (__u8)(ip.priority << 4 | ip.flow_lbl[0] >> 4);
    protocol = ip.nexthdr;
  } else {
    return 0;
  }
  out->is_udp = protocol == IPPROTO_UDP;
  if (!out->is_udp) return protocol == set->native_protocol;
  __be16 port;
  if (bpf_skb_load_bytes(skb, ETH_HLEN + out->ip_bytes + 2, &port, sizeof port) < 0) return 0;
  return bpf_ntohs(port) >= FIRST_PORT && bpf_ntohs(port) <= LAST_PORT;
}

static __always_inline __u16 ip_checksum(const struct iphdr* ip) {
  const __u16* word = (const __u16*)ip;
  __u32 sum = 0;
#pragma unroll
  for (int i = 0; i < 10; ++i) sum += word[i];
  sum = (sum & 0xFFFF) + (sum >> 16);
  sum = (sum & 0xFFFF) + (sum >> 16);
  return (__u16)~sum;
}

// Cuts the packet behind its first bytes, and makes a right packet of what is left: lengths, IPv4
// checksum, no UDP checksum.
static __always_inline int trim(struct __sk_buff* skb, const struct impair_settings* set,
                                const struct packet* packet) {
  const __u32 kept = ETH_HLEN + packet->ip_bytes + KEPT_BYTES;
  if (skb->len <= kept || packet->traffic_class >> 2 != set->dscp_trimmable) return 0;
  if (bpf_skb_change_tail(skb, kept, 0) < 0) return 0;
  const __u8 traffic_class = (__u8)(set->dscp_trimmed << 2 | (packet->traffic_class & 3));
  if (packet->is_ipv6) {
    struct ipv6hdr ip;
    if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof ip) < 0) return 0;
    ip.priority = traffic_class >> 4;
    ip.flow_lbl[0] = (__u8)(traffic_class << 4 | (ip.flow_lbl[0] & 15));
    ip.payload_len = bpf_htons(KEPT_BYTES);
    bpf_skb_store_bytes(skb, ETH_HLEN, &ip, sizeof ip, 0);
  } else {
    struct iphdr ip;
    if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof ip) < 0) return 0;
    ip.tos = traffic_class;
    ip.tot_len = bpf_htons(sizeof ip + KEPT_BYTES);
    ip.check = 0;
    ip.check = ip_checksum(&ip);
    bpf_skb_store_bytes(skb, ETH_HLEN, &ip, sizeof ip, 0);
  }
  if (packet->is_udp) {
    const __be16 length_and_checksum[2] = {bpf_htons(KEPT_BYTES), 0};
    bpf_skb_store_bytes(skb, ETH_HLEN + packet->ip_bytes + 4, length_and_checksum,
                        sizeof length_and_checksum, 0);
  }
  return 1;
}

#define DSCP_CONTROL 46
#define PRIORITY_CONTROL 7  // TC_PRIO_CONTROL: the first band of pfifo_fast, ...
#define PRIORITY_DATA 0     // ... and TC_PRIO_BESTEFFORT: the second
#define NS_PER_SECOND 1000000000ULL
#define NO_ROOM 0xFFFFFFFFFFFFFFFFULL

// The queue with this packet in it, in bytes; NO_ROOM if it is data and does not fit.
static __always_inline __u64 enqueue(struct __sk_buff* skb, const struct impair_settings* set,
                                     int is_control) {
  const __u32 first = 0;
  struct impair_queue* full = bpf_map_lookup_elem(&queue, &first);
  if (!full) return 0;
  skb->priority = is_control ? PRIORITY_CONTROL : PRIORITY_DATA;
  const __u64 now = bpf_ktime_get_ns();
  bpf_spin_lock(&full->lock);
  __u64 passed = now > full->drained_ns ? now - full->drained_ns : 0;
  if (passed > NS_PER_SECOND) passed = NS_PER_SECOND;
  const __u64 drained = passed * set->queue_bytes_per_second / NS_PER_SECOND;
  const __u64 left = full->bytes > drained ? full->bytes - drained : 0;
  const __u64 with_this = left + skb->len;
  const int fits = is_control || set->queue_limit == 0 || with_this <= set->queue_limit;
  full->bytes = fits ? with_this : left;
  if (now > full->drained_ns) full->drained_ns = now;
  bpf_spin_unlock(&full->lock);
  return fits ? with_this : NO_ROOM;
}

static __always_inline int queue_marks(__u64 bytes, const struct impair_settings* set,
                                       __u32 number) {
  if (set->queue_mark_to == 0 || bytes <= set->queue_mark_from) return 0;
  if (bytes >= set->queue_mark_to) return 1;
  const __u64 share =
      ((bytes - set->queue_mark_from) << 32) / (set->queue_mark_to - set->queue_mark_from);
  return number < share;
}

static __always_inline int mark(struct __sk_buff* skb, const struct packet* packet) {
  return (packet->traffic_class & 3) != 0 &&
         bpf_skb_pull_data(skb, ETH_HLEN + packet->ip_bytes) ==
             0 &&  // frames of rings are in pieces
         bpf_skb_ecn_set_ce(skb) > 0;
}

// IP packets of other transports, which a benchmark measures beside UET's.
static __always_inline int pass_other(struct __sk_buff* skb, const struct impair_settings* set) {
  if (set->drop_other == 0) return TC_ACT_OK;
  if (skb->protocol != bpf_htons(ETH_P_IP) && skb->protocol != bpf_htons(ETH_P_IPV6)) return TC_ACT_OK;
  if (draw(set->seed, count(kImpairOther), 5) >= set->drop_other) return TC_ACT_OK;
  count(kImpairOtherDropped);
  return TC_ACT_SHOT;
}

SEC("tc")
int impair(struct __sk_buff* skb) {
  __u32 first = 0;
  struct packet packet = {};
  if (skb->mark == SEEN_MARK) return TC_ACT_OK;
  const struct impair_settings* set = bpf_map_lookup_elem(&settings, &first);
  if (!set) return TC_ACT_OK;
  const int ours = is_uet(skb, set, &packet);
  const int is_control = ours && packet.traffic_class >> 2 == DSCP_CONTROL;
  const __u64 queued = set->queue_bytes_per_second != 0 ? enqueue(skb, set, is_control) : 0;
  if (queued == NO_ROOM) {
    count(kImpairOverflowed);
    return TC_ACT_SHOT;
  }
  if (!ours) return pass_other(skb, set);
  const __u64 number = count(kImpairSeen);
  if (draw(set->seed, number, 0) < set->drop) {
    count(kImpairDropped);
    return TC_ACT_SHOT;
  }
  if (draw(set->seed, number, 1) < set->trim && trim(skb, set, &packet)) {
    count(kImpairTrimmed);
    return TC_ACT_OK;
  }
  if (draw(set->seed, number, 2) < set->mark && mark(skb, &packet)) count(kImpairMarked);
  if (queue_marks(queued, set, draw(set->seed, number, 4)) && mark(skb, &packet)) {
    count(kImpairMarkedByQueue);
  }
  if (draw(set->seed, number, 3) < set->duplicate) {
    skb->mark = SEEN_MARK;
    if (bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS) == 0) count(kImpairDuplicated);
  }
  return TC_ACT_OK;
}

char kLicense[] SEC("license") = "GPL";
