// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// getaddrinfo knows hosts and services; what a port number means to UET is av::address_at's matter.
#include "settings/names.h"

#include <arpa/inet.h>
#include <netdb.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <string>

#include "nic/socket.h"
#include "settings/address_format.h"
#include "settings/params.h"

namespace uet::prov {
namespace {

std::vector<av::UetAddress> resolve_text(const char* text, const char* service, bool passive) {
  auto address = address_of_text(text);
  if (!address) return {};
  if (service != nullptr) {
    if (address->udp_port != 0) return {};  // said twice
    const auto ports = resolve(nullptr, service, false, true);
    if (ports.empty()) return {};
    address->udp_port = av::port_name_of(ports.front(), first_udp_port()).value_or(0);
  }
  const bool open = passive && address->udp_port == 0;
  return {open ? *address : av::complete(*address, first_udp_port())};
}

av::UetAddress address_of(const FepAddress& fep, bool passive) {
  if (!passive || fep.port != 0) return av::address_at(fep.ip, fep.port, first_udp_port());
  av::UetAddress open;
  open.flags = av::kFabricAddressValid;
  if (fep.ip.is_ipv6) open.flags |= av::kIpv6;
  open.fabric_address = fep.ip;
  return open;
}

// The same host `step` further on; empty if there is no such name.
std::optional<std::string> next_node(const std::string& node, std::size_t step) {
  if (step == 0) return node;
  unsigned char ip[16];
  for (const int family : {AF_INET, AF_INET6}) {
    if (inet_pton(family, node.c_str(), ip) != 1) continue;
    const std::size_t length = family == AF_INET ? 4 : 16;
    for (std::size_t i = length; i-- > 0 && step > 0; step >>= 8) {
      step += ip[i];
      ip[i] = static_cast<unsigned char>(step);
    }
    char text[INET6_ADDRSTRLEN];
    if (step > 0 || inet_ntop(family, ip, text, sizeof text) == nullptr) return {};
    return text;
  }
  const std::size_t digits = node.find_last_not_of("0123456789") + 1;  // npos + 1 is 0
  std::uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(node.data() + digits, node.data() + node.size(), number);
  if (error != std::errc{} || digits == 0) return {};
  std::string next = std::to_string(number + step);
  const std::size_t width = node.size() - digits;
  if (next.size() < width) next.insert(0, width - next.size(), '0');
  return node.substr(0, digits) + next;
}

}  // namespace

std::vector<av::UetAddress> resolve(const char* node, const char* service, bool passive,
                                    bool numeric) {
  if (node != nullptr && is_address_text(node)) return resolve_text(node, service, passive);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = (passive ? AI_PASSIVE : 0) | (numeric ? AI_NUMERICHOST : 0);
  addrinfo* list = nullptr;
  if (getaddrinfo(node, service, &hints, &list) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  std::vector<av::UetAddress> addresses;
  for (const addrinfo* item = list; item != nullptr; item = item->ai_next) {
    if (item->ai_family != AF_INET && item->ai_family != AF_INET6) continue;
    nic::SocketAddress socket_address{};
    std::memcpy(&socket_address, item->ai_addr,
                std::min<std::size_t>(item->ai_addrlen, sizeof socket_address));
    const auto address = address_of(nic::read_socket_address(socket_address), passive);
    if (std::find(addresses.begin(), addresses.end(), address) == addresses.end()) {
      addresses.push_back(address);
    }
  }
  return addresses;
}

std::vector<std::optional<av::UetAddress>> resolve_range(const char* node, std::size_t nodes,
                                                         const char* service, std::size_t services,
                                                         bool is_ipv6) {
  std::vector<std::optional<av::UetAddress>> all;
  all.reserve(nodes * services);
  for (std::size_t i = 0; i < nodes; ++i) {
    const auto name = next_node(node, i);
    std::optional<av::UetAddress> first;
    if (name) {
      const auto found = resolve(name->c_str(), service, false, false);
      const auto fitting = std::find_if(found.begin(), found.end(), [&](const auto& address) {
        return address.fabric_address.is_ipv6 == is_ipv6;
      });
      if (fitting != found.end()) first = *fitting;
    }
    // Without a port there is no next one. (An optional here has g++ 12 warn at -O3.)
    constexpr std::size_t kLastPort = 0xFFFF;
    const std::size_t port =
        first ? av::port_name_of(*first, first_udp_port()).value_or(std::uint16_t{kLastPort})
              : kLastPort;
    for (std::size_t j = 0; j < services; ++j) {
      if (j == 0) {
        all.push_back(first);
      } else if (port + j <= kLastPort) {
        all.push_back(av::address_at(first->fabric_address, static_cast<std::uint16_t>(port + j),
                                     first_udp_port()));
      } else {
        all.emplace_back();
      }
    }
  }
  return all;
}

}  // namespace uet::prov
