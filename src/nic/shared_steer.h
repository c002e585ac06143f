// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Definitions common to the kernel programs that steer packets of a shared port and the processes
// that share it: names, and the owner of the port. Also compiled as C for the kernel's
// virtual machine, hence the plain types.
#pragma once

#include <linux/types.h>

// The kernel knows an object by its name, of up to 15 characters. The number changes whenever the
// program or the layout of its maps does, so that processes of different builds do not share it.
#define UET_SHARED_PROGRAM uet_steer_2
#define UET_SHARED_SLOTS uet_slots
#define UET_SHARED_GUARDS uet_guards
#define UET_SHARED_PORT uet_shared_port

// As in uet/base/address.h.
#define UET_SLOT_BITS 5
#define UET_SLOTS (1 << UET_SLOT_BITS)

// The one entry of UET_SHARED_PORT: the address and network name space of the port, by which
// processes find the program, and the count of packets dropped there.
struct UetSharedPort {
  __u64 name_space[2];  // device and inode
  __u8 ip[16];          // as FabricAddress::bytes
  __u64 is_ipv6;
  __u64 dropped;  // packets for no slot, or for an empty one
};

// The frames that the filter of a packet socket accepts: to port 4793 of the address and the slot.
#define UET_SLOT_FILTER uet_slot_1
struct UetSlotFilter {
  __u32 ip[4];  // network byte order; IPv4: the first word
  __u32 is_ipv6;
  __u32 slot;
};
