// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The XDP program: frames to the endpoint that has the receive queue go to its socket, whatever
// else arrives goes on to the kernel. So do packets to an endpoint that has another queue: they
// reach it through its UDP socket. Looks at headers only as far as that takes. Packets of strangers
// to an endpoint are dropped and counted in whichever queue they come, if its process asks for it
// (pdc_guard.bpf.h).
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "nic/guard/pdc_guard.bpf.h"
#include "nic/xdp_redirect.h"

#define MAX_IPV6_HEADERS 4 /* in front of the packet (WIRE 1.1) */
#define IPV6_HOP_BY_HOP 0
#define IPV6_ROUTING 43
#define IPV6_DESTINATION 60
#define ENTROPY_BYTES 4      /* the header of the native form */
#define IPV4_FRAGMENT 0x3FFF /* more fragments, or not the first */

#ifdef UET_XDP_HAS_LIST
/* Endpoints of the process that has the program; the values are not used. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, UET_XDP_MOST_LISTED);
  __type(key, struct UetXdpEndpoint);
  __type(value, __u32);
} UET_XDP_LISTED SEC(".maps");
#else
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, UET_XDP_QUEUES);
  __type(key, __u32);
  __type(value, struct UetXdpEndpoint);
} UET_XDP_ENDPOINTS SEC(".maps");

/* Of each queue the map of the process that has it; not of a queue that none has had. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, UET_XDP_QUEUES);
  __type(key, __u32);
  __array(
      values, struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(map_flags, BPF_F_MMAPABLE);
        __uint(max_entries, 1);
        __uint(key_size, sizeof(__u32));
        __uint(value_size, sizeof(struct UetGuard));
      });
} UET_XDP_GUARDS SEC(".maps");

/* A queue of each endpoint; that of a process which has ended stays until the place is needed. */
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, UET_XDP_KNOWN_ENDPOINTS);
  __type(key, struct UetXdpEndpoint);
  __type(value, __u32);
} UET_XDP_QUEUE_OF SEC(".maps");
#endif

struct {
  __uint(type, BPF_MAP_TYPE_XSKMAP);
  __uint(max_entries, UET_XDP_QUEUES);
  __type(key, __u32);
  __type(value, __u32);
} UET_XDP_SOCKETS SEC(".maps");

/* Where what is behind the IP header begins, with the destination and the protocol in `to`; 0: a
 * fragment, or no such packet. */
static __always_inline void* behind_ipv4(void* at, void* end, struct UetXdpEndpoint* to) {
  const struct iphdr* ip = at;
  if ((void*)(ip + 1) > end || ip->version != 4 || ip->ihl < 5) return 0;
  if (ip->frag_off & bpf_htons(IPV4_FRAGMENT)) return 0;
  to->ip[0] = ip->daddr;
  to->protocol = ip->protocol;
  return at + ip->ihl * 4;
}

static __always_inline void* behind_ipv6(void* at, void* end, struct UetXdpEndpoint* to) {
  const struct ipv6hdr* ip = at;
  if ((void*)(ip + 1) > end || ip->version != 6) return 0;
  __builtin_memcpy(to->ip, &ip->daddr, sizeof to->ip);
  to->is_ipv6 = 1;
  to->protocol = ip->nexthdr;
  at += sizeof *ip;
  for (int i = 0; i < MAX_IPV6_HEADERS; ++i) {
    const struct ipv6_opt_hdr* header = at;
    const __u8 next = to->protocol;
    if (next != IPV6_HOP_BY_HOP && next != IPV6_ROUTING && next != IPV6_DESTINATION) return at;
    if ((void*)(header + 1) > end) return 0;
    to->protocol = header->nexthdr;
    at += (header->hdrlen + 1) * 8;
  }
  return at;
}

/* Likewise, of a frame, with the UDP port. */
static __always_inline void* behind_ip(void* begin, void* end, struct UetXdpEndpoint* to) {
  const struct ethhdr* ethernet = begin;
  void* packet = 0;
  if ((void*)(ethernet + 1) > end) return 0;
  if (ethernet->h_proto == bpf_htons(ETH_P_IP)) {
    packet = behind_ipv4((void*)(ethernet + 1), end, to);
  } else if (ethernet->h_proto == bpf_htons(ETH_P_IPV6)) {
    packet = behind_ipv6((void*)(ethernet + 1), end, to);
  }
  if (packet && to->protocol == IPPROTO_UDP) {
    const struct udphdr* udp = packet;
    if ((void*)(udp + 1) > end) return 0;
    to->port = udp->dest;
  }
  return packet;
}

