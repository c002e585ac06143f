// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Life of a scalable endpoint and how its contexts come from it.
#include "objects/scalable_ep.h"

#include <rdma/fi_cm.h>

#include <algorithm>

#include "objects/domain.h"
#include "objects/endpoint_fid.h"
#include "ops.h"
#include "settings/getinfo.h"
#include "settings/hints.h"
#include "settings/traffic_class.h"

namespace uet::prov {
namespace {

int close_scalable_ep(fid* fid) noexcept { return ScalableEndpoint::from(fid).close(); }

int sep_bind(fid* fid, struct fid* other, std::uint64_t flags) noexcept {
  return guarded([&] { return ScalableEndpoint::from(fid).bind(other, flags); });
}

int sep_control(fid* fid, int command, void*) noexcept {
  return ScalableEndpoint::from(fid).control(command);
}

int sep_getname(fid* fid, void* address, std::size_t* length) noexcept {
  return guarded([&] { return ScalableEndpoint::from(fid).get_name(address, length); });
}

int sep_tx_ctx(fid_ep* sep, int index, fi_tx_attr* attr, fid_ep** ep, void* context) noexcept {
  return guarded([&] { return ScalableEndpoint::from(sep).open_tx(index, attr, ep, context); });
}

int sep_rx_ctx(fid_ep* sep, int index, fi_rx_attr* attr, fid_ep** ep, void* context) noexcept {
  return guarded([&] { return ScalableEndpoint::from(sep).open_rx(index, attr, ep, context); });
}

// Options belong to the contexts.
int sep_getopt(fid*, int, int, void*, std::size_t*) noexcept { return -FI_ENOPROTOOPT; }
int sep_setopt(fid*, int, int, const void*, std::size_t) noexcept { return -FI_ENOPROTOOPT; }

fi_ops sep_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_scalable_ep,
    .bind = sep_bind,
    .control = sep_control,
    .ops_open = no_ops_open,
    .tostr = no_tostr,
    .ops_set = no_ops_set,
};

fi_ops_ep sep_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = not_supported<&fi_ops_ep::cancel>,
    .getopt = sep_getopt,
    .setopt = sep_setopt,
    .tx_ctx = sep_tx_ctx,
    .rx_ctx = sep_rx_ctx,
    .rx_size_left = not_supported<&fi_ops_ep::rx_size_left>,
    .tx_size_left = not_supported<&fi_ops_ep::tx_size_left>,
};

fi_ops_cm sep_cm_ops = name_only(sep_getname);

int refuse_scalable_ep(int error, const char* why) {
  FI_WARN(&provider, FI_LOG_EP_CTRL, "%s\n", why);
  return error;
}

template <class T>
void inherit(T& asked, const T& preset) {
  if (asked == T{}) asked = preset;
}

std::size_t at_least_one(std::size_t asked) { return std::max<std::size_t>(asked, 1); }

}  // namespace

ScalableEndpoint::ScalableEndpoint(Domain& domain, const fi_info& info, void* context)
    : fid_ep{},
      domain_(domain),
      hold_(domain.references()),
      type_(wanted_type(&info, domain.engine().params())),
      tx_attr_(*info.tx_attr),
      rx_attr_(*info.rx_attr),
      tx_(at_least_one(info.ep_attr->tx_ctx_cnt)),
      rx_(at_least_one(info.ep_attr->rx_ctx_cnt)) {
  fid.fclass = FI_CLASS_SEP;
  fid.context = context;
  fid.ops = &sep_fid_ops;
  ops = &sep_ops;
  cm = &sep_cm_ops;
  msg = &no_msg;
  rma = &no_rma;
  tagged = &no_tagged;
  atomic = &no_atomics;
  collective = &no_collectives;
  inherit(tx_attr_.caps, info.caps & kTxCaps);
  inherit(rx_attr_.caps, info.caps & kRxCaps);
  tx_attr_.tclass = tclass_of(info);
}

int ScalableEndpoint::open(Domain& domain, const fi_info& info, void* context,
                           ScalableEndpoint*& out) {
  if (domain.engine().dead()) return -FI_EOPNOTSUPP;
  if (!is_connectionless(info)) {
    return refuse_scalable_ep(
        -FI_EINVAL,
        "fi_scalable_ep: ep_attr.type: not FI_EP_RDM or FI_EP_DGRAM; use an info of fi_getinfo");
  }
  if (info.ep_attr->tx_ctx_cnt > kMaxContexts || info.ep_attr->rx_ctx_cnt > kMaxContexts) {
    return refuse_scalable_ep(
        -FI_EINVAL, "fi_scalable_ep: ep_attr: too many contexts; ask for at most max_ep_tx_ctx");
  }
  std::unique_ptr<ScalableEndpoint> endpoint(new ScalableEndpoint(domain, info, context));
  const int result = Identity::take(domain, info, endpoint->rx_.size(), endpoint->identity_);
  if (result == 0) out = endpoint.release();
  return result;
}

int ScalableEndpoint::close() noexcept {
  if (references_.any()) return -FI_EBUSY;
  delete this;
  return 0;
}

