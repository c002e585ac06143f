// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Bytes and text of a UET address. Decides what a valid address is; knows no table of peers.
#include "av/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "uet/wire/be.h"

namespace uet::av {
namespace {

using wire::be16;
using wire::be32;

constexpr std::string_view kScheme = "fi_addr_uet://";
constexpr std::string_view kRailKey = "rail";
constexpr std::ptrdiff_t kIpv4Bytes = 4;
constexpr std::uint8_t kDefaultFlags = kCapabilitiesValid | kFabricAddressValid | kPidOnFepValid |
                                       kResourceIndexValid | kInitiatorIdValid;
// The profiles of this provider; peers choose protocols by them (SES-151, SES-159).
constexpr std::uint8_t kDefaultCapabilities = kAiBase | kAiFull | kHpc | kOptimizedNonMatching;

// WIRE 4.2, the UDP port in the two spare bytes.
struct AddressForm {
  std::uint8_t version = 0;
  std::uint8_t flags = 0;
  std::uint8_t capabilities = 0;
  std::uint8_t reserved = 0;
  std::array<std::uint8_t, 16> fabric_address{};
  be16 pid_on_fep;
  be16 start_resource_index;
  be16 num_resource_indices;
  be16 udp_port;
  be32 initiator_id;
};
static_assert(sizeof(AddressForm) == UetAddress::kBytes && alignof(AddressForm) == 1);

std::optional<std::uint32_t> parse_number(std::string_view text, std::uint32_t limit) {
  int base = 10;
  if (text.starts_with("0x")) {
    base = 16;
    text.remove_prefix(2);
  }
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size() || value > limit) return {};
  return value;
}

std::optional<FabricAddress> parse_ip(std::string_view text, bool is_ipv6) {
  FabricAddress ip;
  ip.is_ipv6 = is_ipv6;
  const std::string terminated(text);
  const int family = is_ipv6 ? AF_INET6 : AF_INET;
  if (inet_pton(family, terminated.c_str(), ip.bytes.data()) != 1) return {};
  return ip;
}

// Sets the member named `key`; false if there is none or the value does not fit.
bool set_parameter(UetAddress& address, std::string_view key, std::string_view text) {
  if (key == kRailKey) return parse_ip(text, false).has_value();  // further_addresses() reads it
  const auto value = parse_number(text, UINT32_MAX);
  if (!value) return false;
  const auto take = [&](std::uint32_t limit, AddressFlag flag) {
    if (*value > limit) return false;
    address.flags |= flag;
    return true;
  };
  if (key == "pid") {
    address.pid_on_fep.value = static_cast<std::uint16_t>(*value);
    return take(kMaxPidOnFep, kPidOnFepValid);
  }
  if (key == "ri") {
    address.start_resource_index.value = static_cast<std::uint16_t>(*value);
    address.num_resource_indices = std::max<std::uint16_t>(1, address.num_resource_indices);
    return take(kMaxResourceIndex, kResourceIndexValid);
  }
  if (key == "n") {
    address.num_resource_indices = static_cast<std::uint16_t>(*value);
    return *value <= UINT16_MAX;
  }
  if (key == "init") {
    address.initiator_id.value = *value;
    return take(UINT32_MAX, kInitiatorIdValid);
  }
  if (key == "caps") {
    address.capabilities = static_cast<std::uint8_t>(*value);
    return take(UINT8_MAX, kCapabilitiesValid);
  }
  if (key == "abs" || key == "onemtu") {
    if (*value > 1) return false;
    return *value == 0 || take(1, key == "abs" ? kAbsolute : kOneMtu);
  }
  return false;
}

// "host[:port]" in front of the parameters.
bool parse_authority(UetAddress& address, std::string_view text) {
  const bool is_ipv6 = text.starts_with('[');
  std::string_view host;
  if (is_ipv6) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return false;
    host = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
  } else {
    const std::size_t end = std::min(text.find(':'), text.size());
    host = text.substr(0, end);
    text.remove_prefix(end);
  }
  const auto ip = parse_ip(host, is_ipv6);
  if (!ip) return false;
  address.fabric_address = *ip;
  address.flags |= kFabricAddressValid;
  if (is_ipv6) address.flags |= kIpv6;
  if (text.empty()) return true;
  if (!text.starts_with(':')) return false;
  const auto port = parse_number(text.substr(1), UINT16_MAX);
  if (!port) return false;
  address.udp_port = static_cast<std::uint16_t>(*port);
  return true;
}

}  // namespace

