// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Lines over the kernel's sockets: UDP, and the native form of IP (a raw socket).
#pragma once

#include <memory>
#include <string>

#include "line.h"
#include "uet/base/address.h"

namespace uet::probe {

struct Ends {
  FabricAddress own;                     // an address of this host
  std::uint16_t own_port = kUetUdpPort;  // where answers are heard
  FepAddress peer;                       // of the same family
  std::uint16_t entropy = 0x4242;        // the port that requests leave from
  bool crc = false;                      // CRC trailers both ways (WIRE 1.4)
};

// Throws std::runtime_error that says what to do, where the sockets cannot be had.
std::unique_ptr<Line> open_udp(const Ends& ends);
// Needs CAP_NET_RAW. The ports of `ends` have no meaning.
std::unique_ptr<Line> open_native(const Ends& ends, std::uint8_t protocol);

// The address of this host from which packets to `peer` leave. Throws std::runtime_error.
FabricAddress local_address_to(const FabricAddress& peer);
// An IPv4 or IPv6 address as text, or a host name. Throws std::runtime_error.
FabricAddress resolve(const std::string& host);
std::string to_text(const FabricAddress& ip);

}  // namespace uet::probe
