// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fid_ep of class FI_CLASS_SEP: one address with several transmit and receive contexts. Receive
// context i is resource index start + i on the wire (SES-15); all transmit contexts send under the
// same initiator id, so that a peer's AV finds this address as the source (SES-20).
#pragma once

#include <rdma/fi_endpoint.h>

#include <memory>
#include <vector>

#include "objects/endpoint.h"
#include "objects/eq.h"
#include "objects/identity.h"
#include "objects/references.h"

namespace uet::prov {

class Domain;

// fi_ops_domain.scalable_ep: fi_scalable_ep(3).
int scalable_ep_open(fid_domain* domain, fi_info* info, fid_ep** sep, void* context) noexcept;

class ScalableEndpoint final : public fid_ep {
 public:
  static ScalableEndpoint& from(fid_ep* fid) { return static_cast<ScalableEndpoint&>(*fid); }
  static ScalableEndpoint& from(struct fid* fid) { return from(reinterpret_cast<fid_ep*>(fid)); }
  static int open(Domain& domain, const fi_info& info, void* context, ScalableEndpoint*& out);

  // Implementations of the calls of the same name. `attr`: attributes of the context; nullptr, or
  // zeros in it, stand for the values of the endpoint.
  int close() noexcept;
  int bind(struct fid* other, std::uint64_t flags);
  int control(int command) noexcept;
  int get_name(void* address, std::size_t* length) const {
    return identity_->get_name(address, length);
  }
  int open_tx(int index, fi_tx_attr* attr, fid_ep** ep, void* context);
  int open_rx(int index, fi_rx_attr* attr, fid_ep** ep, void* context);

  Engine& engine() { return identity_->engine(); }
  const Identity& identity() const { return *identity_; }
  References& references() { return references_; }
  // Bound so far; nullptr if none is.
  AvFid* av() const { return av_; }

 private:
  // Contexts by index; the endpoints end with their handles.
  using Contexts = std::vector<std::weak_ptr<Endpoint>>;

  ScalableEndpoint(Domain& domain, const fi_info& info, void* context);
  EndpointConfig config_of(EndpointRole role, const fi_tx_attr& tx, const fi_rx_attr& rx);
  int open_context(Contexts& contexts, int index, const EndpointConfig& config,
                   std::uint64_t tx_op_flags, std::uint64_t rx_op_flags, fid_ep** ep,
                   void* context);

  Domain& domain_;
  Hold hold_;
  References references_;
  std::shared_ptr<Identity> identity_;
  const EndpointType& type_;
  fi_tx_attr tx_attr_;
  fi_rx_attr rx_attr_;
  AvFid* av_ = nullptr;
  Hold av_hold_;
  EqBinding eq_;
  Contexts tx_;
  Contexts rx_;
};

}  // namespace uet::prov