AddressBytes encode(const UetAddress& address, std::span<const FabricAddress> further) {
  AddressForm form;
  form.version = static_cast<std::uint8_t>(address.version << 4);
  form.flags = address.flags;
  form.capabilities = address.capabilities;
  form.fabric_address = address.fabric_address.bytes;
  if (!further.empty() && !address.fabric_address.is_ipv6) {
    form.capabilities |= kRails;
    auto to = form.fabric_address.begin();
    for (const FabricAddress& each : further.first(std::min(further.size(), kMostFurtherAddresses)))
      std::copy_n(each.bytes.begin(), kIpv4Bytes, to += kIpv4Bytes);
  }
  form.pid_on_fep = address.pid_on_fep.value;
  form.start_resource_index = address.start_resource_index.value;
  form.num_resource_indices = address.num_resource_indices;
  form.udp_port = address.udp_port;
  form.initiator_id = address.initiator_id.value;
  AddressBytes bytes;
  wire::store(bytes.data(), form);
  return bytes;
}

Result<UetAddress> decode(std::span<const std::byte> bytes) {
  if (bytes.size() < UetAddress::kBytes) return Error::Invalid;
  const auto form = wire::load<AddressForm>(bytes);
  UetAddress address;
  address.version = form.version >> 4;
  if (address.version > UetAddress::kVersion) return Error::Invalid;
  address.flags = form.flags;
  if (address.has(kCapabilitiesValid)) address.capabilities = form.capabilities & ~kRails;
  if (address.has(kFabricAddressValid)) {
    address.fabric_address.is_ipv6 = address.has(kIpv6);
    const std::ptrdiff_t length = address.has(kIpv6) ? 16 : kIpv4Bytes;
    std::copy_n(form.fabric_address.begin(), length, address.fabric_address.bytes.begin());
    address.udp_port = form.udp_port;
  }
  if (address.has(kPidOnFepValid)) {
    if (form.pid_on_fep > kMaxPidOnFep) return Error::Invalid;
    address.pid_on_fep.value = form.pid_on_fep;
  }
  if (address.has(kResourceIndexValid)) {
    if (form.start_resource_index > kMaxResourceIndex) return Error::Invalid;
    address.start_resource_index.value = form.start_resource_index;
    address.num_resource_indices = form.num_resource_indices;
  }
  if (address.has(kInitiatorIdValid)) address.initiator_id.value = form.initiator_id;
  return address;
}

std::vector<FabricAddress> further_addresses(std::span<const std::byte> bytes) {
  std::vector<FabricAddress> further;
  if (bytes.size() < UetAddress::kBytes) return further;
  const auto form = wire::load<AddressForm>(bytes);
  constexpr std::uint8_t kWanted = kCapabilitiesValid | kFabricAddressValid;
  if ((form.flags & (kWanted | kIpv6)) != kWanted || (form.capabilities & kRails) == 0)
    return further;
  for (auto at = form.fabric_address.begin() + kIpv4Bytes; at != form.fabric_address.end();
       at += kIpv4Bytes) {
    FabricAddress ip;
    std::copy_n(at, kIpv4Bytes, ip.bytes.begin());
    if (!ip.is_wildcard()) further.push_back(ip);
  }
  return further;
}

Result<void> check_destination(const UetAddress& address) {
  const bool complete = address.has(kFabricAddressValid) && address.has(kResourceIndexValid);
  if (!complete || address.fabric_address.bytes == FabricAddress{}.bytes) return Error::Invalid;
  return {};
}

