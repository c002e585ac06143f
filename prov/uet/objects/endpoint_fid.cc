// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The tables behind a fid_ep, and what belongs to the handle alone: default flags and aliases.
#include "objects/endpoint_fid.h"

#include <rdma/fi_cm.h>

#include "objects/domain.h"
#include "objects/passive_ep.h"
#include "ops.h"
#include "settings/hints.h"
#include "settings/traffic_class.h"

namespace uet::prov {
namespace {

int close_endpoint(fid* fid) noexcept { return EndpointFid::from(fid).close(); }

int ep_bind(fid* fid, struct fid* other, std::uint64_t flags) noexcept {
  return guarded([&] { return EndpointFid::from(fid).endpoint().bind(other, fid, flags); });
}

int ep_control(fid* fid, int command, void* argument) noexcept {
  return guarded([&] { return EndpointFid::from(fid).control(command, argument); });
}

int ep_getname(fid* fid, void* address, std::size_t* length) noexcept {
  return guarded([&] { return EndpointFid::from(fid).endpoint().get_name(address, length); });
}

int ep_setname(fid* fid, void* address, std::size_t length) noexcept {
  return guarded([&] { return EndpointFid::from(fid).endpoint().set_name(address, length); });
}

ssize_t ep_cancel(fid* fid, void* context) noexcept {
  return EndpointFid::from(fid).endpoint().cancel(context);
}

int ep_getopt(fid* fid, int level, int name, void* value, std::size_t* length) noexcept {
  if (level != FI_OPT_ENDPOINT) return -FI_ENOPROTOOPT;
  return EndpointFid::from(fid).endpoint().get_option(name, value, length);
}

int ep_setopt(fid* fid, int level, int name, const void* value, std::size_t length) noexcept {
  if (level != FI_OPT_ENDPOINT) return -FI_ENOPROTOOPT;
  return EndpointFid::from(fid).endpoint().set_option(name, value, length);
}

ssize_t ep_rx_size_left(fid_ep* ep) noexcept {
  return EndpointFid::from(ep).endpoint().rx().size_left();
}
ssize_t ep_tx_size_left(fid_ep* ep) noexcept {
  return EndpointFid::from(ep).endpoint().tx().size_left();
}

fi_ops ep_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_endpoint,
    .bind = ep_bind,
    .control = ep_control,
    .ops_open = no_ops_open,
    .tostr = no_tostr,
    .ops_set = no_ops_set,
};

fi_ops_ep ep_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = ep_cancel,
    .getopt = ep_getopt,
    .setopt = ep_setopt,
    .tx_ctx = not_supported<&fi_ops_ep::tx_ctx>,
    .rx_ctx = not_supported<&fi_ops_ep::rx_ctx>,
    .rx_size_left = ep_rx_size_left,
    .tx_size_left = ep_tx_size_left,
};

fi_ops_cm cm_ops = name_only(ep_getname, ep_setname);

int ep_getpeer(fid_ep* ep, void* address, std::size_t* length) noexcept {
  return guarded([&] {
    Endpoint& endpoint = EndpointFid::from(ep).endpoint();
    if (endpoint.engine().dead()) return -FI_EOPNOTSUPP;
    return endpoint.connection()->get_peer(address, length);
  });
}

int ep_connect(fid_ep* ep, const void* address, const void* data, std::size_t length) noexcept {
  return guarded(
      [&] { return EndpointFid::from(ep).endpoint().connect(ep->fid, address, data, length); });
}

int ep_accept(fid_ep* ep, const void* data, std::size_t length) noexcept {
  return guarded([&] { return EndpointFid::from(ep).endpoint().accept(ep->fid, data, length); });
}

int ep_shutdown(fid_ep* ep, std::uint64_t flags) noexcept {
  return guarded([&] { return EndpointFid::from(ep).endpoint().shutdown(flags); });
}

fi_ops_cm connection_ops = {
    .size = sizeof(fi_ops_cm),
    .setname = ep_setname,
    .getname = ep_getname,
    .getpeer = ep_getpeer,
    .connect = ep_connect,
    .listen = not_supported<&fi_ops_cm::listen>,
    .accept = ep_accept,
    .reject = not_supported<&fi_ops_cm::reject>,
    .shutdown = ep_shutdown,
    .join = not_supported<&fi_ops_cm::join>,
};

}  // namespace

