// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "netsim/host_config.h"

#include <algorithm>

namespace uet::netsim {

fep::Config host_config(const NetworkConfig& network, std::uint32_t host,
                        std::uint64_t link_rate_bps, const HostLoad& load) {
  constexpr std::size_t kMostMessages = 4096;
  constexpr std::size_t kMostPackets = 1 << 16;
  fep::Config fep = network.fep;
  // Eight times as many as there are sources: a Fep asks more peers than an eighth of its table for
  // a proof that they exist, and takes more than a quarter only one by one (Admission).
  fep.pds.pdc_count = std::min<std::size_t>(2 * load.destinations + 8 * load.sources + 8, 65000);
  fep.pds.reserved_target_pdcs = 0;
  fep.pds.reserved_pool_pdcs = 0;
  fep.cms.link_rate_bps = link_rate_bps;
  if (network.remote_rate_bps != 0) fep.cms.remote_rate_bps = network.remote_rate_bps;
  const std::uint64_t rate_bytes_per_us = fep.cms.link_rate_bps / 8'000'000;
  const double rtt_us = to_us(fep.cms.base_rtt.value_or(fep.cms.default_base_rtt));
  const auto window =
      static_cast<std::size_t>(2 * static_cast<double>(rate_bytes_per_us) * rtt_us) /
          fep.cms.mtu_bytes +
      64;
  fep.packets = std::min((load.destinations + 1) * window + 4 * load.sources + 512, kMostPackets);
  fep.buffers = 16;
  fep.memory_regions = 2;
  fep.ses.tx_messages = std::clamp<std::size_t>(load.flows, 4, kMostMessages);
  fep.ses.rx_messages = std::clamp<std::size_t>(2 * load.sources, 16, kMostMessages);
  fep.ses.posted_receives = fep.ses.return_messages = fep.ses.pulls = 16;
  fep.ses.contexts = 1 + load.destinations;
  fep.seed = network.seed * 0x9E3779B97F4A7C15ULL + host;
  fep.ses.seed = fep.seed;
  return fep;
}

}  // namespace uet::netsim