std::string to_text(const UetAddress& address) {
  char ip[INET6_ADDRSTRLEN] = "";
  const bool is_ipv6 = address.fabric_address.is_ipv6;
  inet_ntop(is_ipv6 ? AF_INET6 : AF_INET, address.fabric_address.bytes.data(), ip, sizeof ip);
  std::string text(kScheme);
  text += is_ipv6 ? "[" + std::string(ip) + "]" : std::string(ip);
  text += ":" + std::to_string(address.udp_port);
  char separator = '?';
  const auto parameter = [&](std::string_view key, std::uint32_t value) {
    text += separator;
    text += key;
    text += "=" + std::to_string(value);
    separator = '&';
  };
  if (address.has(kPidOnFepValid)) parameter("pid", address.pid_on_fep.value);
  if (address.has(kResourceIndexValid)) {
    parameter("ri", address.start_resource_index.value);
    parameter("n", address.num_resource_indices);
  }
  if (address.has(kInitiatorIdValid)) parameter("init", address.initiator_id.value);
  if (address.has(kCapabilitiesValid)) parameter("caps", address.capabilities);
  if (address.has(kAbsolute)) parameter("abs", 1);
  if (address.has(kOneMtu)) parameter("onemtu", 1);
  return text;
}

std::string to_text(const UetAddress& address, std::span<const FabricAddress> further) {
  std::string text = to_text(address);
  for (const FabricAddress& each : further) {
    char ip[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, each.bytes.data(), ip, sizeof ip);
    text += (text.find('?') == std::string::npos ? '?' : '&') + std::string(kRailKey) + "=" + ip;
  }
  return text;
}

std::vector<FabricAddress> further_addresses(std::string_view text) {
  std::vector<FabricAddress> further;
  for (std::size_t at = text.find_first_of("?&"); at != std::string_view::npos;
       at = text.find('&', at + 1)) {
    const std::string_view item = text.substr(at + 1, text.find('&', at + 1) - at - 1);
    if (!item.starts_with(kRailKey) || !item.substr(kRailKey.size()).starts_with('=')) continue;
    const auto ip = parse_ip(item.substr(kRailKey.size() + 1), false);
    if (ip && further.size() < kMostFurtherAddresses) further.push_back(*ip);
  }
  return further;
}

Result<UetAddress> from_text(std::string_view text) {
  if (!is_text_form(text)) return Error::Invalid;
  text.remove_prefix(kScheme.size());
  const std::size_t question = std::min(text.find('?'), text.size());
  UetAddress address;
  if (!parse_authority(address, text.substr(0, question))) return Error::Invalid;
  text.remove_prefix(question);
  while (!text.empty()) {
    text.remove_prefix(1);  // '?' or '&'
    const std::string_view item = text.substr(0, text.find('&'));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) return Error::Invalid;
    if (!set_parameter(address, item.substr(0, equals), item.substr(equals + 1))) {
      return Error::Invalid;
    }
    text.remove_prefix(item.size());
  }
  return address;
}

bool is_text_form(std::string_view text) { return text.starts_with(kScheme); }

PidOnFep default_pid_on_fep(std::uint16_t udp_port) {
  if (const auto slot = slot_of_port(udp_port)) return {*slot};
  if (udp_port < kUetUdpPort || udp_port > kUetLastUdpPort) return {0};
  return {static_cast<std::uint16_t>(udp_port - kUetUdpPort)};
}

PidOnFep pid_of_step(PidOnFep own, std::size_t step) {
  return {static_cast<std::uint16_t>((own.value + step * kSharedSlots) & kMaxPidOnFep)};
}

InitiatorId default_initiator(const FepAddress& fep, ResourceIndex index) {
  FepAddress salted = fep;
  salted.port = static_cast<std::uint16_t>(salted.port ^ (index.value << 4));
  const std::size_t hash = FepAddressHash{}(salted);
  return {static_cast<std::uint32_t>(hash ^ (hash >> 32))};
}

