// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The entry point that libfabric calls in every process that touches it, even where uet is filtered
// out: it only fills in a struct and names the parameters.
#include "compat.h"
#include "objects/engine.h"
#include "objects/fabric.h"
#include "provider.h"
#include "settings/getinfo.h"
#include "settings/params.h"

namespace uet::prov {
namespace {

// Nothing outlives the objects that the application closes; libfabric calls this when the process
// ends.
void prov_cleanup() noexcept { write_stats_at_exit(); }

}  // namespace

fi_provider provider = {
    .version = kProviderVersion,
    .fi_version = kApiVersion,
    .context = {},
    .name = "uet",
    .getinfo = prov_getinfo,
    .fabric = prov_fabric,
    .cleanup = prov_cleanup,
};

}  // namespace uet::prov

extern "C" __attribute__((visibility("default"))) fi_provider* fi_prov_ini() noexcept;

fi_provider* fi_prov_ini() noexcept {
  try {
    uet::prov::define_params();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  return &uet::prov::provider;
}
