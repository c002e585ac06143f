// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "objects/open_nic.h"

#include <rdma/fi_errno.h>
#include <strings.h>

#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "av/address.h"
#include "compat.h"
#include "errors.h"
#include "nic/interface.h"
#include "nic/rails.h"
#include "nic/registry.h"
#include "process/link_nic.h"
#include "provider.h"
#include "security/auth_key.h"
#include "settings/core_config.h"
#include "settings/getinfo.h"

namespace uet::prov {
namespace {

bool same(const char* a, const std::string& b) { return strcasecmp(a, b.c_str()) == 0; }

// The address that an fi_info without source address means: by fabric name, else the first.
std::optional<FabricAddress> fabric_address_of(const nic::Interface& interface,
                                               const fi_info& info) {
  const char* fabric = info.fabric_attr != nullptr ? info.fabric_attr->name : nullptr;
  for (const auto& address : interface.addresses) {
    if (fabric == nullptr || same(fabric, address.subnet())) return address.ip;
  }
  return {};
}

std::optional<av::UetAddress> source_of(const fi_info& info, const Params& params) {
  if (info.src_addr != nullptr) {
    return AddressFormat::decode(info.addr_format, info.src_addr, info.src_addrlen);
  }
  if (info.domain_attr->name == nullptr) return {};
  for (const auto& interface : usable_interfaces(params)) {
    if (!same(info.domain_attr->name, interface.name)) continue;
    if (const auto ip = fabric_address_of(interface, info)) {
      av::UetAddress address;
      address.flags = av::kFabricAddressValid;
      address.fabric_address = *ip;
      return address;
    }
  }
  return {};
}

// Whether the name of the domain, if it has one, is that of the interface with its source address.
bool is_named_after_its_interface(const fi_info& info, const av::UetAddress& source,
                                  const Params& params) {
  if (info.domain_attr->name == nullptr) return true;
  bool any = false;  // rails have the address of their first interface, which has it too
  for (const auto& interface : usable_interfaces(params)) {
    if (nic::interface_of({interface}, source.fabric_address) == nullptr) continue;
    if (same(info.domain_attr->name, interface.name)) return true;
    any = true;
  }
  return !any;
}

using OpenedNics = Result<std::unique_ptr<nic::Nic>>;

// One NIC for each interface, all at the port of the first. The middleware for this host is that of
// the first rail.
OpenedNics open_rails(const std::vector<nic::Interface>& members, nic::NicConfig config,
                      std::string& message) {
  std::vector<nic::RailsNic::Rail> rails;
  for (const nic::Interface& member : members) {
    if (!rails.empty()) {
      config.ip = *first_ipv4(member);
      config.port = rails[0].nic->local_address().port;
      config.local_rings = config.self_delivery = false;
    }
    auto nic = nic::open_nic(config, message);
    if (!nic) return nic.error();
    if (slot_of_port(nic.value()->local_address().port)) {
      message = "FI_UET_IFACE: rails of a shared port are not possible; use FI_UET_NIC=udp";
      return Error::Invalid;
    }
    rails.push_back({std::move(nic).value(), member.name});
  }
  return std::unique_ptr<nic::Nic>(
      std::make_unique<nic::RailsNic>(std::move(rails), random_seed()));
}

// With any port (config.port 0) the next one is tried where a further rail's is in use.
OpenedNics open_rails_at_common_port(const std::vector<nic::Interface>& members,
                                     nic::NicConfig config, std::string& message) {
  const bool any_port = config.port == 0;
  if (any_port) config.port = config.first_port;
  for (;; ++config.port) {
    message.clear();
    auto nic = open_rails(members, config, message);
    const bool next = !nic && nic.error() == Error::AddressInUse && any_port;
    if (!next || config.port == config.first_port + kUetUdpPorts - 1) return nic;
  }
}

// The interfaces of rails; empty for one interface.
std::vector<nic::Interface> rails_of(const fi_info& info) {
  const char* const name = info.domain_attr->name;
  if (name == nullptr || std::strchr(name, '+') == nullptr) return {};
  std::string ignored;
  const auto interfaces = nic::list_interfaces(ignored);
  if (!interfaces) return {};
  auto members = interfaces_named(interfaces.value(), name);
  return members.size() > 1 ? std::move(members) : std::vector<nic::Interface>{};
}

// The NIC is the engine's.
int open_link(const fi_info& info, const Params& params, const av::UetAddress& source,
              const char* caller, PortChoice port, OpenedNic& out) {
  std::unique_ptr<EngineLink> link;
  std::string message;
  FepAddress at{.ip = source.fabric_address, .port = source.udp_port};
  if (port == PortChoice::Any) at.port = 0;
  int result = EngineLink::open(info, params, at, link, message);
  if (result == -FI_EADDRINUSE && port == PortChoice::NamedOrAny && at.port != 0) {
    message.clear();
    at.port = 0;
    result = EngineLink::open(info, params, at, link, message);
  }
  if (result == 0 && link->payload_mtu() != payload_mtu(params, link->caps().ip_mtu)) {
    message =
        "FI_UET_ENGINE=process: the engine has another payload MTU; set FI_UET_PAYLOAD_MTU and "
        "FI_UET_CRC alike for both";
    result = -FI_EINVAL;
  }
  if (result != 0) {
    FI_WARN(&provider, FI_LOG_DOMAIN, "%s: %s\n", caller, message.c_str());
    return result;
  }
  out.link = link.get();
  out.nic = std::make_unique<LinkNic>(std::move(link));
  return 0;
}

}  // namespace

bool wants_thread(const fi_info& info) {
  const fi_domain_attr& attr = *info.domain_attr;
  return attr.control_progress == FI_PROGRESS_AUTO || attr.data_progress == FI_PROGRESS_AUTO;
}

std::optional<std::uint32_t> Protection::sdi() const {
  return security != nullptr ? security->sdi() : key_sdi;
}

int open_protection(const fi_info& info, Params& params, const char* caller, Protection& out) {
  if (params.engine == EngineMode::Process) {  // keys and statistics are the engine's
    params.tss = TssMode::Off;
    params.live_statistics = false;
    params.stats = {};
  }
  const fi_domain_attr& attr = *info.domain_attr;
  std::optional<SecureIdentity> identity;
  if (attr.auth_key_size != 0 && attr.auth_key_size != kAvAuthKey) {
    const auto key = read_auth_key(attr.auth_key, attr.auth_key_size);
    if (!key) {
      FI_WARN(&provider, FI_LOG_DOMAIN,
              "%s: auth_key: not a JobID of 3 bytes, nor JobID, SDI and SSI; pass one of these\n",
              caller);
      return -FI_EINVAL;
    }
    out.job = key.value().job;
    identity = key.value().identity;
    if (identity) out.key_sdi = identity->sdi;
  }
  const int result = TransportSecurity::open(params, identity, out.security);
  if (result != 0) return result;
  out.trimming = params.core.cms.trimming;
  if (out.security != nullptr && std::exchange(params.core.cms.trimming, false)) {
    FI_INFO(&provider, FI_LOG_DOMAIN,
            "FI_UET_TSS: FI_UET_CC_TRIMMING has no effect: a trimmed packet has lost its ICV\n");
  }
  // Another process of this address may have used the key before.
  params.core.pds.random_start = out.security != nullptr;
  if (out.security != nullptr && out.security->pdc_only()) {
    params.core.pds.refuses_replayable = true;
    if (std::exchange(params.core.ses.rudi, false)) {
      FI_INFO(&provider, FI_LOG_DOMAIN,
              "FI_UET_TSS_KEYS: pdc-only: FI_UET_TUNING: rudi has no effect\n");
    }
  }
  return 0;
}

int open_nic(const fi_info& info, const Params& params, const char* caller, const NicPlace& place,
             const NicSecurity& security, OpenedNic& out) {
  const PortChoice port = place.port;
  const auto source = source_of(info, params);
  if (!source) {
    FI_WARN(&provider, FI_LOG_DOMAIN,
            "%s: src_addr or domain_attr.name is not usable; pass an info of fi_getinfo\n", caller);
    return -FI_EINVAL;
  }
  if (!is_named_after_its_interface(info, *source, params)) {
    FI_WARN(&provider, FI_LOG_DOMAIN,
            "%s: domain_attr.name %s is not the interface of src_addr; pass an info of "
            "fi_getinfo\n",
            caller, info.domain_attr->name);
    return -FI_EINVAL;
  }
  const auto format = AddressFormat::of(info.addr_format, source->fabric_address.is_ipv6);
  if (!format) {
    FI_WARN(&provider, FI_LOG_DOMAIN,
            "%s: addr_format: does not fit src_addr; pass an info of fi_getinfo\n", caller);
    return -FI_EINVAL;
  }
  out.format = *format;
  if (params.engine == EngineMode::Process) {
    return open_link(info, params, *source, caller, port, out);
  }
  // The info says which one it was made for (nic_attr.h); FI_UET_NIC may have changed since.
  const bool named = info.nic != nullptr && info.nic->device_attr != nullptr &&
                     info.nic->device_attr->driver != nullptr;
  const std::string back_end = named ? info.nic->device_attr->driver : params.nic;
  nic::NicConfig config = nic_config(params, back_end, *source);
  config.sharers = place.sharers;
  if (port == PortChoice::Any) config.port = 0;
  config.report_mode = [&back_end](const std::string& way) {
    FI_INFO(&provider, FI_LOG_DOMAIN, "FI_UET_NIC=%s: %s\n", back_end.c_str(), way.c_str());
  };
  if (security.security != nullptr) {
    config.trimming = security.trimming;
    config.sdi = security.security->sdi();
    config.secure = [&](std::unique_ptr<nic::Nic> inner, std::string& why) {
      const auto marks = security.trimming ? config.trim_marks : wire::TrimMarks{};
      return security.security->wrap(std::move(inner), marks, why);
    };
  }
  const auto rails = rails_of(info);
  if (!rails.empty() && security.security != nullptr) {
    FI_WARN(&provider, FI_LOG_DOMAIN,
            "%s: FI_UET_TSS: not with several interfaces; name one in FI_UET_IFACE\n", caller);
    return -FI_EOPNOTSUPP;
  }
  std::string message;
  const auto open = [&] {
    return rails.empty() ? nic::open_nic(config, message)
                         : open_rails_at_common_port(rails, config, message);
  };
  auto nic = open();
  if (!nic && nic.error() == Error::AddressInUse && port == PortChoice::NamedOrAny &&
      config.port != 0) {
    message.clear();
    config.port = 0;
    nic = open();
  }
  if (!message.empty()) FI_WARN(&provider, FI_LOG_DOMAIN, "%s\n", message.c_str());
  if (!nic) return to_fi_errno(nic.error());
  out.nic = std::move(nic).value();
  if (!format->can_name(av::default_address(out.nic->local_address()))) {
    FI_WARN(&provider, FI_LOG_DOMAIN,
            "%s: a socket address cannot carry the process slot of a shared port; use "
            "addr_format FI_ADDR_UET or FI_ADDR_STR, or FI_UET_NIC=udp\n",
            caller);
    return -FI_EADDRNOTAVAIL;
  }
  return 0;
}

}  // namespace uet::prov
