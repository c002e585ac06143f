// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The filter of a packet socket of a process that shares a port: takes whole frames that are for its
// slot, and nothing else.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "slot.bpf.h"
#include "nic/shared_steer.h"

#define UET_PORT 4793
#define IPV4_FRAGMENT 0x3FFF /* more fragments, or not the first */
#define MAX_IPV6_HEADERS 4   /* in front of the packet (WIRE 1.1) */
#define IPV6_HOP_BY_HOP 0
#define IPV6_ROUTING 43
#define IPV6_DESTINATION 60
#define TAKE_ALL 0xFFFFFFFF
#define DROP 0

const volatile struct UetSlotFilter uet_filter = {};

/* Where UDP begins; 0: the frame is not for our address. */
static __always_inline __u32 behind_ipv4(struct __sk_buff* frame) {
  struct iphdr ip;
  if (bpf_skb_load_bytes(frame, ETH_HLEN, &ip, sizeof ip) != 0) return 0;
  if (ip.version != 4 || ip.ihl < 5 || ip.protocol != IPPROTO_UDP) return 0;
  if (ip.daddr != uet_filter.ip[0] || (ip.frag_off & bpf_htons(IPV4_FRAGMENT))) return 0;
  return ETH_HLEN + ip.ihl * 4;
}

static __always_inline __u32 behind_ipv6(struct __sk_buff* frame) {
  struct ipv6hdr ip;
  if (bpf_skb_load_bytes(frame, ETH_HLEN, &ip, sizeof ip) != 0 || ip.version != 6) return 0;
  for (int i = 0; i < 4; ++i) {
    if (ip.daddr.s6_addr32[i] != uet_filter.ip[i]) return 0;
  }
  __u8 next = ip.nexthdr;
  __u32 at = ETH_HLEN + sizeof ip;
  for (int i = 0; i < MAX_IPV6_HEADERS && next != IPPROTO_UDP; ++i) {
    struct ipv6_opt_hdr header;
    if (next != IPV6_HOP_BY_HOP && next != IPV6_ROUTING && next != IPV6_DESTINATION) return 0;
    if (bpf_skb_load_bytes(frame, at, &header, sizeof header) != 0) return 0;
    next = header.nexthdr;
    at += (header.hdrlen + 1) * 8;
  }
  return next == IPPROTO_UDP ? at : 0;
}

SEC("socket")
int UET_SLOT_FILTER(struct __sk_buff* frame) {
  const __u32 udp_at = uet_filter.is_ipv6 ? behind_ipv6(frame) : behind_ipv4(frame);
  struct udphdr udp;
  if (udp_at == 0 || bpf_skb_load_bytes(frame, udp_at, &udp, sizeof udp) != 0) return DROP;
  if (udp.dest != bpf_htons(UET_PORT)) return DROP;
  return slot_of(frame, udp_at + sizeof udp) == uet_filter.slot ? TAKE_ALL : DROP;
}

char uet_license[] SEC("license") = "Dual BSD/GPL";
