// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From the names people give, node and service, to addresses; one at a time or in ranges.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "av/address.h"

namespace uet::prov {

// The address or addresses of node:service. `node` is a host name, a number, or an address text
// (address_format.h); nullptr is any address, to listen at (`passive`), or loopback. The service is
// a port name (av::address_at). Without one a destination is at port 4793, and the address of a
// listener leaves port and ids open. `numeric`: node is not looked up. Empty if it cannot be
// resolved; several addresses in the order in which they should be tried.
std::vector<av::UetAddress> resolve(const char* node, const char* service, bool passive,
                                    bool numeric);

// The destinations {node + i}:{service + j}, all services of a node before the next node, as
// fi_av_insertsym(3) counts them: a number as node counts up as such, a host name in the number at
// its end. Addresses are of one family. An element that cannot be resolved is empty.
std::vector<std::optional<av::UetAddress>> resolve_range(const char* node, std::size_t nodes,
                                                         const char* service, std::size_t services,
                                                         bool is_ipv6);

}  // namespace uet::prov
