// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Bytes of the three formats. A socket address names an endpoint by one port number (address_at).
#include "settings/address_format.h"

#include <netinet/in.h>
#include <strings.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "compat.h"
#include "nic/interface.h"
#include "nic/socket.h"
#include "settings/params.h"

namespace uet::prov {
namespace {

constexpr std::string_view kSchemeEnd = "://";

bool is_socket_format(std::uint32_t addr_format) {
  return addr_format == FI_SOCKADDR || addr_format == FI_SOCKADDR_IN ||
         addr_format == FI_SOCKADDR_IN6 || addr_format == kSockaddrIp;
}

std::vector<std::byte> bytes_of(const void* data, std::size_t length) {
  const auto* first = static_cast<const std::byte*>(data);
  return {first, first + length};
}

sa_family_t family_of(const void* address, std::size_t length) {
  sa_family_t family = AF_UNSPEC;
  if (length >= sizeof family) std::memcpy(&family, address, sizeof family);
  return family;
}

// Without port: an address to choose one at, or the port of the standard to send to.
std::optional<av::UetAddress> decode_socket(const void* address, std::size_t length) {
  const sa_family_t family = family_of(address, length);
  const bool is_ipv6 = family == AF_INET6;
  if (family != AF_INET && !is_ipv6) return {};
  const std::size_t needed = nic::socket_address_length(is_ipv6);
  if (length < needed) return {};
  nic::SocketAddress socket_address{};
  std::memcpy(&socket_address, address, needed);
  const FepAddress fep = nic::read_socket_address(socket_address);
  if (fep.port != 0) return av::address_at(fep.ip, fep.port, first_udp_port());
  av::UetAddress open;
  open.flags = av::kFabricAddressValid;
  if (is_ipv6) open.flags |= av::kIpv6;
  open.fabric_address = fep.ip;
  return open;
}

std::optional<av::UetAddress> decode_uet(const void* address, std::size_t length) {
  if (length != FI_ADDR_UET_SIZE) return {};
  const auto decoded = av::decode({static_cast<const std::byte*>(address), length});
  if (!decoded || !decoded.value().has(av::kFabricAddressValid)) return {};
  return decoded.value();
}

std::optional<av::UetAddress> decode_text(const void* address, std::size_t length) {
  const std::string_view text(static_cast<const char*>(address), length);
  return address_of_text(text.substr(0, text.find('\0')));
}

// FI_ADDR_STR: the text at `cursor`, or where the pointer there leads to; nullptr: nowhere.
// The seventh byte of a pointer to user memory is 0, and no address text is so short.
const char* text_at(const std::byte* cursor, bool& in_place) {
  const char* text = reinterpret_cast<const char*>(cursor);
  in_place = strnlen(text, 7) == 7;
  if (!in_place) std::memcpy(&text, cursor, sizeof text);
  return text;
}

}  // namespace

std::optional<AddressFormat> AddressFormat::of(std::uint32_t addr_format, bool is_ipv6) {
  if (addr_format == FI_FORMAT_UNSPEC) addr_format = FI_ADDR_UET;
  if (addr_format == FI_ADDR_UET || addr_format == FI_ADDR_STR) {
    return AddressFormat(addr_format, is_ipv6);
  }
  const std::uint32_t of_family = is_ipv6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
  const bool any_family = addr_format == FI_SOCKADDR || addr_format == kSockaddrIp;
  if (!any_family && addr_format != of_family) return {};
  return AddressFormat(of_family, is_ipv6);
}

std::uint32_t AddressFormat::named(const char* name) {
  constexpr std::pair<const char*, std::uint32_t> kNames[] = {
      {"FI_SOCKADDR", FI_SOCKADDR},         {"FI_SOCKADDR_IN", FI_SOCKADDR_IN},
      {"FI_SOCKADDR_IN6", FI_SOCKADDR_IN6}, {"FI_SOCKADDR_IP", kSockaddrIp},
      {"FI_ADDR_STR", FI_ADDR_STR},         {"FI_ADDR_UET", FI_ADDR_UET},
  };
  for (const auto& [known, format] : kNames) {
    if (name != nullptr && strcasecmp(name, known) == 0) return format;
  }
  return FI_FORMAT_UNSPEC;
}

std::uint32_t AddressFormat::recognise(const void* address, std::size_t length) {
  const std::uint32_t candidates[] = {FI_ADDR_STR, FI_SOCKADDR, FI_ADDR_UET};
  for (const std::uint32_t candidate : candidates) {
    if (decode(candidate, address, length)) return candidate;
  }
  return FI_FORMAT_UNSPEC;
}

std::optional<av::UetAddress> AddressFormat::decode(std::uint32_t addr_format, const void* address,
                                                    std::size_t length) {
  if (addr_format == FI_FORMAT_UNSPEC) {
    addr_format = recognise(address, length);
    if (addr_format == FI_FORMAT_UNSPEC) return {};
  }
  if (addr_format == FI_ADDR_STR) return decode_text(address, length);
  if (!is_socket_format(addr_format)) return decode_uet(address, length);
  const auto decoded = decode_socket(address, length);
  if (decoded && !of(addr_format, decoded->fabric_address.is_ipv6)) return {};
  return decoded;
}

std::optional<av::UetAddress> AddressFormat::decode_source(std::uint32_t addr_format,
                                                           const void* address,
                                                           std::size_t length) {
  if (addr_format == FI_ADDR_UET && length == FI_ADDR_UET_SIZE) {
    const auto decoded = av::decode({static_cast<const std::byte*>(address), length});
    if (decoded) return decoded.value();
  }
  return decode(addr_format, address, length);
}

std::vector<FabricAddress> AddressFormat::further(const std::byte* cursor) const {
  if (addr_format_ == FI_ADDR_UET) return av::further_addresses({cursor, FI_ADDR_UET_SIZE});
  bool in_place = false;
  const char* const text = addr_format_ == FI_ADDR_STR ? text_at(cursor, in_place) : nullptr;
  if (text == nullptr) return {};
  return av::further_addresses(std::string_view(text));
}

std::vector<std::byte> AddressFormat::encode(const av::UetAddress& address,
                                             std::span<const FabricAddress> further) const {
  if (addr_format_ == FI_ADDR_UET) {
    const av::AddressBytes bytes = av::encode(address, further);
    return {bytes.begin(), bytes.end()};
  }
  if (addr_format_ == FI_ADDR_STR) {
    const std::string text = av::to_text(address, further);
    return bytes_of(text.c_str(), text.size() + 1);
  }
  nic::SocketAddress socket_address{};
  const std::uint16_t port = av::port_name_of(address, first_udp_port()).value_or(address.udp_port);
  nic::write_socket_address({address.fabric_address, port}, socket_address);
  return bytes_of(&socket_address, nic::socket_address_length(is_ipv6_));
}

std::size_t AddressFormat::most_endpoints() const {
  return is_socket_format(addr_format_) ? av::kPortNamesOfFep : av::kPidsOfFep * kMaxResourceIndex;
}

bool AddressFormat::can_name(const av::UetAddress& address) const {
  return !is_socket_format(addr_format_) || av::port_name_of(address, first_udp_port()).has_value();
}

std::string AddressFormat::to_text(const void* address) const {
  if (addr_format_ == FI_ADDR_STR) return static_cast<const char*>(address);
  if (addr_format_ == FI_ADDR_UET) {
    const auto decoded = av::decode({static_cast<const std::byte*>(address), FI_ADDR_UET_SIZE});
    return decoded ? av::to_text(decoded.value()) : "(not a UET address)";
  }
  nic::SocketAddress socket_address{};
  const std::size_t length = nic::socket_address_length(is_ipv6_);
  std::memcpy(&socket_address, address, length);
  if (!decode(addr_format_, address, length)) return "(not a socket address of this family)";
  return (is_ipv6_ ? "fi_sockaddr_in6://" : "fi_sockaddr_in://") +
         nic::to_text(nic::read_socket_address(socket_address));
}

std::optional<av::UetAddress> AddressFormat::next(const std::byte*& cursor) const {
  std::optional<av::UetAddress> address;
  if (addr_format_ == FI_ADDR_UET) {
    address = decode_uet(cursor, FI_ADDR_UET_SIZE);
    cursor += FI_ADDR_UET_SIZE;
    // SES-150: a native address states its resource index.
    if (address && !address->has(av::kResourceIndexValid)) return {};
  } else if (addr_format_ == FI_ADDR_STR) {
    bool in_place = false;
    const char* const text = text_at(cursor, in_place);
    cursor += in_place ? std::strlen(text) + 1 : sizeof text;
    if (text != nullptr) address = address_of_text(text);
  } else {
    const std::size_t length = nic::socket_address_length(is_ipv6_);
    address = decode(addr_format_, cursor, length);
    cursor += length;
  }
  if (!address || address->fabric_address.is_ipv6 != is_ipv6_) return {};
  address = av::complete(*address, first_udp_port());
  if (!av::check_destination(*address)) return {};
  return address;
}

bool is_address_text(std::string_view text) {
  return text.find(kSchemeEnd) != std::string_view::npos;
}

std::optional<av::UetAddress> address_of_text(std::string_view text) {
  std::string own(text);
  for (const std::string_view scheme : {"fi_sockaddr", "fi_sockaddr_in", "fi_sockaddr_in6"}) {
    if (!text.starts_with(scheme) || !text.substr(scheme.size()).starts_with(kSchemeEnd)) continue;
    own = "fi_addr_uet" + own.substr(scheme.size());
    if (own.find('?') != std::string::npos) return {};
  }
  const auto address = av::from_text(own);
  if (!address) return {};
  return address.value();
}

}  // namespace uet::prov
