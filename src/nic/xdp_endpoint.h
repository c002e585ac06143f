// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Our address as the XDP programs compare packets with it.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <cstring>

#include "nic/xdp_redirect.h"
#include "uet/base/address.h"

namespace uet::nic {

// For packets to `self`; `protocol` is UDP's number, or that of the native form.
inline UetXdpEndpoint xdp_endpoint(const FepAddress& self, std::uint8_t protocol) {
  UetXdpEndpoint endpoint{};
  std::memcpy(endpoint.ip, self.ip.bytes.data(), self.ip.is_ipv6 ? 16 : 4);
  endpoint.port = protocol == IPPROTO_UDP ? htons(self.port) : std::uint16_t{0};
  endpoint.protocol = protocol;
  endpoint.is_ipv6 = self.ip.is_ipv6 ? 1 : 0;
  return endpoint;
}

}  // namespace uet::nic
