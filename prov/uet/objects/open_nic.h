// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From an fi_info to a NIC: which back end, address and port; for domains and passive endpoints.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "security/transport_security.h"
#include "settings/address_format.h"
#include "settings/params.h"
#include "uet/base/types.h"
#include "uet/nic/nic.h"

namespace uet::prov {

class EngineLink;

struct OpenedNic {
  std::unique_ptr<nic::Nic> nic;
  EngineLink* link = nullptr;  // FI_UET_ENGINE=process: a part of `nic`
  AddressFormat format;
};

// The protection of the NIC's packets. `trimming`: the network trims.
struct NicSecurity {
  TransportSecurity* security = nullptr;  // nullptr: nothing does
  bool trimming = false;
};

// The job of the endpoints behind an info, and the protection of their packets.
struct Protection {
  NicSecurity of_nic() const { return {security.get(), trimming}; }
  // nullopt: in clear.
  std::optional<std::uint32_t> sdi() const;

  std::optional<JobId> job;                     // that of auth_key
  std::optional<std::uint32_t> key_sdi;         // likewise
  std::unique_ptr<TransportSecurity> security;  // nullptr: packets are in clear
  bool trimming = false;
};

// From auth_key and the parameters, which it adapts: security excludes trimming (TSS-66) and wants
// random start PSNs (TSS-51), and may exclude RUDI and UUD (TSS-50). 0 or a negative fi_errno, with
// the reason logged.
int open_protection(const fi_info& info, Params& params, const char* caller, Protection& out);

// Which UDP port a NIC takes: that of src_addr if it names one; that one, or any other if it is in
// use; or any.
enum class PortChoice : std::uint8_t { Named, NamedOrAny, Any };

struct NicPlace {
  PortChoice port = PortChoice::Named;
  std::uint32_t sharers = 1;  // NicConfig::sharers
};

// Opens the NIC that the info names; `caller` (fi_domain ...) begins the log lines. 0 or a negative
// fi_errno, with the reason logged.
int open_nic(const fi_info& info, const Params& params, const char* caller, const NicPlace& place,
             const NicSecurity& security, OpenedNic& out);

// Has the application asked for a progress thread?
bool wants_thread(const fi_info& info);

}  // namespace uet::prov
