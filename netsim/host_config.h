// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The configuration of one host's Fep, just as large as the traffic needs: there may be thousands
// of hosts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "netsim/network_config.h"

namespace uet::netsim {

// The part of the traffic that concerns a host. Peers that differ in mode, traffic class or size
// class (PDS-9) count apart, as they have PDCs of their own.
struct HostLoad {
  std::size_t destinations = 0;
  std::size_t sources = 0;
  std::size_t flows = 0;  // that it sends
};

// `link_rate_bps`: of the link of host number `host`. The seed depends on the host.
fep::Config host_config(const NetworkConfig& network, std::uint32_t host,
                        std::uint64_t link_rate_bps, const HostLoad& load);

}  // namespace uet::netsim
