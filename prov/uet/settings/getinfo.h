// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Discovery: what this host can offer, measured against what the application wants.
#pragma once

#include <rdma/fabric.h>

#include <vector>

#include "nic/interface.h"
#include "settings/hints.h"
#include "settings/params.h"

namespace uet::prov {

// fi_provider.getinfo: fi_getinfo(3).
int prov_getinfo(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
                 const fi_info* hints, fi_info** info) noexcept;

// One way to reach the network: an interface with one of its addresses.
struct Offer {
  nic::Interface interface;
  nic::InterfaceAddress address;
  std::uint32_t payload_mtu = 0;  // bytes
};

// The interfaces that parameters allow, scanned at most every 200 ms unless `rescan` is set. Empty
// after a warning if there are none, or if FI_UET_IFACE names one that does not exist.
std::vector<nic::Interface> usable_interfaces(const Params& params, bool rescan = false);

// The interfaces that "a" or "a+b" names, in this order; empty if one is not among `interfaces`.
std::vector<nic::Interface> interfaces_named(const std::vector<nic::Interface>& interfaces,
                                             const std::string& names);
std::optional<FabricAddress> first_ipv4(const nic::Interface& interface);

// Payload of a full packet over an interface of this MTU: FI_UET_PAYLOAD_MTU, else what fits.
// 0 if the interface is too small for it.
std::uint32_t payload_mtu(const Params& params, std::uint32_t ip_mtu);

// Maxima and defaults of one endpoint of a domain with this payload MTU.
Limits limits_for(const Params& params, std::uint32_t payload_mtu, const EndpointType& type);

}  // namespace uet::prov
