// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From the parameters of the provider to the configuration of the core and of the NIC, with what
// follows from several of them together or from the NIC that was found.
#pragma once

#include <cstdint>
#include <string>

#include "av/address.h"
#include "fep/config.h"
#include "nic/registry.h"
#include "settings/params.h"
#include "uet/nic/nic.h"

namespace uet::prov {

// How to open `back_end` (FI_UET_NIC) at the IP address and, unless it is 0, the UDP port of
// `source`.
nic::NicConfig nic_config(const Params& params, const std::string& back_end,
                          const av::UetAddress& source);

// A number that no other host can predict.
std::uint64_t random_seed();

// The core over `nic`: tables, congestion control, what its profile permits. Seeds and secrets are
// drawn, except those that FI_UET_SEED gives.
fep::Config fep_config(const Params& params, const nic::Nic& nic, std::uint32_t payload_mtu,
                       std::size_t engine = 0);

}  // namespace uet::prov
