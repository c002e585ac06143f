// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Ports to send UDP from, if a packet's source port is its entropy value (CMS-404). Peers send no
// UET packets to them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "nic/socket.h"
#include "uet/base/result.h"

namespace uet::nic {

struct SourcePorts {
  std::uint16_t first = 0;              // a multiple of their number
  std::vector<FileDescriptor> sockets;  // at this port and those behind it
};

// Binds `count` sockets, a power of two to 64, which `open` makes with all their options, to free
// ports in a row of `ip`, from the range of dynamic ports. The kernel drops packets that arrive at
// them. Errors: the ones of `open`, and Io, with `message`.
Result<SourcePorts> open_source_ports(const FabricAddress& ip, std::uint16_t count,
                                      const std::function<Result<FileDescriptor>()>& open,
                                      std::string& message);

}  // namespace uet::nic
