// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From an fi_info to an address of our own.
#include "objects/identity.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "errors.h"
#include "objects/domain.h"
#include "process/engine_link.h"
#include "provider.h"

namespace uet::prov {
namespace {

int refuse_identity(int error, const char* why) {
  FI_WARN(&provider, FI_LOG_EP_CTRL, "%s\n", why);
  return error;
}

// SES-159: a profile contains the smaller ones.
std::uint8_t capabilities_of(const Params& params) {
  std::uint8_t capabilities = av::kAiBase;
  if (params.profile != Profile::AiBase) capabilities |= av::kAiFull;
  if (params.profile == Profile::Hpc) capabilities |= av::kHpc;
  if (params.core.ses.short_headers) capabilities |= av::kOptimizedNonMatching;
  return capabilities;
}

// The engine for an endpoint that wants this name; the endpoint is counted there. If several
// endpoints are opened with one info, its port means the first of them only: then the name is left
// open.
Engine& place(Domain& domain, const fi_info& info, std::size_t count, av::UetAddress& wanted) {
  Engines& engines = domain.engines();
  const bool shares = info.ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT ||
                      info.ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT;
  if (!engines.several() || shares) return engines.seat(engines.first());
  if (wanted.udp_port == 0) return engines.deal();
  Engine* const named = engines.at_port(wanted.udp_port);
  if (named == nullptr) return engines.seat(engines.first());  // where it is refused
  if (!av::port_name_of(wanted, first_udp_port())) return engines.seat(*named);
  const ri::ContextName name{av::default_pid_on_fep(wanted.udp_port), wanted.start_resource_index};
  {
    const Guard guard(named->lock());
    if (domain.take_resource_indices(*named, name, count)) {
      domain.give_back(*named, name, count);
      return engines.seat(*named);
    }
  }
  wanted = {};
  return engines.deal();
}

}  // namespace

Identity::Identity(Domain& domain, Engine& engine, JobId job, bool has_auth_key)
    : domain_(domain),
      engine_(engine),
      hold_(domain.references()),
      job_(job),
      has_auth_key_(has_auth_key) {}

const AddressFormat& Identity::format() const { return domain_.format(); }

template <class Choose>
int Identity::make(Domain& domain, const fi_info& info, std::shared_ptr<Identity>& out,
                   Choose choose) {
  JobId job = domain.job();
  if (info.ep_attr->type == FI_EP_DGRAM && domain.engine().params().core.pds.refuses_replayable) {
    return refuse_identity(-FI_EOPNOTSUPP,
                           "fi_endpoint: FI_EP_DGRAM: the key file says pdc-only, since datagrams "
                           "can be replayed (TSS-50); use FI_EP_RDM or change FI_UET_TSS_KEYS");
  }
  if (info.ep_attr->auth_key_size != 0 && domain.has_av_keys()) {
    return refuse_identity(
        -FI_EINVAL,
        "fi_endpoint: auth_key: the domain takes the keys of its AVs; leave auth_key out");
  }
  if (info.ep_attr->auth_key_size != 0) {
    const fi_ep_attr& attr = *info.ep_attr;
    const char* const problem = domain.read_job(attr.auth_key, attr.auth_key_size, job);
    if (problem != nullptr) {
      return refuse_identity(-FI_EINVAL, (std::string("fi_endpoint: ") + problem).c_str());
    }
  }
  const bool has_key = info.ep_attr->auth_key_size != 0 || domain.auth_job().has_value();
  out.reset(new Identity(domain, choose(), job, has_key));
  return 0;
}

int Identity::take(Domain& domain, const fi_info& info, std::size_t count,
                   std::shared_ptr<Identity>& out) {
  av::UetAddress wanted;
  if (info.src_addr != nullptr) {
    const auto decoded =
        AddressFormat::decode_source(info.addr_format, info.src_addr, info.src_addrlen);
    if (!decoded)
      return refuse_identity(
          -FI_EINVAL, "fi_endpoint: src_addr: not of addr_format; pass an info of fi_getinfo");
    wanted = *decoded;
  }
  std::shared_ptr<Identity> identity;
  const auto choose = [&]() -> Engine& { return place(domain, info, count, wanted); };
  if (const int result = make(domain, info, identity, choose); result != 0) return result;
  Identity& self = *identity;
  const Guard guard(self.engine_.lock());
  const int result = self.take_name(wanted, count, false);
  if (result == 0) out = identity;
  return result;
}

int Identity::take_any(Domain& domain, const fi_info& info, std::shared_ptr<Identity>& out) {
  std::shared_ptr<Identity> identity;
  const auto choose = [&]() -> Engine& { return domain.engines().seat(domain.engine()); };
  if (const int result = make(domain, info, identity, choose); result != 0) return result;
  Identity& self = *identity;
  const Guard guard(self.engine_.lock());
  const int result = self.take_first();
  if (result == 0) out = identity;
  return result;
}

int Identity::take_first() {
  const auto taken = domain_.take_resource_indices(engine_, {}, 1, true);
  if (!taken)
    return refuse_identity(-FI_ENOSPC,
                           "fi_endpoint: resource indices: all are in use; close an endpoint");
  name_ = av::default_address(engine_.local_address(), taken.value().pid, taken.value().index);
  name_.capabilities = capabilities_of(engine_.params());
  name_.num_resource_indices = 1;
  count_ = 1;
  return 0;
}

int Identity::rename(const av::UetAddress& wanted) {
  const Guard guard(engine_.lock());
  const ri::ContextName old = context_name();
  domain_.give_back(engine_, old, count_);
  const int result = take_name(wanted, count_, true);
  // The old indices are still free: no other thread could take them under the lock.
  if (result != 0) (void)domain_.take_resource_indices(engine_, old, count_).ok();
  if (result == 0) move_regions(old, context_name());
  return result;
}

int Identity::take_name(const av::UetAddress& wanted, std::size_t count, bool exact) {
  const FepAddress here = engine_.local_address();
  const bool other_ip =
      wanted.fabric_address.bytes != FabricAddress{}.bytes && wanted.fabric_address != here.ip;
  if (other_ip || (wanted.udp_port != 0 && wanted.udp_port != here.port)) {
    return refuse_identity(-FI_EADDRNOTAVAIL,
                           "fi_endpoint: src_addr: not the IP address and port of the domain; use "
                           "these, or leave them open");
  }
  const auto slot = slot_of_port(here.port);
  if (slot && wanted.has(av::kPidOnFepValid) && wanted.pid_on_fep.value % kSharedSlots != *slot) {
    return refuse_identity(
        -FI_EADDRNOTAVAIL,
        "fi_endpoint: pid_on_fep: its packets go to another process of the shared port; choose one "
        "that equals the slot modulo 32, or leave it open");
  }
  const bool by_port = av::port_name_of(wanted, first_udp_port()).has_value();
  const PidOnFep own = av::default_pid_on_fep(here.port);
  std::optional<ri::ContextName> asked;
  if (wanted.has(av::kResourceIndexValid)) {
    const bool pid = !by_port && wanted.has(av::kPidOnFepValid);
    asked = {pid ? wanted.pid_on_fep : own, wanted.start_resource_index};
  }
  auto taken = domain_.take_resource_indices(engine_, asked, count);
  if (!taken && by_port && !exact) taken = domain_.take_resource_indices(engine_, {}, count);
  if (!taken)
    return refuse_identity(
        to_fi_errno(taken.error()),
        "fi_endpoint: resource indices: in use; choose others, or leave them open");
  // A PIDonFEP that was asked for keeps the initiator id of the domain's own one.
  av::UetAddress name =
      av::default_address(here, asked ? own : taken.value().pid, taken.value().index);
  name.pid_on_fep = taken.value().pid;
  name.capabilities = capabilities_of(engine_.params());
  name.num_resource_indices = static_cast<std::uint16_t>(count);
  if (!by_port) {
    if (wanted.has(av::kPidOnFepValid)) name.pid_on_fep = wanted.pid_on_fep;
    if (wanted.has(av::kInitiatorIdValid)) name.initiator_id = wanted.initiator_id;
    if (wanted.has(av::kAbsolute)) name.flags |= av::kAbsolute;
  }
  if (!domain_.format().can_name(name)) {
    domain_.give_back(engine_, {name.pid_on_fep, name.start_resource_index}, count);
    return refuse_identity(
        -FI_EADDRNOTAVAIL,
        "fi_endpoint: addr_format: cannot express the address; use FI_ADDR_UET or FI_ADDR_STR");
  }
  name_ = name;
  count_ = count;
  return 0;
}

// As ri::MrTable::move_context.
void Identity::move_regions(const ri::ContextName& from, const std::optional<ri::ContextName>& to) {
  engine_.fep().regions().move_context(from, to);
  if (EngineLink* const link = engine_.link()) link->requests().move_context(from, to);
}

Identity::~Identity() {
  domain_.engines().leave(engine_);
  if (engine_.dead()) return;
  const Guard guard(engine_.lock());
  move_regions(context_name(), std::nullopt);
  domain_.give_back(engine_, context_name(), count_);
}

int Identity::get_name(void* address, std::size_t* length, const av::UetAddress* shown) const {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  const std::vector<std::byte> bytes =
      domain_.format().encode(shown != nullptr ? *shown : name_, engine_.nic().further_addresses());
  const std::size_t room = *length;
  *length = bytes.size();
  if (room > 0 && address != nullptr) {
    std::memcpy(address, bytes.data(), std::min(room, bytes.size()));
  }
  return room < bytes.size() ? -FI_ETOOSMALL : 0;
}

}  // namespace uet::prov
