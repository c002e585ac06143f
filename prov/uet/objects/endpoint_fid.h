// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fid_ep: a handle on an Endpoint with default operation flags of its own. fi_ep_alias makes more
// handles on the same Endpoint; it ends with the last of them.
#pragma once

#include <rdma/fi_endpoint.h>

#include <memory>

#include "objects/endpoint.h"

namespace uet::prov {

// fi_ops_domain.endpoint: fi_endpoint(3).
int endpoint_open(fid_domain* domain, fi_info* info, fid_ep** ep, void* context) noexcept;

// All calls, those of a transmit context, those of a receive context.
extern fi_ops_msg msg_ops, tx_msg_ops, rx_msg_ops;
extern fi_ops_tagged tagged_ops, tx_tagged_ops, rx_tagged_ops;
extern fi_ops_rma rma_ops;
extern fi_ops_atomic atomic_ops;

class EndpointFid final : public fid_ep {
 public:
  // Checks nothing: `fid` came to us through one of our tables.
  static EndpointFid& from(fid_ep* fid) { return static_cast<EndpointFid&>(*fid); }
  static EndpointFid& from(struct fid* fid) { return from(reinterpret_cast<fid_ep*>(fid)); }
  EndpointFid(std::shared_ptr<Endpoint> endpoint, std::uint64_t tx_op_flags,
              std::uint64_t rx_op_flags, void* context);

  Endpoint& endpoint() const { return *endpoint_; }

  // Flags of calls that carry none of their own (fi_send ...): the handle's op_flags, and
  // FI_COMPLETION unless completions are selective.
  std::uint64_t tx_flags() const { return tx_op_flags_ | endpoint_->bindings().tx_always(); }
  std::uint64_t rx_flags() const { return rx_op_flags_ | endpoint_->bindings().rx_always(); }
  std::uint64_t tagged_rx_flags() const {
    return endpoint_->receive_settings().tagged_defaults(rx_flags());
  }
  // The same for the ...msg calls, which bring their flags along.
  std::uint64_t tx_msg_flags(std::uint64_t flags) const {
    return flags | endpoint_->bindings().tx_always();
  }
  std::uint64_t rx_msg_flags(std::uint64_t flags) const {
    return flags | endpoint_->bindings().rx_always();
  }
  // Calls of the inject family never write an entry on success.
  std::uint64_t inject_flags() const {
    return (tx_op_flags_ & ~static_cast<std::uint64_t>(FI_COMPLETION)) | FI_INJECT;
  }

  // Implementations of the calls of the same name; the handle is gone after a successful close.
  int close() noexcept;
  int control(int command, void* argument);

 private:
  int alias(const struct fi_alias& request);
  int op_flags(int command, std::uint64_t& flags) noexcept;
  int set_op_flags(std::uint64_t flags) noexcept;

  const std::shared_ptr<Endpoint> endpoint_;
  std::uint64_t tx_op_flags_;
  std::uint64_t rx_op_flags_;
};

}  // namespace uet::prov
