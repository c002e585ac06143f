// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What this machine gives to the provider: interfaces, UDP ports, socket buffers, rights.
#pragma once

#include <rdma/fabric.h>

#include <string>
#include <vector>

#include "report.h"

namespace uet::doctor {

// One interface address that the provider offers.
struct LocalAddress {
  std::string interface;
  std::string host;  // numeric
  bool loopback = false;
  bool ipv6 = false;
};

std::vector<LocalAddress> examine_interfaces(Report& report, const fi_info& infos);
void examine_ports(Report& report, const std::vector<LocalAddress>& addresses);
void examine_buffers(Report& report);
void examine_rights(Report& report);

}  // namespace uet::doctor
