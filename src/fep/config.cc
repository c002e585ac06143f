// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fep/config.h"

namespace uet::fep {

// IPv6, UDP, PDS request with CC words, SES standard request and its largest extension with data.
constexpr std::uint32_t kLargestHeaders = 40 + 8 + 16 + 44 + 24;

std::uint32_t payload_mtu_for(std::uint32_t ip_mtu) {
  for (std::uint32_t payload = 8192; payload >= 1024; payload /= 2) {
    if (payload + kLargestHeaders <= ip_mtu) return payload;
  }
  return 0;
}

}  // namespace uet::fep
