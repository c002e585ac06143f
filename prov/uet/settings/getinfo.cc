// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From node, service, flags and hints to a list of fi_info: one per interface and address family,
// loopback last, named the same whether or not addresses were given.
#include "settings/getinfo.h"

#include <strings.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>

#include "compat.h"
#include "fep/config.h"
#include "hmem/devices.h"
#include "nic/registry.h"
#include "provider.h"
#include "settings/address_format.h"
#include "settings/hints.h"
#include "settings/info_ptr.h"
#include "settings/names.h"
#include "settings/nic_attr.h"
#include "tss/clear_fields.h"

namespace uet::prov {
namespace {

constexpr std::size_t kMaxInjectSize = 4096;

// A pair of addresses that one or more infos shall have; either may be open.
struct Wanted {
  std::optional<av::UetAddress> source;
  std::optional<av::UetAddress> destination;
};

std::vector<nic::Interface> scan_interfaces(bool rescan) {
  using Clock = std::chrono::steady_clock;
  static std::mutex mutex;
  // Never destroyed: other threads may still be in here when the process ends.
  static std::vector<nic::Interface>& interfaces = *new std::vector<nic::Interface>;
  static Clock::time_point scanned;
  const std::lock_guard lock(mutex);
  const auto now = Clock::now();
  if (rescan || interfaces.empty() || now - scanned > std::chrono::milliseconds(200)) {
    std::string message;
    auto result = nic::list_interfaces(message);
    if (!result) {
      FI_WARN(&provider, FI_LOG_CORE, "%s\n", message.c_str());
      return {};
    }
    interfaces = std::move(result).value();
    scanned = now;
  }
  return interfaces;
}

std::vector<std::string> split(const std::string& list, char separator) {
  std::vector<std::string> names;
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t end = std::min(list.find(separator, start), list.size());
    if (end > start) names.push_back(list.substr(start, end - start));
    start = end + 1;
  }
  return names;
}

// Several interfaces as one, with the IPv4 addresses of the first (rails). Nothing if one is not
// there, has no IPv4 address, or is the loopback interface.
std::optional<nic::Interface> joined(const std::vector<nic::Interface>& members,
                                     const std::string& name) {
  nic::Interface all = members[0];
  all.name = name;
  all.link_rate_bps = 0;
  for (const nic::Interface& member : members) {
    if (member.loopback || !first_ipv4(member)) return {};
    all.mtu = std::min(all.mtu, member.mtu);
    all.link_rate_bps += member.link_rate_bps;
    all.link_up |= member.link_up;
  }
  std::erase_if(all.addresses, [](const auto& address) { return address.ip.is_ipv6; });
  return all;
}

// The interfaces that FI_UET_IFACE names, or all. "a+b" gives the two as one, before all others.
std::vector<nic::Interface> chosen_interfaces(const Params& params, bool rescan) {
  auto interfaces = scan_interfaces(rescan);
  if (params.iface.empty()) return interfaces;
  std::vector<nic::Interface> chosen;
  std::set<int> named;
  const auto items = split(params.iface, ',');
  bool valid = !items.empty();
  for (const std::string& item : items) {
    const auto members = interfaces_named(interfaces, item);
    valid &= !members.empty() && members.size() <= 1 + kMostFurtherAddresses;
    for (const nic::Interface& member : members) named.insert(member.index);
    if (!valid || members.size() < 2) continue;
    const auto all = joined(members, item);
    valid &= all.has_value();
    if (all) chosen.push_back(*all);
  }
  for (const auto& interface : interfaces) {
    if (named.contains(interface.index)) chosen.push_back(interface);
  }
  if (valid) return chosen;
  std::string there;
  for (const auto& interface : interfaces) there += " " + interface.name;
  FI_WARN(&provider, FI_LOG_CORE,
          "FI_UET_IFACE=%s is not valid; allowed: usable interfaces, which are%s; with + two to "
          "four of them that have IPv4 addresses\n",
          params.iface.c_str(), there.empty() ? " none" : there.c_str());
  return {};
}

// The interfaces that the back end can use, each with its MTU under that back end.
std::vector<nic::Interface> carried_by(const std::string& back_end,
                                       std::vector<nic::Interface> interfaces) {
  nic::NicConfig config;
  nic::set_back_end(config, back_end);
  std::string why;
  std::erase_if(interfaces, [&](nic::Interface& interface) {
    std::string message;
    const auto mtu = nic::ip_mtu_on(config, interface, message);
    if (mtu) interface.mtu = mtu.value();
    if (!mtu) why = message;
    return !mtu;
  });
  if (interfaces.empty() && !why.empty()) FI_WARN(&provider, FI_LOG_CORE, "%s\n", why.c_str());
  return interfaces;
}

bool same_name(const char* asked, const std::string& ours) {
  return asked == nullptr || strcasecmp(asked, ours.c_str()) == 0;
}

// The format in which the application speaks of addresses: as stated, or as those in the hints are,
// or as FI_ADDR_FORMAT says.
std::uint32_t wanted_format(const fi_info* hints) {
  const std::uint32_t preset = AddressFormat::named(std::getenv("FI_ADDR_FORMAT"));
  if (hints == nullptr) return preset;
  std::uint32_t format = hints->addr_format;
  if (format == FI_FORMAT_UNSPEC && hints->src_addr != nullptr) {
    format = AddressFormat::recognise(hints->src_addr, hints->src_addrlen);
  }
  if (format == FI_FORMAT_UNSPEC && hints->dest_addr != nullptr) {
    format = AddressFormat::recognise(hints->dest_addr, hints->dest_addrlen);
  }
  return format != FI_FORMAT_UNSPEC ? format : preset;
}

std::optional<Wanted> wanted_by_hints(const fi_info* hints) {
  Wanted wanted;
  if (hints == nullptr) return wanted;
  if (hints->src_addr != nullptr) {
    wanted.source =
        AddressFormat::decode_source(hints->addr_format, hints->src_addr, hints->src_addrlen);
    if (!wanted.source) return {};
  }
  if (hints->dest_addr != nullptr) {
    wanted.destination =
        AddressFormat::decode(hints->addr_format, hints->dest_addr, hints->dest_addrlen);
    if (!wanted.destination) return {};
  }
  return wanted;
}

// All address pairs that the call asks for; empty if something cannot be resolved.
std::vector<Wanted> wanted_addresses(const char* node, const char* service, std::uint64_t flags,
                                     const fi_info* hints) {
  const auto base = wanted_by_hints(hints);
  if (!base) {
    FI_INFO(&provider, FI_LOG_CORE, "an address in the hints is not one of their addr_format\n");
    return {};
  }
  if (node == nullptr && service == nullptr) return {*base};
  const bool is_source = (flags & FI_SOURCE) != 0;
  std::vector<Wanted> all;
  if (is_source && node == nullptr) {
    // Any local address, but this port: one pair for both families keeps loopback last.
    const auto addresses = resolve(nullptr, service, true, true);
    if (addresses.empty()) return {};
    Wanted wanted = *base;
    wanted.source = addresses.front();
    wanted.source->flags &= static_cast<std::uint8_t>(~av::kFabricAddressValid);
    return {wanted};
  }
  for (const auto& address : resolve(node, service, is_source, (flags & FI_NUMERICHOST) != 0)) {
    Wanted wanted = *base;
    (is_source ? wanted.source : wanted.destination) = address;
    all.push_back(wanted);
  }
  if (all.empty()) {
    FI_INFO(&provider, FI_LOG_CORE, "cannot resolve node %s service %s\n",
            node != nullptr ? node : "(none)", service != nullptr ? service : "(none)");
  }
  return all;
}

// The local addresses that serve one wanted pair, of the destination's family if there is one.
std::vector<Offer> offers_for(const Wanted& wanted, const std::vector<nic::Interface>& interfaces) {
  std::optional<FabricAddress> local;
  if (wanted.source && wanted.destination && wanted.source->has(av::kFabricAddressValid) &&
      wanted.source->fabric_address.is_ipv6 != wanted.destination->fabric_address.is_ipv6) {
    FI_INFO(&provider, FI_LOG_CORE,
            "fi_getinfo: src_addr and dest_addr: one is IPv6, one is not\n");
    return {};
  }
  if (wanted.source && !wanted.source->fabric_address.is_wildcard()) {
    local = wanted.source->fabric_address;
  } else if (wanted.destination) {
    const auto route = nic::source_address_for(wanted.destination->fabric_address);
    if (!route) {
      FI_INFO(&provider, FI_LOG_CORE, "fi_getinfo: no route leads to %s\n",
              nic::to_text(wanted.destination->fabric_address).c_str());
      return {};
    }
    local = route.value();
  }
  std::vector<Offer> offers;
  if (local) {
    // Rails have the address of their first interface, which has it too.
    for (const auto& interface : interfaces) {
      if (nic::interface_of({interface}, *local) == nullptr) continue;
      // The subnet is that of the interface's own address of this family which contains `local`.
      std::optional<Offer> offer;
      for (const auto& address : interface.addresses) {
        if (address.ip.is_ipv6 != local->is_ipv6) continue;
        if (address.ip == *local || !offer) {
          offer = {interface, {*local, address.prefix_length}, 0};
        }
      }
      if (offer) offers.push_back(*offer);
      if (interface.name.find('+') == std::string::npos) break;
    }
    if (offers.empty()) {
      FI_INFO(
          &provider, FI_LOG_CORE,
          "fi_getinfo: %s is no address of an interface that FI_UET_IFACE and FI_UET_NIC allow\n",
          nic::to_text(*local).c_str());
    }
    return offers;
  }
  for (const auto& interface : interfaces) {
    for (const bool is_ipv6 : {false, true}) {
      if (wanted.source && wanted.source->has(av::kFabricAddressValid) &&
          wanted.source->fabric_address.is_ipv6 != is_ipv6) {
        continue;
      }
      const auto& list = interface.addresses;
      const auto first = std::find_if(list.begin(), list.end(), [&](const auto& address) {
        return address.ip.is_ipv6 == is_ipv6;
      });
      if (first != list.end()) offers.push_back({interface, *first, 0});
    }
  }
  return offers;
}

// Of what one interface offers, or several, the part that a provider which links us (FI_PEER)
// should use at the same time: it takes all that it gets. One address of each interface, and no
// loopback beside others, because its address would name another host's loopback there. Not where
// an interface is named.
void leave_to_a_link(std::vector<Offer>& offers, const fi_info* hints) {
  std::set<int> taken;
  std::erase_if(offers,
                [&](const Offer& offer) { return !taken.insert(offer.interface.index).second; });
  const bool named = hints->domain_attr != nullptr && hints->domain_attr->name != nullptr;
  const bool only_loopback = std::all_of(
      offers.begin(), offers.end(), [](const Offer& offer) { return offer.interface.loopback; });
  if (!named && !only_loopback) {
    std::erase_if(offers, [](const Offer& offer) { return offer.interface.loopback; });
  }
}

void set_address(void*& to, std::size_t& length, const std::vector<std::byte>& address) {
  to = std::malloc(address.size());
  if (to == nullptr) throw std::bad_alloc();
  std::memcpy(to, address.data(), address.size());
  length = address.size();
}

// The address with which endpoints of `offer` start. Without a port their names are not known yet.
av::UetAddress source_at(const Offer& offer, const std::optional<av::UetAddress>& wanted) {
  av::UetAddress source = wanted.value_or(av::UetAddress{});
  if (source.fabric_address.is_wildcard()) {
    if (const auto name = av::port_name_of(source, first_udp_port());
        name && source.has(av::kInitiatorIdValid)) {
      return av::address_at(offer.address.ip, *name, first_udp_port());
    }
    source.fabric_address = offer.address.ip;
    source.flags &= static_cast<std::uint8_t>(~av::kIpv6);
  }
  source.flags |= av::kFabricAddressValid;
  if (source.fabric_address.is_ipv6) source.flags |= av::kIpv6;
  return source.udp_port != 0 ? av::complete(source, first_udp_port()) : source;
}

std::string security_text(const Params& params) {
  const bool trims = params.tss != TssMode::Off && params.core.cms.trimming;
  return std::string(name_of(params.tss)) + (trims ? ", FI_UET_CC_TRIMMING has no effect" : "");
}

// Empty if the addresses cannot be written in this format.
InfoPtr make_info(const Offer& offer, const Wanted& wanted, const AddressFormat& format,
                  const fi_info* hints, std::uint32_t version, const Limits& limits,
                  const Params& params) {
  const av::UetAddress source = source_at(offer, wanted.source);
  const bool nameable = (source.udp_port == 0 || format.can_name(source)) &&
                        (!wanted.destination || format.can_name(*wanted.destination));
  const std::size_t endpoints =
      hints != nullptr && hints->domain_attr != nullptr ? hints->domain_attr->ep_cnt : 0;
  if (!nameable || endpoints > format.most_endpoints()) {
    FI_INFO(&provider, FI_LOG_CORE, "addr_format cannot express the address or all endpoints\n");
    return {};
  }
  InfoPtr info(fi_allocinfo());
  if (info == nullptr) throw std::bad_alloc();
  fill_attributes(*info, hints, version, limits);
  info->addr_format = format.addr_format();
  info->domain_attr->ep_cnt = std::min(info->domain_attr->ep_cnt, format.most_endpoints());
  info->fabric_attr->name = duplicate(offer.address.subnet().c_str());
  info->domain_attr->name = duplicate(offer.interface.name.c_str());
  info->nic = make_nic(offer.interface, params.nic, security_text(params));
  set_address(info->src_addr, info->src_addrlen, format.encode(source));
  if (wanted.destination) {
    set_address(info->dest_addr, info->dest_addrlen, format.encode(*wanted.destination));
  }
  return info;
}

void tell_refusal(const Offer& offer, const char* attribute) {
  FI_INFO(&provider, FI_LOG_CORE, "%s, %s does not meet the hints: %s\n",
          offer.interface.name.c_str(), nic::to_text(offer.address.ip).c_str(), attribute);
}

bool fits_hints(const Offer& offer, const fi_info* hints, std::uint32_t version,
                const Limits& limits) {
  if (hints == nullptr) return true;
  const char* why = refuse_hints(*hints, version, limits);
  if (why != nullptr) {
    tell_refusal(offer, why);
    return false;
  }
  if (hints->domain_attr != nullptr && !same_name(hints->domain_attr->name, offer.interface.name)) {
    tell_refusal(offer, "domain_attr.name");
    return false;
  }
  if (hints->fabric_attr != nullptr &&
      !same_name(hints->fabric_attr->name, offer.address.subnet())) {
    tell_refusal(offer, "fabric_attr.name");
    return false;
  }
  return true;
}

// TSS-61: as SecureNic subtracts.
std::uint32_t security_bytes(const Params& params) {
  return params.tss == TssMode::Off ? 0 : std::uint32_t{tss::overhead_bytes(true)};
}

struct Question {
  std::uint32_t version;
  const fi_info* hints;
  const Params& params;
  const std::vector<nic::Interface>& interfaces;
  bool device_memory;
};

// Appends the infos of one endpoint type to the list from `first` to `last`.
void add_infos(const Question& question, const std::vector<Wanted>& addresses,
               const EndpointType& type, InfoPtr& first, fi_info*& last) {
  const auto& [version, hints, params, interfaces, device_memory] = question;
  const std::uint32_t addr_format = wanted_format(hints);
  const bool peer = hints != nullptr && (hints->caps & FI_PEER) != 0;
  for (const Wanted& wanted : addresses) {
    auto offers = offers_for(wanted, interfaces);
    if (peer) leave_to_a_link(offers, hints);
    for (Offer& offer : offers) {
      const auto format = AddressFormat::of(addr_format, offer.address.ip.is_ipv6);
      if (!format) {
        tell_refusal(offer, "addr_format");
        continue;
      }
      const std::uint32_t mtu = offer.interface.mtu;
      offer.payload_mtu = payload_mtu(params, mtu - std::min(mtu, security_bytes(params)));
      Limits limits = limits_for(params, offer.payload_mtu, type);
      limits.device_memory = device_memory;
      if (offer.payload_mtu == 0) {
        tell_refusal(offer, "FI_UET_PAYLOAD_MTU is more than its MTU carries");
        continue;
      }
      if (!fits_hints(offer, hints, version, limits)) continue;
      InfoPtr next = make_info(offer, wanted, *format, hints, version, limits, params);
      if (next == nullptr) continue;
      if (last == nullptr) {
        last = next.get();
        first = std::move(next);
      } else {
        last->next = next.release();
        last = last->next;
      }
    }
  }
}

int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
             const fi_info* hints, fi_info** info) {
  if ((flags & FI_SOURCE) != 0 && node == nullptr && service == nullptr) {
    FI_WARN(&provider, FI_LOG_CORE, "fi_getinfo: FI_SOURCE needs a node or a service\n");
    return -FI_EINVAL;
  }
  const auto params = load_params();
  if (!params) return -FI_ENODATA;
  std::vector<const EndpointType*> types = {&wanted_type(hints, *params)};
  if (offers_connections_too(hints)) types.push_back(&msg_of(*params));
  if ((flags & kCoreProvidersOnly) != 0 && !params->allow_layering) {
    // Else ofi_rxd and ofi_rxm would put uet;ofi_rxd and uet;ofi_rxm in front of uet.
    std::erase_if(types, [](const EndpointType* type) { return type->type != FI_EP_RDM; });
  }
  const auto interfaces = usable_interfaces(*params, (flags & kRescan) != 0);
  // The drivers of devices are loaded only for hints that ask for FI_HMEM.
  const bool device_memory =
      hints != nullptr && (hints->caps & FI_HMEM) != 0 && has_any_device_driver();
  const Question question{version, hints, *params, interfaces, device_memory};
  const auto addresses = wanted_addresses(node, service, flags, hints);
  InfoPtr first;
  fi_info* last = nullptr;
  for (const EndpointType* type : types) add_infos(question, addresses, *type, first, last);
  if (first == nullptr) return -FI_ENODATA;
  *info = first.release();
  return 0;
}

}  // namespace

