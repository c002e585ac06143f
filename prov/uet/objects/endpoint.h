// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One context of SES, bound to queues, counters and an address vector: a plain endpoint, or a
// transmit or receive context of a scalable endpoint. Applications reach it through handles
// (endpoint_fid.h).
// The data transfer calls (msg.cc, tagged.cc, rma.cc) fill in a TxCall or RxCall and come here.
#pragma once

#include <rdma/fi_endpoint.h>
#include <sys/uio.h>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hmem/hmem.h"
#include "objects/av_fid.h"
#include "objects/cntr.h"
#include "objects/cq.h"
#include "objects/engine.h"
#include "objects/ep_options.h"
#include "objects/eq.h"
#include "objects/identity.h"
#include "objects/post_receive.h"
#include "objects/references.h"
#include "objects/shared_ctx.h"
#include "settings/hints.h"
#include "uet/ses/api.h"

namespace uet::prov {

class Domain;
class ScalableEndpoint;

// The arguments that all transmitting calls have in common.
struct TxCall {
  const iovec* iov = nullptr;
  std::size_t count = 0;
  fi_addr_t to = FI_ADDR_UNSPEC;
  void* context = nullptr;
  std::uint64_t flags = 0;             // of this call: FI_COMPLETION, FI_INJECT, FI_MORE ...
  std::optional<std::uint64_t> data;   // remote CQ data
  void* const* descriptors = nullptr;  // one for each piece, or none
  bool locked = false;                 // the caller has the domain's lock (WorkQueue)
  std::uint64_t mark = 0;              // goes into the user flags of SES beside `flags`
  bool places = false;                 // bytes come back: fi_read
};

struct AtomicCall;

enum class EndpointRole : std::uint8_t { Both, Transmit, Receive };

// The arguments to create an endpoint.
struct EndpointConfig {
  EndpointRole role = EndpointRole::Both;
  std::shared_ptr<Identity> identity;
  ScalableEndpoint* parent = nullptr;  // whose AV it uses
  std::size_t index = 0;               // of a receive context within the identity
  bool shares_tx = false;              // needs a shared transmit context (FI_SHARED_CONTEXT)
  bool shares_rx = false;              // needs a shared receive context
  std::uint64_t caps = 0;
  DeliveryMode mode = DeliveryMode::Rud;
  std::size_t inject_size = 0;
  std::size_t tx_size = 0;  // 0: the domain's default
  std::size_t rx_size = 0;
  std::uint8_t traffic_class = 0;  // traffic_class_of
};

// Has all attributes, and they are not those of an endpoint type that is not offered.
bool is_connectionless(const fi_info& info);

// UUD for FI_EP_DGRAM; else any order asked for makes a ROD endpoint (SES-124).
DeliveryMode delivery_mode(fi_ep_type type, const fi_tx_attr& tx, const fi_rx_attr& rx);

// That of tx_attr, else the default of the domain (fi_endpoint(3), tclass).
std::uint32_t tclass_of(const fi_info& info);

class Endpoint final : public ses::CompletionSink {
 public:
  // `context` is the application's.
  static int open(Domain& domain, const EndpointConfig& config, void* context,
                  std::shared_ptr<Endpoint>& out);
  // Waits a little for operations in progress; what is left then is dropped without a completion.
  ~Endpoint() override;

  Engine& engine() { return engine_; }
  EndpointRole role() const { return role_; }
  const EndpointType& type() const {
    return ses_config_.mode == DeliveryMode::Uud ? kDgram : rdm_of(engine_.params().profile);
  }
  ResourceIndex resource_index() const { return ses_config_.resource_index; }
  const AvFid* av() const { return av_; }
  // Of objects that must be closed before the last handle.
  References& references() { return references_; }

  // The control calls of the same name; `self` is the handle.
  int bind(struct fid* other, struct fid* self, std::uint64_t flags);
  int enable();
  int get_name(void* address, std::size_t* length) const {
    return identity_->get_name(address, length);
  }
  int set_name(const void* address, std::size_t length);
  int get_option(int name, void* value, std::size_t* length) noexcept;
  int set_option(int name, const void* value, std::size_t length) noexcept;
  ssize_t cancel(void* operation_context) noexcept;
  ssize_t tx_size_left() noexcept;
  ssize_t rx_size_left() noexcept;

  // FI_COMPLETION unless completions of this side are selective; fixed from fi_enable on.
  std::uint64_t tx_always() const { return tx_always_; }
  std::uint64_t rx_always() const { return rx_always_; }

  // Post operations: 0 or a negative fi_errno, -FI_EAGAIN if no slot is free now.
  ssize_t send(const TxCall& call, std::optional<std::uint64_t> tag) noexcept;
  ssize_t write(const TxCall& call, std::uint64_t remote, std::uint64_t key) noexcept;
  ssize_t read(const TxCall& call, std::uint64_t remote, std::uint64_t key) noexcept;
  ssize_t atomic(const AtomicCall& call) noexcept;
  ssize_t receive(const RxCall& call) noexcept;
  const ReceiveSettings& receive_settings() const { return receive_settings_; }

