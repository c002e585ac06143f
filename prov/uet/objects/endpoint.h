// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One context of SES, bound to queues, counters and an address vector: a plain endpoint, or a
// transmit or receive context of a scalable endpoint. Applications reach it through handles
// (endpoint_fid.h).
#pragma once

#include <rdma/fi_endpoint.h>

#include <memory>
#include <optional>
#include <vector>

#include "objects/av_fid.h"
#include "objects/connection_side.h"
#include "objects/engine.h"
#include "objects/ep_bindings.h"
#include "objects/ep_options.h"
#include "objects/ep_reporter.h"
#include "objects/ep_state.h"
#include "objects/eq.h"
#include "objects/identity.h"
#include "objects/references.h"
#include "objects/rx_side.h"
#include "objects/shared_ctx.h"
#include "objects/tx_division.h"
#include "objects/tx_side.h"
#include "submission/submission.h"
#include "uet/ses/api.h"

namespace uet::prov {

class Domain;
class Endpoint;
class ScalableEndpoint;

// The arguments to create an endpoint.
struct EndpointConfig {
  EndpointRole role = EndpointRole::Both;
  Endpoint* whole = nullptr;  // whose part it is (tx_division.h): of another engine, and
  Engine* engine = nullptr;   // this is the one
  std::shared_ptr<Identity> identity;
  ScalableEndpoint* parent = nullptr;  // whose AV it uses
  std::size_t index = 0;               // of a receive context within the identity
  bool shares_tx = false;              // needs a shared transmit context (FI_SHARED_CONTEXT)
  bool shares_rx = false;              // needs a shared receive context
  bool data_takes_receive = false;     // FI_RX_CQ_DATA
  std::uint64_t caps = 0;
  DeliveryMode mode = DeliveryMode::Rud;
  CmHub* connections = nullptr;  // of an endpoint of FI_EP_MSG
  std::size_t inject_size = 0;
  std::size_t tx_iov_limit = 0;  // 0: as many pieces as SES takes
  std::size_t rx_iov_limit = 0;
  std::size_t tx_size = 0;  // 0: the domain's default
  std::size_t rx_size = 0;
  std::uint8_t traffic_class = 0;  // traffic_class_of
};

// Has all attributes, and they are those of FI_EP_RDM, FI_EP_DGRAM or no type.
bool is_connectionless(const fi_info& info);

// UUD for FI_EP_DGRAM, ROD for FI_EP_MSG; else any order asked for makes a ROD endpoint (SES-124).
DeliveryMode delivery_mode(fi_ep_type type, const fi_tx_attr& tx, const fi_rx_attr& rx);

// That of tx_attr, else the default of the domain (fi_endpoint(3), tclass).
std::uint32_t tclass_of(const fi_info& info);

class Endpoint final {
 public:
  // `context` is the application's.
  static int open(Domain& domain, const EndpointConfig& config, void* context,
                  std::shared_ptr<Endpoint>& out);
  // Waits a little for operations in progress; what is left then is dropped without a completion.
  ~Endpoint();

  Engine& engine() { return engine_; }
  EndpointRole role() const { return role_; }
  const EndpointType& type() const { return state_.type(); }
  ri::ContextName context_name() const {
    return {state_.config.pid_on_fep, state_.config.resource_index};
  }
  const AvFid* av() const { return state_.av; }
  TxSide& tx() { return tx_; }
  RxSide& rx() { return rx_; }
  // Where completions go.
  EpReporter& reporter() { return reporter_; }
  // nullptr: not of FI_EP_MSG.
  ConnectionSide* connection() { return connection_ ? &*connection_ : nullptr; }
  // Of objects that must be closed before the last handle.
  References& references() { return references_; }

  // The control calls of the same name; `self` is the handle.
  int bind(struct fid* other, struct fid* self, std::uint64_t flags);
  int enable();
  int get_name(void* address, std::size_t* length) const {
    const av::UetAddress* shown = connection_ ? connection_->shown_name() : nullptr;
    return identity_->get_name(address, length, shown);
  }
  int set_name(const void* address, std::size_t length);
  // fi_connect, fi_accept and fi_shutdown; -FI_ENOSYS for other types than FI_EP_MSG.
  int connect(struct fid& self, const void* address, const void* data, std::size_t length);
  int accept(struct fid& self, const void* data, std::size_t length);
  int shutdown(std::uint64_t flags);
  int get_option(int name, void* value, std::size_t* length) noexcept;
  int set_option(int name, const void* value, std::size_t length) noexcept;
  ssize_t cancel(void* operation_context) noexcept;

  // Fixed from fi_enable on.
  EpBindings& bindings() { return bindings_; }
  const ReceiveSettings& receive_settings() const { return options_.receive(); }

  // Ends an operation that was never posted as if it had been cancelled; with the domain's lock.
  // False: the CQ cannot take its completion now.
  bool end_unposted(ses::Kind kind, void* operation_context, std::uint64_t user_flags) noexcept;

 private:
  friend class TxDivision;  // opens and closes its parts
  // `domain`: nullptr of a part.
  Endpoint(Domain* domain, const EndpointConfig& config, void* context);
  // Also replaces one that is not enabled yet.
  void use_identity(std::size_t index);
  int open_context() noexcept;
  int bind_av(AvFid& av);
  int bind_eq(Eq& eq, struct fid& self, std::uint64_t flags);
  int bind_stx(Stx& stx);
  int bind_srx(Srx& srx);
  void share_slots(const std::shared_ptr<TxSlots>& slots) noexcept;
  // Does it transmit or receive?
  bool sends() const;
  int open_submission() noexcept;
  ssize_t cancel_here(void* operation_context) noexcept;
  bool receives() const;
  int after_bind(int result);
  void bindings_changed() noexcept UET_REQUIRES(engine_.lock());
  int set_queue_size(int name, std::size_t wanted) noexcept;

  Engine& engine_;
  const EndpointConfig config_;
  References references_;
  std::vector<Hold> holds_;
  const std::shared_ptr<Identity> identity_;
  ScalableEndpoint* const parent_;
  const EndpointRole role_;
  EpState state_;
  EpBindings bindings_;
  EpReporter reporter_;
  EpOptions options_;
  TxSide tx_;
  RxSide rx_;
  std::unique_ptr<Submission> submission_;  // from fi_enable on, if Submissions::active()
  EqBinding eq_;
  std::optional<ConnectionSide> connection_;
  Srx* srx_ = nullptr;
  std::optional<TxDivision> division_;  // from fi_enable on, if may_divide()
};

}  // namespace uet::prov
