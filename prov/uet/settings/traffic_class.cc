// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// libfabric leaves the DSCPs of its labels open; these are what RFC 4594 and RFC 8622 give to
// traffic of that kind.
#include "settings/traffic_class.h"

#include <rdma/fabric.h>

#include <array>

#include "uet/pds/api.h"

namespace uet::prov {
namespace {

constexpr std::array<std::uint8_t, 6> kDscpOfLabel = {
    0,   // FI_TC_BEST_EFFORT: default forwarding
    18,  // FI_TC_LOW_LATENCY: AF21
    32,  // FI_TC_DEDICATED_ACCESS: CS4
    10,  // FI_TC_BULK_DATA: AF11
    1,   // FI_TC_SCAVENGER: lower effort
    48,  // FI_TC_NETWORK_CTRL: CS6
};

}  // namespace

bool is_traffic_class(std::uint32_t tclass) {
  if (tclass == FI_TC_UNSPEC) return true;
  if ((tclass & ~0x3FU) == FI_TC_DSCP) return true;
  return tclass >= FI_TC_LABEL && tclass - FI_TC_LABEL < kDscpOfLabel.size();
}

std::uint8_t traffic_class_of(std::uint32_t tclass) {
  if (!is_traffic_class(tclass) || tclass == FI_TC_UNSPEC) return 0;
  if ((tclass & FI_TC_DSCP) != 0) return pds::class_of_dscp(fi_tc_dscp_get(tclass));
  return pds::class_of_dscp(kDscpOfLabel[tclass - FI_TC_LABEL]);
}

}  // namespace uet::prov