EndpointFid::EndpointFid(std::shared_ptr<Endpoint> endpoint, std::uint64_t tx_op_flags,
                         std::uint64_t rx_op_flags, void* context)
    : fid_ep{},
      endpoint_(std::move(endpoint)),
      tx_op_flags_(tx_op_flags),
      rx_op_flags_(rx_op_flags) {
  const EndpointRole role = endpoint_->role();
  const bool transmits = role != EndpointRole::Receive;
  fid.fclass = role == EndpointRole::Both ? FI_CLASS_EP
               : transmits                ? FI_CLASS_TX_CTX
                                          : FI_CLASS_RX_CTX;
  fid.context = context;
  fid.ops = &ep_fid_ops;
  ops = &ep_ops;
  cm = endpoint_->connection() != nullptr ? &connection_ops : &cm_ops;
  msg = role == EndpointRole::Both ? &msg_ops : transmits ? &tx_msg_ops : &rx_msg_ops;
  const bool datagrams = endpoint_->type().type == FI_EP_DGRAM;
  tagged = role == EndpointRole::Both ? &tagged_ops : transmits ? &tx_tagged_ops : &rx_tagged_ops;
  if (datagrams) tagged = &no_tagged;
  rma = transmits && !datagrams ? &rma_ops : &no_rma;
  atomic = transmits && !datagrams ? &atomic_ops : &no_atomics;
  collective = &no_collectives;
}

int EndpointFid::close() noexcept {
  const bool last = endpoint_.use_count() == 1;
  if (last && endpoint_->references().any()) return -FI_EBUSY;
  delete this;
  return 0;
}

// Each flag set says with FI_TRANSMIT or FI_RECV whose defaults are meant.
int EndpointFid::op_flags(int command, std::uint64_t& flags) noexcept {
  if (command == FI_SETOPSFLAG) return set_op_flags(flags);
  const std::uint64_t side = flags & (FI_TRANSMIT | FI_RECV);
  if (side != FI_TRANSMIT && side != FI_RECV) {
    return refuse_endpoint(
        -FI_EINVAL,
        "fi_control: endpoint: FI_GETOPSFLAG without a side; pass either FI_TRANSMIT or FI_RECV");
  }
  flags = side == FI_TRANSMIT ? tx_op_flags_ : rx_op_flags_;
  return 0;
}

int EndpointFid::set_op_flags(std::uint64_t flags) noexcept {
  const std::uint64_t side = flags & (FI_TRANSMIT | FI_RECV);
  const std::uint64_t value = flags & ~side;
  if (side != FI_TRANSMIT && side != FI_RECV) {
    return refuse_endpoint(
        -FI_EINVAL,
        "fi_control: endpoint: operation flags without a side; pass either FI_TRANSMIT or FI_RECV");
  }
  const bool tx = side == FI_TRANSMIT;
  if ((value & ~(tx ? endpoint_->type().tx_op_flags : kRxOpFlags)) != 0) {
    return refuse_endpoint(
        -FI_EINVAL, "fi_control: endpoint: unsupported operation flag; pass those of fi_getinfo");
  }
  (tx ? tx_op_flags_ : rx_op_flags_) = value;
  return 0;
}

// Flags of 0 inherit everything from this handle.
int EndpointFid::alias(const struct fi_alias& request) {
  auto handle = std::make_unique<EndpointFid>(endpoint_, tx_op_flags_, rx_op_flags_, fid.context);
  if (request.flags != 0) {
    if (const int result = handle->set_op_flags(request.flags); result != 0) return result;
  }
  *request.fid = &handle.release()->fid;
  return 0;
}

int EndpointFid::control(int command, void* argument) {
  if (endpoint_->engine().dead()) return -FI_EOPNOTSUPP;
  if (command == FI_ENABLE) return endpoint_->enable();
  const bool known = command == FI_ALIAS || command == FI_GETOPSFLAG || command == FI_SETOPSFLAG;
  if (!known) return -FI_ENOSYS;
  if (argument == nullptr)
    return refuse_endpoint(-FI_EINVAL, "fi_control: endpoint: the argument is NULL; pass one");
  if (command == FI_ALIAS) return alias(*static_cast<struct fi_alias*>(argument));
  return op_flags(command, *static_cast<std::uint64_t*>(argument));
}

