// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// UDP port 4793 of one address for several processes (way D of the design): sockets that share the
// port, and a program in the kernel that gives each packet to the one whose place it names. Nobody
// holds anything but its sockets: with the last of them the program goes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "uet/base/address.h"
#include "uet/base/result.h"
#include "uet/nic/udp.h"

namespace uet::nic {

// Takes the place `wanted`, or the first free one, at port 4793 of `ip`: binds `receiver` to the
// port and `sender` to that of the place. The address returned names the place; `dropped` counts,
// for all who share the port, what is for no place that is taken, and needs no right. It is free
// again when the sockets are closed, as the end of a process does. Errors: NotSupported (no right,
// or a kernel that cannot), AddressInUse (the port or the place is another's, or all places are
// taken), NoDevice (no address of this host), Io; `message` says why.
Result<UdpBinding> join_shared_port(const FabricAddress& ip, std::optional<std::uint8_t> wanted,
                                    int receiver, int sender, std::string& message);

// Packets that were dropped at the shared port of `ip` because they were for no place that is
// taken. Empty if there is no shared port, or no right to look.
std::optional<std::uint64_t> dropped_at_shared_port(const FabricAddress& ip);

}  // namespace uet::nic