  // Ends an operation that was never posted as if it had been cancelled; with the domain's lock.
  // False: the CQ cannot take its completion now.
  bool end_unposted(ses::Kind kind, void* operation_context, std::uint64_t user_flags) noexcept;

  // ses::CompletionSink, under the domain's lock.
  void complete(const ses::Completion& completion) noexcept override;
  bool can_take_event() noexcept override;
  bool reserve_receive() noexcept override;
  void release_receive() noexcept override;
  void remote_access(ses::Kind kind, std::uint64_t length) noexcept override;

 private:
  enum CounterIndex { kSend, kRecv, kRead, kWrite, kRemoteRead, kRemoteWrite, kCounters };

  Endpoint(Domain& domain, const EndpointConfig& config, void* context);
  // Also replaces one that is not enabled yet.
  void use_identity(std::size_t index);
  int open_context() noexcept;
  int bind_av(AvFid& av);
  int bind_stx(Stx& stx);
  int bind_srx(Srx& srx);
  int bind_cq(Cq& cq, std::uint64_t flags);
  int bind_counter(Cntr& counter, std::uint64_t flags);
  // Does it transmit or receive, and does a bound CQ or counter report that?
  bool sends() const;
  bool receives() const;
  bool hears_of_sends() const;
  bool hears_of_receives() const;
  bool hears_of_cq_data() const;
  void bindings_changed() noexcept UET_REQUIRES(engine_.lock());
  int set_limit(int name, std::size_t wanted) noexcept;
  int set_queue_size(int name, std::size_t wanted) noexcept;
  int set_size(int name, std::size_t wanted) noexcept;
  int set_hmem_p2p(int wanted) noexcept;
  int set_permission(int name, bool permitted) noexcept;
  bool is_awaited(const TxCall& call) const noexcept;
  bool take_tx_room() noexcept;
  void give_back_tx_room() noexcept;
  void tell(const ses::Completion& completion) noexcept;
  bool keep_sender(const ses::Completion& completion) noexcept;
  void describe_receive(const ses::Completion& completion, Cq::Entry& entry) noexcept;
  Cq* queue_of(ses::Kind kind) const;
  Cntr* counter_of(ses::Kind kind) const;
  void warn_refused(wire::ReturnCode code) const noexcept;
  int may_defer() const noexcept;
  ssize_t defer_atomic(const AtomicCall& call, const TxCall& tx,
                       std::uint32_t element_bytes) noexcept;
  ssize_t defer(const RxCall& call) noexcept;
  template <class Post>
  ssize_t defer(ses::Kind kind, const TxCall& call, Post post) noexcept;
  template <class Op, class Post>
  ssize_t transmit(const TxCall& call, TransferKind kind, Op& op, Post post) noexcept;
  int stage_devices(const TxCall& call, std::span<ses::IoSlice> slices, Staged*& staged) noexcept;
  ses::Completion unstage(const ses::Completion& completion) noexcept;
  ssize_t post_rma(const TxCall& call, std::uint64_t remote, std::uint64_t key,
                   Result<void> (ses::Ses::*post)(ses::Context&, const ses::RmaOp&, Time)) noexcept;
  ssize_t post_atomic(const TxCall& call, ses::AtomicOp& op) noexcept;
  int refuse(int error, const char* why) const noexcept;

  Engine& engine_;
  References references_;
  void* const context_;
  std::vector<Hold> holds_;
  const std::shared_ptr<Identity> identity_;
  ScalableEndpoint* const parent_;
  const EndpointRole role_;
  const std::uint64_t caps_;
  ses::ContextConfig ses_config_;
  ses::Context* ses_context_ = nullptr;

  EqBinding eq_;
  AvFid* av_ = nullptr;
  Stx* stx_ = nullptr;
  Srx* srx_ = nullptr;
  Cq* tx_cq_ = nullptr;
  Cq* rx_cq_ = nullptr;
  std::array<Cntr*, kCounters> counters_{};
  const bool shares_tx_;
  const bool shares_rx_;
  bool enabled_ = false;
  bool may_send_ = false;     // enabled, and for that
  bool may_tag_ = true;       // its type has tagged messages
  bool may_receive_ = false;  // the same
  std::uint64_t tx_always_ = FI_COMPLETION;
  std::uint64_t rx_always_ = FI_COMPLETION;
  const std::size_t max_msg_size_;
  const std::size_t inject_size_;
  SizeLimits limits_;
  ReceiveSettings receive_settings_;
  int hmem_p2p_ = FI_HMEM_P2P_ENABLED;  // FI_OPT_FI_HMEM_P2P; nothing depends on it
  StagedList staged_;                   // operations that send copies of device memory
  std::size_t tx_outstanding_ = 0;      // each holds a place in tx_cq_
  std::size_t rx_outstanding_ = 0;      // each holds a place in rx_cq_
};

}  // namespace uet::prov