namespace {

bool is_for_connections(const fi_info& info) {
  return info.ep_attr != nullptr && info.tx_attr != nullptr && info.rx_attr != nullptr &&
         info.ep_attr->type == FI_EP_MSG;
}

// The address of an info for connections may be that of a listener, or in use: peers learn the
// endpoint's own address when it connects, so that any one serves.
int take_identity(Domain& domain, const fi_info& info, EndpointConfig& config) {
  if (config.connections == nullptr) return Identity::take(domain, info, 1, config.identity);
  std::optional<av::UetAddress> wanted;
  if (PassiveEndpoint::is_open(info.handle)) {
    const int result = Identity::take_any(domain, info, config.identity);
    const av::UetAddress& name = PassiveEndpoint::from(info.handle).name();
    if (result != 0 || name.udp_port != domain.engine().local_address().port) return result;
    return config.identity->rename(name);
  }
  if (info.handle == nullptr && info.src_addr != nullptr) {
    wanted = AddressFormat::decode(info.addr_format, info.src_addr, info.src_addrlen);
  }
  const bool usable = wanted && wanted->udp_port == domain.engine().local_address().port &&
                      Identity::take(domain, info, 1, config.identity) == 0;
  if (usable) return 0;
  return Identity::take_any(domain, info, config.identity);
}

// fi_cm(3): the info of an FI_CONNREQ names the request that fi_accept answers.
int take_handle(const fi_info& info, Endpoint& endpoint) {
  // fi_endpoint(3): a passive endpoint may stand for an address, which is that of src_addr.
  if (info.handle == nullptr || PassiveEndpoint::is_open(info.handle)) return 0;
  auto request = take_request(info.handle);
  if (!request) {
    return refuse_endpoint(
        -FI_EINVAL,
        "fi_endpoint: info.handle: not of an unanswered FI_CONNREQ; pass the info of the event");
  }
  endpoint.connection()->set_request(*request);
  return 0;
}

}  // namespace

int endpoint_open(fid_domain* domain, fi_info* info, fid_ep** ep, void* context) noexcept {
  return guarded([&] {
    Domain& parent = Domain::from(domain);
    if (parent.engine().dead()) return -FI_EOPNOTSUPP;
    EndpointConfig config;
    if (is_for_connections(*info)) {
      const int result = parent.connections(config.connections);
      if (result != 0) return result;
    } else if (!is_connectionless(*info)) {
      return refuse_endpoint(-FI_EINVAL,
                             "fi_endpoint: ep_attr.type: not FI_EP_RDM, FI_EP_MSG or FI_EP_DGRAM; "
                             "use an info of fi_getinfo");
    }
    config.caps = info->caps;
    config.mode = delivery_mode(info->ep_attr->type, *info->tx_attr, *info->rx_attr);
    config.traffic_class = traffic_class_of(tclass_of(*info));
    config.inject_size = info->tx_attr->inject_size;
    config.tx_iov_limit = info->tx_attr->iov_limit;
    config.rx_iov_limit = info->rx_attr->iov_limit;
    config.tx_size = info->tx_attr->size;
    config.rx_size = info->rx_attr->size;
    config.shares_tx = info->ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT;
    config.shares_rx = info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT;
    config.data_takes_receive = data_take_receives(info->mode | info->rx_attr->mode, *info);
    int result = take_identity(parent, *info, config);
    std::shared_ptr<Endpoint> opened;
    if (result == 0) result = Endpoint::open(parent, config, context, opened);
    if (result == 0 && config.connections != nullptr) result = take_handle(*info, *opened);
    if (result != 0) return result;
    *ep = std::make_unique<EndpointFid>(std::move(opened), info->tx_attr->op_flags,
                                        info->rx_attr->op_flags, context)
              .release();
    return 0;
  });
}

}  // namespace uet::prov