#ifndef UET_XDP_HAS_LIST
static __always_inline int is_same(const struct UetXdpEndpoint* a, const struct UetXdpEndpoint* b) {
  for (int i = 0; i < 4; ++i) {
    if (a->ip[i] != b->ip[i]) return 0;
  }
  return a->port == b->port && a->protocol == b->protocol && a->is_ipv6 == b->is_ipv6;
}

/* A queue that the endpoint has; UET_XDP_QUEUES: it has none. */
static __always_inline __u32 queue_of(const struct UetXdpEndpoint* to) {
  if (to->protocol == IPPROTO_TCP) return UET_XDP_QUEUES;
  const __u32* known = bpf_map_lookup_elem(&UET_XDP_QUEUE_OF, to);
  if (!known) return UET_XDP_QUEUES;
  const __u32 queue = *known;
  const struct UetXdpEndpoint* owner = bpf_map_lookup_elem(&UET_XDP_ENDPOINTS, &queue);
  return owner && is_same(owner, to) ? queue : UET_XDP_QUEUES;
}

/* The packet that begins at `packet`, behind the IP header, is a stranger's to the endpoint `to`,
 * which has `queue`. */
static __always_inline int is_of_stranger(__u32 queue, const struct UetXdpEndpoint* to,
                                          const void* ip, void* packet, void* end) {
  const __u32 first = 0;
  __u32 source[4] = {};
  __u8 pds[GUARD_PDS_BYTES];
  /* The map of a process that has ended stays. */
  if (!bpf_map_lookup_elem(&UET_XDP_SOCKETS, &queue)) return 0;
  void* const guards = bpf_map_lookup_elem(&UET_XDP_GUARDS, &queue);
  if (!guards) return 0;
  struct UetGuard* const guard = bpf_map_lookup_elem(guards, &first);
  if (!guard || !guard->active) return 0;
  packet += to->protocol == IPPROTO_UDP ? sizeof(struct udphdr) : ENTROPY_BYTES;
  if (packet + sizeof pds > end) return 0;
  __builtin_memcpy(pds, packet, sizeof pds);
  if (to->is_ipv6) {
    const struct ipv6hdr* header = ip;
    if ((void*)(header + 1) > end) return 0;
    __builtin_memcpy(source, &header->saddr, sizeof source);
  } else {
    const struct iphdr* header = ip;
    if ((void*)(header + 1) > end) return 0;
    source[0] = header->saddr;
  }
  return guard_drops(guard, source, pds);
}
#endif

SEC("xdp.frags")
int UET_XDP_PROGRAM(struct xdp_md* frame) {
  void* const begin = (void*)(long)frame->data;
  void* const end = (void*)(long)frame->data_end;
  const __u32 queue = frame->rx_queue_index;
  struct UetXdpEndpoint to = {};
  void* const packet = behind_ip(begin, end, &to);
  if (!packet) return XDP_PASS;
#ifdef UET_XDP_HAS_LIST
  const int is_here = bpf_map_lookup_elem(&UET_XDP_LISTED, &to) != 0;
#else
  const struct UetXdpEndpoint* self = bpf_map_lookup_elem(&UET_XDP_ENDPOINTS, &queue);
  const int is_here = self && is_same(self, &to);
  const __u32 its_queue = is_here ? queue : queue_of(&to);
  if (its_queue < UET_XDP_QUEUES &&
      is_of_stranger(its_queue, &to, begin + sizeof(struct ethhdr), packet, end)) {
    return XDP_DROP;
  }
#endif
  /* A queue without a socket: the kernel's. */
  return is_here ? bpf_redirect_map(&UET_XDP_SOCKETS, queue, XDP_PASS) : XDP_PASS;
}

char uet_license[] SEC("license") = "Dual BSD/GPL";
