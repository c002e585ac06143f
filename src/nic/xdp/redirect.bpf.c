// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The XDP program: frames to the endpoint that has the receive queue go to its socket, whatever
// else arrives goes on to the kernel. So do packets to an endpoint that has another queue: they
// reach it through its UDP socket. Looks at headers only as far as that takes. Packets of strangers
// to the endpoint are dropped and counted, if its process asks for it (pdc_guard.bpf.h).
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
#define ENTROPY_BYTES 4 /* the header of the native form */
#define IPV4_FRAGMENT 0x3FFF /* more fragments, or not the first */

#ifdef UET_XDP_WRITTEN_ENDPOINT
struct UetXdpWritten uet_written = {UET_XDP_MARKER, {{0}, 0, 0, 0}};
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
  __array(values, struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct UetGuard));
  });
} UET_XDP_GUARDS SEC(".maps");
#endif

struct {
  __uint(type, BPF_MAP_TYPE_XSKMAP);
  __uint(max_entries, UET_XDP_QUEUES);
  __type(key, __u32);
  __type(value, __u32);
} UET_XDP_SOCKETS SEC(".maps");

/* Where the packet behind the IP header begins; 0: it is not for the endpoint. */
static __always_inline void* behind_ipv4(void* at, void* end, const struct UetXdpEndpoint* self) {
  const struct iphdr* ip = at;
  if ((void*)(ip + 1) > end || ip->version != 4 || ip->ihl < 5) return 0;
  if (ip->protocol != self->protocol || ip->daddr != self->ip[0]) return 0;
  if (ip->frag_off & bpf_htons(IPV4_FRAGMENT)) return 0;
  return at + ip->ihl * 4;
}

static __always_inline void* behind_ipv6(void* at, void* end, const struct UetXdpEndpoint* self) {
  const struct ipv6hdr* ip = at;
  if ((void*)(ip + 1) > end || ip->version != 6) return 0;
  for (int i = 0; i < 4; ++i) {
    if (ip->daddr.s6_addr32[i] != self->ip[i]) return 0;
  }
  __u8 next = ip->nexthdr;
  at += sizeof *ip;
  for (int i = 0; i < MAX_IPV6_HEADERS; ++i) {
    const struct ipv6_opt_hdr* header = at;
    if (next == self->protocol) return at;
    if (next != IPV6_HOP_BY_HOP && next != IPV6_ROUTING && next != IPV6_DESTINATION) return 0;
    if ((void*)(header + 1) > end) return 0;
    next = header->nexthdr;
    at += (header->hdrlen + 1) * 8;
  }
  return next == self->protocol ? at : 0;
}

#ifndef UET_XDP_WRITTEN_ENDPOINT
/* The packet that begins at `packet`, behind the IP header, is a stranger's. */
static __always_inline int is_of_stranger(__u32 queue, const struct UetXdpEndpoint* self, const void* ip,
                                          void* packet, void* end) {
  const __u32 first = 0;
  __u32 source[4] = {};
  __u8 pds[GUARD_PDS_BYTES];
  /* The map of a process that has ended stays. */
  if (!bpf_map_lookup_elem(&UET_XDP_SOCKETS, &queue)) return 0;
  void* const guards = bpf_map_lookup_elem(&UET_XDP_GUARDS, &queue);
  if (!guards) return 0;
  struct UetGuard* const guard = bpf_map_lookup_elem(guards, &first);
  if (!guard || !guard->active) return 0;
  packet += self->protocol == IPPROTO_UDP ? sizeof(struct udphdr) : ENTROPY_BYTES;
  if (packet + sizeof pds > end) return 0;
  __builtin_memcpy(pds, packet, sizeof pds);
  if (self->is_ipv6) {
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
#ifdef UET_XDP_WRITTEN_ENDPOINT
  const struct UetXdpEndpoint* self = &uet_written.endpoint;
#else
  const struct UetXdpEndpoint* self = bpf_map_lookup_elem(&UET_XDP_ENDPOINTS, &queue);
#endif
  if (!self || self->protocol == 0) return XDP_PASS;
  const struct ethhdr* ethernet = begin;
  if ((void*)(ethernet + 1) > end) return XDP_PASS;
  void* packet = 0;
  if (self->is_ipv6) {
    if (ethernet->h_proto == bpf_htons(ETH_P_IPV6)) {
      packet = behind_ipv6((void*)(ethernet + 1), end, self);
    }
  } else if (ethernet->h_proto == bpf_htons(ETH_P_IP)) {
    packet = behind_ipv4((void*)(ethernet + 1), end, self);
  }
  if (!packet) return XDP_PASS;
  if (self->protocol == IPPROTO_UDP) {
    const struct udphdr* udp = packet;
    if ((void*)(udp + 1) > end || udp->dest != self->port) return XDP_PASS;
  }
#ifndef UET_XDP_WRITTEN_ENDPOINT
  if (is_of_stranger(queue, self, ethernet + 1, packet, end)) return XDP_DROP;
#endif
  /* A queue without a socket: the kernel's. */
  return bpf_redirect_map(&UET_XDP_SOCKETS, queue, XDP_PASS);
}

char uet_license[] SEC("license") = "Dual BSD/GPL";
