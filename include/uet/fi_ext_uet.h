/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What an application may want to know about the libfabric provider "uet" beyond libfabric's own
 * headers. Plain C. libfabric itself has no numbers for Ultra Ethernet Transport; these are private
 * to this provider and stay the same.
 */
#ifndef FI_EXT_UET_H
#define FI_EXT_UET_H

#include <rdma/fabric.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * fi_info.addr_format of an endpoint address: FI_ADDR_UET_SIZE bytes, all numbers big-endian.
 *
 *   offset  size  member
 *        0     1  version in the upper four bits, 0
 *        1     1  flags: 0x01 capabilities, 0x02 fabric address, 0x04 PIDonFEP, 0x08 resource
 *                 index, 0x10 initiator id are valid; 0x20 absolute addressing; 0x40 IPv6;
 *                 0x80 messages of at most one MTU
 *        2     1  capabilities: 0x01 AI base, 0x02 AI full, 0x04 HPC, 0x40 reordering,
 *                 0x80 optimized non-matching header
 *        3     1  0
 *        4    16  fabric address: IPv6, or IPv4 and 12 zero bytes
 *       20     2  PIDonFEP, 12 bits
 *       22     2  first resource index, 12 bits
 *       24     2  number of resource indices
 *       26     2  UDP port, 0 = 4793
 *       28     4  initiator id
 *
 * fi_av_straddr shows it as "fi_addr_uet://10.0.0.1:4793?pid=0&ri=1&n=1&init=5" (IPv6 in brackets);
 * fi_getinfo and fi_av_insertsvc accept that text as node.
 */
#define FI_ADDR_UET (0x80554554U)
#define FI_ADDR_UET_SIZE 32

/* fi_ep_attr.protocol, protocol_version 1: UET 1.0 over UDP. */
#define FI_PROTO_UET (0x80554554U)
#define FI_PROTO_UET_VERSION 1

/* A JobID as auth_key: 3 bytes, most significant first (or 4 bytes, the first one 0). */
#define FI_UET_AUTH_KEY_SIZE 3

#ifdef __cplusplus
}
#endif

#endif /* FI_EXT_UET_H */