int ScalableEndpoint::bind(struct fid* other, std::uint64_t flags) {
  if (engine().dead()) return -FI_EOPNOTSUPP;
  switch (other->fclass) {
    case FI_CLASS_EQ:
      return eq_.open(Eq::from(other), engine());
    case FI_CLASS_MR:
      return other->ops->bind(other, &fid, flags);
    case FI_CLASS_AV:
      break;
    default:
      return refuse_scalable_ep(
          -FI_EINVAL,
          "fi_scalable_ep_bind: scalable endpoint: not an AV; bind other objects to its contexts");
  }
  AvFid& av = AvFid::from(other);
  if (!av.engines().has(engine()))
    return refuse_scalable_ep(-FI_EDOMAIN,
                              "fi_scalable_ep_bind: scalable endpoint: the AV belongs to another "
                              "domain; open it on the same domain");
  if (av_ != nullptr)
    return refuse_scalable_ep(
        -FI_EINVAL,
        "fi_scalable_ep_bind: scalable endpoint: an AV is bound already; bind one only");
  av_ = &av;
  av_hold_ = Hold(av.references());
  return 0;
}

// Its contexts are what is enabled.
int ScalableEndpoint::control(int command) noexcept {
  if (engine().dead()) return -FI_EOPNOTSUPP;
  if (command != FI_ENABLE) return -FI_ENOSYS;
  return av_ != nullptr
             ? 0
             : refuse_scalable_ep(
                   -FI_ENOAV,
                   "fi_enable: scalable endpoint: no AV is bound; call fi_scalable_ep_bind first");
}

EndpointConfig ScalableEndpoint::config_of(EndpointRole role, const fi_tx_attr& tx,
                                           const fi_rx_attr& rx) {
  EndpointConfig config;
  config.role = role;
  config.caps = role == EndpointRole::Transmit ? tx.caps : rx.caps;
  config.identity = identity_;
  config.parent = this;
  config.mode = delivery_mode(type_.type, tx, rx);
  config.traffic_class = traffic_class_of(tx.tclass);
  config.inject_size = tx.inject_size;
  config.tx_iov_limit = tx.iov_limit;
  config.rx_iov_limit = rx.iov_limit;
  config.tx_size = tx.size;
  config.rx_size = rx.size;
  config.data_takes_receive = (rx.mode & FI_RX_CQ_DATA) != 0;
  return config;
}

int ScalableEndpoint::open_tx(int index, fi_tx_attr* attr, fid_ep** ep, void* context) {
  fi_tx_attr asked = tx_attr_;
  if (attr != nullptr) {
    asked = *attr;
    inherit(asked.caps, tx_attr_.caps);
    inherit(asked.op_flags, tx_attr_.op_flags);
    inherit(asked.msg_order, tx_attr_.msg_order);
    inherit(asked.inject_size, tx_attr_.inject_size);
    inherit(asked.size, tx_attr_.size);
    inherit(asked.iov_limit, tx_attr_.iov_limit);
    inherit(asked.rma_iov_limit, tx_attr_.rma_iov_limit);
    inherit(asked.tclass, tx_attr_.tclass);
    const Limits limits{.type = &type_, .inject_size = tx_attr_.inject_size};
    if (const char* why = refuse_tx(asked, limits)) return refuse_scalable_ep(-FI_EINVAL, why);
  }
  const EndpointConfig config = config_of(EndpointRole::Transmit, asked, rx_attr_);
  const int result = open_context(tx_, index, config, asked.op_flags, 0, ep, context);
  if (result == 0 && attr != nullptr) *attr = asked;
  return result;
}

int ScalableEndpoint::open_rx(int index, fi_rx_attr* attr, fid_ep** ep, void* context) {
  fi_rx_attr asked = rx_attr_;
  if (attr != nullptr) {
    asked = *attr;
    inherit(asked.caps, rx_attr_.caps);
    inherit(asked.mode, rx_attr_.mode);
    inherit(asked.op_flags, rx_attr_.op_flags);
    inherit(asked.msg_order, rx_attr_.msg_order);
    inherit(asked.size, rx_attr_.size);
    inherit(asked.iov_limit, rx_attr_.iov_limit);
    if (const char* why = refuse_rx(asked, {.type = &type_}))
      return refuse_scalable_ep(-FI_EINVAL, why);
  }
  EndpointConfig config = config_of(EndpointRole::Receive, tx_attr_, asked);
  config.index = static_cast<std::size_t>(index);
  const int result = open_context(rx_, index, config, 0, asked.op_flags, ep, context);
  if (result == 0 && attr != nullptr) *attr = asked;
  return result;
}

int ScalableEndpoint::open_context(Contexts& contexts, int index, const EndpointConfig& config,
                                   std::uint64_t tx_op_flags, std::uint64_t rx_op_flags,
                                   fid_ep** ep, void* context) {
  if (index < 0 || static_cast<std::size_t>(index) >= contexts.size()) {
    return refuse_scalable_ep(-FI_EINVAL,
                              "fi_tx_context, fi_rx_context: index: not below ep_attr.tx_ctx_cnt "
                              "or rx_ctx_cnt; pass one that is");
  }
  auto& place = contexts[static_cast<std::size_t>(index)];
  if (!place.expired())
    return refuse_scalable_ep(
        -FI_EBUSY, "fi_tx_context, fi_rx_context: index: its context is open; close it first");
  std::shared_ptr<Endpoint> opened;
  if (const int result = Endpoint::open(domain_, config, context, opened); result != 0) {
    return result;
  }
  place = opened;
  *ep = new EndpointFid(std::move(opened), tx_op_flags, rx_op_flags, context);
  return 0;
}

int scalable_ep_open(fid_domain* domain, fi_info* info, fid_ep** sep, void* context) noexcept {
  return guarded([&] {
    ScalableEndpoint* opened = nullptr;
    const int result = ScalableEndpoint::open(Domain::from(domain), *info, context, opened);
    if (result == 0) *sep = opened;
    return result;
  });
}

}  // namespace uet::prov
