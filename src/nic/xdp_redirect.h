// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the XDP program and the processes that use it share: names, and who has which receive queue.
// Also compiled as C for the kernel's virtual machine, hence the plain types.
#pragma once

#include <linux/types.h>

// The kernel knows an object by its name, of up to 15 characters. The number changes whenever the
// program or the layout of its maps does, so that processes of different builds do not share it.
#define UET_XDP_PROGRAM uet_redirect_3
#define UET_XDP_ENDPOINTS uet_endpoints
#define UET_XDP_SOCKETS uet_sockets
#define UET_XDP_GUARDS uet_guards
#define UET_XDP_QUEUE_OF uet_queue_of

// Receive queues that the maps have places for.
#define UET_XDP_QUEUES 1024
// Endpoints of which a queue is known; the one that is asked for least makes way.
#define UET_XDP_KNOWN_ENDPOINTS 4096

// Whose packets leave a receive queue for its socket; all others go on to the kernel.
struct UetXdpEndpoint {
  __u32 ip[4];    // network byte order; IPv4: the first word
  __u16 port;     // network byte order; native form: 0
  __u8 protocol;  // IP protocol number: UDP, or that of the native form; 0 = nobody's
  __u8 is_ipv6;
};

// A program that one process has: the list of its endpoints, and how many there may be.
#define UET_XDP_LISTED uet_listed
#define UET_XDP_MOST_LISTED 1024
