// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From an fi_info to an address of our own.
#include "identity.h"

#include <algorithm>
#include <cstring>

#include "errors.h"
#include "getinfo.h"
#include "provider.h"

namespace uet::prov {
namespace {

int refuse(int error, const char* why) {
  FI_WARN(&provider, FI_LOG_EP_CTRL, "fi_endpoint: %s\n", why);
  return error;
}

}  // namespace

int Identity::take(Domain& domain, const fi_info& info, std::size_t count,
                   std::shared_ptr<const Identity>& out) {
  JobId job = domain.job();
  if (info.ep_attr->auth_key_size != 0) {
    const auto own = job_of(info.ep_attr->auth_key, info.ep_attr->auth_key_size);
    if (!own) return refuse(-FI_EINVAL, "auth_key is not a JobID of 3 bytes");
    job = own.value();
  }
  av::UetAddress wanted;
  if (info.src_addr != nullptr) {
    wanted = decode_address(info.src_addr, info.src_addrlen).value_or(wanted);
  }
  std::optional<ResourceIndex> index;
  if (wanted.has(av::kResourceIndexValid)) index = wanted.start_resource_index;
  const std::shared_ptr<Identity> identity(new Identity(domain, job));
  const Guard guard(domain.lock());
  const auto taken = domain.take_resource_indices(index, count);
  if (!taken) return refuse(to_fi_errno(taken.error()), "no free resource index");
  identity->count_ = count;
  av::UetAddress& name = identity->name_;
  name = av::default_address(domain.local_address());
  name.start_resource_index = taken.value();
  name.num_resource_indices = static_cast<std::uint16_t>(count);
  name.initiator_id = av::default_initiator(domain.local_address(), taken.value());
  if (wanted.has(av::kPidOnFepValid)) name.pid_on_fep = wanted.pid_on_fep;
  if (wanted.has(av::kInitiatorIdValid)) name.initiator_id = wanted.initiator_id;
  if (wanted.has(av::kAbsolute)) name.flags |= av::kAbsolute;
  out = identity;
  return 0;
}

Identity::~Identity() {
  if (domain_.dead()) return;
  const Guard guard(domain_.lock());
  domain_.give_back(name_.start_resource_index, count_);
}

int Identity::get_name(void* address, std::size_t* length) const noexcept {
  if (domain_.dead()) return -FI_EOPNOTSUPP;
  const av::AddressBytes bytes = av::encode(name_);
  const std::size_t room = *length;
  *length = bytes.size();
  if (room > 0 && address != nullptr) {
    std::memcpy(address, bytes.data(), std::min(room, bytes.size()));
  }
  return room < bytes.size() ? -FI_ETOOSMALL : 0;
}

}  // namespace uet::prov
