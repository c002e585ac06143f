// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// UDP port 4793 of one address for several processes (shared port): sockets that share the port,
// and a program in the kernel that gives each packet to the socket of the slot that it names.
// A process holds only its sockets: the kernel frees the program with the last of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nic/udp.h"
#include "uet/base/address.h"
#include "uet/base/result.h"

namespace uet::nic {

// Takes the slot `wanted`, or the first free one, at port 4793 of `ip`: binds `receiver` to the
// port and `sender` to the port of the slot. The address returned names the slot. `dropped` counts
// packets to the port for no occupied slot, whichever process they are for, and needs no right. The
// slot is free again when the sockets are closed, also by process exit. Errors: NotSupported (no
// right, or a kernel that cannot), AddressInUse (other software has the port, another process the
// slot, or all slots are taken), NoDevice (no address of this host), Io; `message` says why.
Result<UdpBinding> join_shared_port(const FabricAddress& ip, std::optional<std::uint8_t> wanted,
                                    int receiver, int sender, std::string& message);

// Packets that were dropped at the shared port of `ip` because they were for no occupied slot.
// Empty if there is no shared port, or no right to look.
std::optional<std::uint64_t> dropped_at_shared_port(const FabricAddress& ip);

}  // namespace uet::nic