std::optional<FabricAddress> first_ipv4(const nic::Interface& interface) {
  for (const auto& address : interface.addresses) {
    if (!address.ip.is_ipv6) return address.ip;
  }
  return {};
}

std::vector<nic::Interface> interfaces_named(const std::vector<nic::Interface>& interfaces,
                                             const std::string& names) {
  std::vector<nic::Interface> found;
  for (const std::string& name : split(names, '+')) {
    const auto at = std::find_if(interfaces.begin(), interfaces.end(),
                                 [&](const auto& each) { return each.name == name; });
    if (at == interfaces.end()) return {};
    found.push_back(*at);
  }
  return found;
}

std::vector<nic::Interface> usable_interfaces(const Params& params, bool rescan) {
  return carried_by(params.nic, chosen_interfaces(params, rescan));
}

std::uint32_t payload_mtu(const Params& params, std::uint32_t ip_mtu) {
  const std::uint32_t trailer = params.crc ? wire::kCrcTrailerBytes : 0;
  const std::uint32_t fitting = fep::payload_mtu_for(ip_mtu - std::min(ip_mtu, trailer));
  if (params.payload_mtu == 0) return fitting;
  return params.payload_mtu <= fitting ? static_cast<std::uint32_t>(params.payload_mtu) : 0;
}

Limits limits_for(const Params& params, std::uint32_t payload_mtu, const EndpointType& type) {
  return {.type = &type,
          .max_msg_size =
              type.type == FI_EP_DGRAM ? payload_mtu : max_msg_size(params.profile),  // SES-77
          .inject_size = std::min<std::size_t>(kMaxInjectSize, payload_mtu),
          .tx_size = params.tx_size,
          .rx_size = params.rx_size,
          .trim_marks = recognized_trim_marks(params)};
}

int prov_getinfo(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
                 const fi_info* hints, fi_info** info) noexcept {
  return guarded([&] { return get_info(version, node, service, flags, hints, info); });
}

}  // namespace uet::prov
