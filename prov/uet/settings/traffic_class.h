// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// libfabric's traffic classes (fi_endpoint(3), tclass) as DSCPs. Knows no endpoint.
#pragma once

#include <cstdint>

namespace uet::prov {

// FI_TC_UNSPEC, a label that libfabric defines, or a DSCP of 6 bits (fi_tc_dscp_set).
bool is_traffic_class(std::uint32_t tclass);

// The traffic class of PDS (pds::class_of_dscp) for a valid tclass; 0 for FI_TC_UNSPEC, which
// leaves the DSCP to FI_UET_DSCP_DATA and dscp_datagram.
std::uint8_t traffic_class_of(std::uint32_t tclass);

}  // namespace uet::prov
