// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Opening and closing a fabric, and fi_trywait over whatever was opened below it.
#include "objects/fabric.h"

#include <rdma/fi_eq.h>
#include <strings.h>

#include "objects/domain.h"
#include "objects/eq.h"
#include "objects/passive_ep.h"
#include "objects/wait_set.h"
#include "ops.h"
#include "provider.h"
#include "settings/getinfo.h"

namespace uet::prov {
namespace {

int fabric_close(fid* fid) noexcept {
  Fabric& fabric = Fabric::from(fid);
  if (fabric.references().any()) return -FI_EBUSY;
  delete &fabric;
  return 0;
}

int fabric_trywait(fid_fabric*, fid** fids, int count) noexcept {
  for (int i = 0; i < count; ++i) {
    if (const int result = try_wait(fids[i]); result != 0) return result;
  }
  return 0;
}

int fabric_domain2(fid_fabric* fabric, fi_info* info, fid_domain** domain, std::uint64_t flags,
                   void* context) noexcept {
  if (flags != 0) return -FI_EOPNOTSUPP;  // FI_PEER
  return domain_open(fabric, info, domain, context);
}

fi_ops fabric_fid_ops = {
    .size = sizeof(fi_ops),
    .close = fabric_close,
    .bind = no_bind,
    .control = no_control,
    .ops_open = no_ops_open,
    .tostr = no_tostr,
    .ops_set = no_ops_set,
};

fi_ops_fabric fabric_ops = {
    .size = sizeof(fi_ops_fabric),
    .domain = domain_open,
    .passive_ep = passive_ep_open,
    .eq_open = eq_open,
    .wait_open = wait_open,
    .trywait = fabric_trywait,
    .domain2 = fabric_domain2,
};

}  // namespace

Fabric::Fabric(std::uint32_t version, void* fabric_context) : fid_fabric{}, version_(version) {
  fid.fclass = FI_CLASS_FABRIC;
  fid.context = fabric_context;
  fid.ops = &fabric_fid_ops;
  ops = &fabric_ops;
  api_version = version;
}

namespace {

// fi_fabric(3): the name is one that fi_getinfo has given, the subnet of an interface's address.
bool is_name_of_fabric(const char* name) {
  const auto params = load_params();
  if (!params) return true;  // fi_domain says what is wrong
  for (const nic::Interface& interface : usable_interfaces(*params)) {
    for (const nic::InterfaceAddress& address : interface.addresses) {
      if (strcasecmp(name, address.subnet().c_str()) == 0) return true;
    }
  }
  return false;
}

}  // namespace

int prov_fabric(fi_fabric_attr* attr, fid_fabric** fabric, void* context) noexcept {
  return guarded([&] {
    if (attr->name != nullptr && !is_name_of_fabric(attr->name)) {
      FI_WARN(&provider, FI_LOG_FABRIC,
              "fi_fabric: no interface has the subnet %s; pass an attr of fi_getinfo\n",
              attr->name);
      return -FI_EINVAL;
    }
    // Clients older than 1.5 leave api_version 0.
    const std::uint32_t version = attr->api_version != 0 ? attr->api_version : FI_VERSION(1, 4);
    *fabric = create<Fabric>(version, context);
    return 0;
  });
}

}  // namespace uet::prov
