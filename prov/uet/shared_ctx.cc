// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Life of shared contexts.
#include "shared_ctx.h"

#include "getinfo.h"
#include "hints.h"
#include "ops.h"

namespace uet::prov {
namespace {

int close_stx(fid* fid) noexcept { return Stx::from(fid).close(); }

fi_ops stx_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_stx,
    .bind = no_bind,
    .control = no_control,
    .ops_open = no_ops_open,
    .tostr = no_tostr,
    .ops_set = no_ops_set,
};

fi_ops_ep stx_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = not_supported<&fi_ops_ep::cancel>,
    .getopt = not_supported<&fi_ops_ep::getopt>,
    .setopt = not_supported<&fi_ops_ep::setopt>,
    .tx_ctx = not_supported<&fi_ops_ep::tx_ctx>,
    .rx_ctx = not_supported<&fi_ops_ep::rx_ctx>,
    .rx_size_left = not_supported<&fi_ops_ep::rx_size_left>,
    .tx_size_left = not_supported<&fi_ops_ep::tx_size_left>,
};

}  // namespace

Stx::Stx(Domain& domain, const fi_tx_attr& attr, void* context)
    : fid_stx{},
      domain_(domain),
      hold_(domain.references()),
      size_(attr.size != 0 ? attr.size : domain.params().tx_size) {
  fid.fclass = FI_CLASS_STX_CTX;
  fid.context = context;
  fid.ops = &stx_fid_ops;
  ops = &stx_ops;
}

int Stx::close() noexcept {
  if (references_.any()) return -FI_EBUSY;
  delete this;
  return 0;
}

int stx_open(fid_domain* domain, fi_tx_attr* attr, fid_stx** stx, void* context) noexcept {
  return guarded([&] {
    Domain& parent = Domain::from(domain);
    if (parent.dead()) return -FI_EOPNOTSUPP;
    const fi_tx_attr preset{};
    const fi_tx_attr& asked = attr != nullptr ? *attr : preset;
    const Limits limits = limits_for(parent.params(), parent.payload_mtu(), kRdm);
    if (const char* why = refuse_tx(asked, limits)) {
      FI_WARN(&provider, FI_LOG_EP_CTRL, "fi_stx_context: not possible: %s\n", why);
      return -FI_EINVAL;
    }
    *stx = new Stx(parent, asked, context);
    return 0;
  });
}

}  // namespace uet::prov
