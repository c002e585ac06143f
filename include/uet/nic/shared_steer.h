// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the programs in the kernel that tell packets of a shared port apart, and the processes that
// share it, have in common: names, and whose port it is. Also compiled as C for the kernel's
// virtual machine, hence the plain types.
#pragma once

#include <linux/types.h>

// The kernel knows an object by its name, of up to 15 characters. The number changes whenever the
// program or the layout of its maps does, so that processes of different builds do not share it.
#define UET_SHARED_PROGRAM uet_steer_1
#define UET_SHARED_PLACES uet_places
#define UET_SHARED_PORT uet_shared_port

// As in uet/base/address.h.
#define UET_PLACE_BITS 5
#define UET_PLACES (1 << UET_PLACE_BITS)

// The one entry of UET_SHARED_PORT: at which address of which network name space the port is, by
// which processes find the program, and what has been dropped there.
struct UetSharedPort {
  __u64 name_space[2];  // device and inode
  __u8 ip[16];          // as FabricAddress::bytes
  __u64 is_ipv6;
  __u64 dropped;  // packets that are for no place, or for one that is empty
};

// What the filter of a packet socket takes: frames to port 4793 of the address, for the place.
#define UET_PLACE_FILTER uet_place_1
struct UetPlaceFilter {
  __u32 ip[4];  // network byte order; IPv4: the first word
  __u32 is_ipv6;
  __u32 place;
};