InitiatorId default_initiator(const FepAddress& fep, PidOnFep pid, ResourceIndex index) {
  const InitiatorId own = default_initiator(fep, index);
  if (pid == default_pid_on_fep(fep.port)) return own;
  return {own.value ^ (pid.value + 1U) * 0x9E3779B1U};
}

UetAddress default_address(const FepAddress& fep, ResourceIndex index) {
  UetAddress address;
  address.flags = kDefaultFlags;
  address.capabilities = kDefaultCapabilities;
  if (fep.ip.is_ipv6) address.flags |= kIpv6;
  address.fabric_address = fep.ip;
  address.udp_port = fep.port;
  address.pid_on_fep = default_pid_on_fep(fep.port);
  address.start_resource_index = index;
  address.num_resource_indices = 1;
  address.initiator_id = default_initiator(fep, index);
  return address;
}

UetAddress default_address(const FepAddress& fep, PidOnFep pid, ResourceIndex index) {
  UetAddress address = default_address(fep, index);
  address.pid_on_fep = pid;
  address.initiator_id = default_initiator(fep, pid, index);
  return address;
}

UetAddress address_at(const FabricAddress& ip, std::uint16_t port_name, std::uint16_t first) {
  if (port_name == 0) port_name = first;
  const auto offset = static_cast<std::uint16_t>(port_name - first);
  const auto udp_port = static_cast<std::uint16_t>(first + offset % kUetUdpPorts);
  const auto index = static_cast<std::uint16_t>(kFirstResourceIndex.value + offset / kUetUdpPorts);
  return default_address({ip, udp_port}, {index});
}

std::optional<std::uint16_t> port_name_of(const UetAddress& address, std::uint16_t first) {
  const FepAddress fep = address.fep();
  const unsigned step = address.start_resource_index.value - kFirstResourceIndex.value;
  const auto name = static_cast<std::uint16_t>(fep.port + step * kUetUdpPorts);
  const UetAddress named = address_at(fep.ip, name, first);
  const bool same = name != 0 && named.udp_port == fep.port && !address.has(kAbsolute) &&
                    named.start_resource_index == address.start_resource_index &&
                    named.pid_on_fep == address.pid_on_fep &&
                    named.initiator_id == address.initiator_id;
  return same ? std::optional(name) : std::nullopt;
}

UetAddress complete(UetAddress address, std::uint16_t first) {
  if (!address.has(kResourceIndexValid)) {
    const UetAddress named = address_at(address.fabric_address, address.udp_port, first);
    address.udp_port = named.udp_port;
    address.start_resource_index = named.start_resource_index;
    address.num_resource_indices = 1;
  }
  if (!address.has(kCapabilitiesValid)) address.capabilities = kDefaultCapabilities;
  const FepAddress fep = address.fep();
  address.udp_port = fep.port;
  if (!address.has(kPidOnFepValid)) address.pid_on_fep = default_pid_on_fep(fep.port);
  if (!address.has(kInitiatorIdValid)) {
    address.initiator_id = default_initiator(fep, address.start_resource_index);
  }
  address.flags |= kDefaultFlags;
  if (address.fabric_address.is_ipv6) address.flags |= kIpv6;
  return address;
}

UetAddress address_of_source(const FepAddress& fep, InitiatorId initiator) {
  for (std::size_t step = 0; step < kPidsOfFep; ++step) {
    const PidOnFep pid = pid_of_step(default_pid_on_fep(fep.port), step);
    for (std::uint16_t index = kFirstResourceIndex.value; index <= kMaxResourceIndex; ++index) {
      if (default_initiator(fep, pid, {index}) == initiator) {
        return default_address(fep, pid, {index});
      }
    }
  }
  UetAddress address = default_address(fep);
  address.initiator_id = initiator;
  address.start_resource_index = {};
  address.num_resource_indices = 0;
  address.flags &= static_cast<std::uint8_t>(~kResourceIndexValid);
  return address;
}

}  // namespace uet::av
