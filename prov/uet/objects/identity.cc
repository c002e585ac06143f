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

}  // namespace

Identity::Identity(Domain& domain, JobId job, bool has_auth_key)
    : domain_(domain),
      engine_(domain.engine()),
      hold_(domain.references()),
      job_(job),
      has_auth_key_(has_auth_key) {}

const AddressFormat& Identity::format() const { return domain_.format(); }

int Identity::make(Domain& domain, const fi_info& info, std::shared_ptr<Identity>& out) {
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
  out.reset(new Identity(domain, job, has_key));
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
  if (const int result = make(domain, info, identity); result != 0) return result;
  Identity& self = *identity;
  const Guard guard(self.domain_.lock());
  const int result = self.take_name(wanted, count, false);
  if (result == 0) out = identity;
  return result;
}

int Identity::take_any(Domain& domain, const fi_info& info, std::shared_ptr<Identity>& out) {
  std::shared_ptr<Identity> identity;
  if (const int result = make(domain, info, identity); result != 0) return result;
  Identity& self = *identity;
  const Guard guard(self.domain_.lock());
  const int result = self.take_first();
  if (result == 0) out = identity;
  return result;
}

int Identity::take_first() {
  const auto taken = domain_.take_resource_indices({}, 1, true);
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
  const Guard guard(domain_.lock());
  const ri::ContextName old = context_name();
  domain_.give_back(old, count_);
  const int result = take_name(wanted, count_, true);
  // The old indices are still free: no other thread could take them under the lock.
  if (result != 0) (void)domain_.take_resource_indices(old, count_).ok();
  if (result == 0) domain_.move_regions(old, context_name());
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
  auto taken = domain_.take_resource_indices(asked, count);
  if (!taken && by_port && !exact) taken = domain_.take_resource_indices({}, count);
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
    domain_.give_back({name.pid_on_fep, name.start_resource_index}, count);
    return refuse_identity(
        -FI_EADDRNOTAVAIL,
        "fi_endpoint: addr_format: cannot express the address; use FI_ADDR_UET or FI_ADDR_STR");
  }
  name_ = name;
  count_ = count;
  return 0;
}

Identity::~Identity() {
  if (engine_.dead()) return;
  const Guard guard(domain_.lock());
  domain_.move_regions(context_name(), std::nullopt);
  domain_.give_back(context_name(), count_);
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
