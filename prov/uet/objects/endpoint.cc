// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Life of an endpoint: open, bind, enable, end.
#include "objects/endpoint.h"

#include <algorithm>
#include <utility>

#include "errors.h"
#include "objects/domain.h"
#include "objects/scalable_ep.h"
#include "provider.h"
#include "settings/hints.h"

namespace uet::prov {

bool is_connectionless(const fi_info& info) {
  return info.ep_attr != nullptr && info.tx_attr != nullptr && info.rx_attr != nullptr &&
         (info.ep_attr->type == FI_EP_RDM || info.ep_attr->type == FI_EP_DGRAM ||
          info.ep_attr->type == FI_EP_UNSPEC);
}

DeliveryMode delivery_mode(fi_ep_type type, const fi_tx_attr& tx, const fi_rx_attr& rx) {
  if (type == FI_EP_DGRAM) return DeliveryMode::Uud;
  return (tx.msg_order | rx.msg_order) != 0 ? DeliveryMode::Rod : DeliveryMode::Rud;
}

std::uint32_t tclass_of(const fi_info& info) {
  if (info.tx_attr->tclass != FI_TC_UNSPEC || info.domain_attr == nullptr) {
    return info.tx_attr->tclass;
  }
  return info.domain_attr->tclass;
}

Endpoint::Endpoint(Domain& domain, const EndpointConfig& config, void* context)
    : engine_(domain.engine()),
      context_(context),
      identity_(config.identity),
      parent_(config.parent),
      role_(config.role),
      caps_(config.caps),
      shares_tx_(config.shares_tx),
      shares_rx_(config.shares_rx),
      max_msg_size_(config.mode == DeliveryMode::Uud ? engine_.payload_mtu() : kMaxMsgSize),
      inject_size_(config.inject_size) {
  holds_.emplace_back(domain.references());
  if (parent_ != nullptr) holds_.emplace_back(parent_->references());
  ses_config_.job = identity_->job();
  use_identity(config.index);
  ses_config_.receives = role_ != EndpointRole::Transmit;
  ses_config_.mode = config.mode;
  ses_config_.traffic_class = config.traffic_class;
  ses_config_.tx_size = config.tx_size != 0 ? config.tx_size : engine_.params().tx_size;
  ses_config_.rx_size = config.rx_size != 0 ? config.rx_size : engine_.params().rx_size;
  receive_settings_ = ReceiveSettings::of(caps_);
  ses_config_.directed_receive = receive_settings_.tagged_directed;
  may_tag_ = (type().caps & FI_TAGGED) != 0;
  limits_.most.fill(max_msg_size_);
  limits_.most[kAtomic] = engine_.payload_mtu();  // one packet (SES-90)
  limits_.inject.fill(config.inject_size);
}

Endpoint::~Endpoint() {
  if (engine_.dead() || ses_context_ == nullptr) return;
  const Guard guard(engine_.lock());
  auto& ses = engine_.fep().ses();
  engine_.works().drop(*this, false);
  ses.hurry(*ses_context_);
  engine_.linger([&] { return ses.outstanding(*ses_context_) == 0; });
  ses.close_context(*ses_context_, clock_now());
  engine_.works().drop(*this, true);
  while (!staged_.empty()) delete &staged_.pop_front();
  if (srx_ != nullptr) srx_->leave(*this);
  if (stx_ != nullptr) stx_->give_back(tx_outstanding_);
  if (tx_cq_ != nullptr) tx_cq_->release(tx_outstanding_);
  if (rx_cq_ != nullptr) rx_cq_->release(rx_outstanding_);
}

void Endpoint::use_identity(std::size_t index) {
  const av::UetAddress& name = identity_->name();
  ses_config_.pid_on_fep = name.pid_on_fep;
  ses_config_.resource_index = identity_->resource_index(index);
  ses_config_.initiator = name.initiator_id;
  ses_config_.relative = !name.has(av::kAbsolute);
  ses_config_.own_job_only = identity_->has_auth_key();
}

// IP address and UDP port stay: they are the domain's.
int Endpoint::set_name(const void* address, std::size_t length) {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (enabled_) return refuse(-FI_EOPBADSTATE, "call fi_setname before fi_enable");
  if (parent_ != nullptr) return refuse(-FI_EOPNOTSUPP, "fi_setname: not for a context");
  const auto wanted = AddressFormat::decode(identity_->format().addr_format(), address, length);
  if (!wanted) return refuse(-FI_EINVAL, "fi_setname: use the domain's addr_format");
  if (const int result = identity_->rename(*wanted); result != 0) return result;
  use_identity(0);
  return open_context();
}

int Endpoint::open_context() noexcept {
  const Guard guard(engine_.lock());
  auto& ses = engine_.fep().ses();
  if (ses_context_ != nullptr) ses.close_context(*ses_context_, clock_now());
  ses_context_ = nullptr;
  try {
    const auto opened = ses.open_context(ses_config_, *this);
    if (!opened) return refuse(to_fi_errno(opened.error()), "another endpoint has these ids");
    ses_context_ = opened.value();
    return 0;
  } catch (const std::bad_alloc&) {
    return refuse(-FI_ENOMEM, "no memory for its queues");
  }
}

int Endpoint::open(Domain& domain, const EndpointConfig& config, void* context,
                   std::shared_ptr<Endpoint>& out) {
  if (config.tx_size > kMaxTxSize || config.rx_size > kMaxRxSize) {
    FI_WARN(&provider, FI_LOG_EP_CTRL, "fi_endpoint: tx_attr.size or rx_attr.size is too large\n");
    return -FI_EINVAL;
  }
  std::shared_ptr<Endpoint> endpoint(new Endpoint(domain, config, context));
  if (const int result = endpoint->open_context(); result != 0) return result;
  out = std::move(endpoint);
  return 0;
}

int Endpoint::bind_cq(Cq& cq, std::uint64_t flags) {
  const std::uint64_t sides = (role_ != EndpointRole::Receive ? FI_TRANSMIT : 0) |
                              (role_ != EndpointRole::Transmit ? FI_RECV : 0);
  const bool tx = (flags & FI_TRANSMIT) != 0;
  const bool rx = (flags & FI_RECV) != 0;
  if (&cq.engine() != &engine_) return refuse(-FI_EDOMAIN, "the CQ belongs to another domain");
  if ((flags & ~(sides | FI_SELECTIVE_COMPLETION)) != 0 || (!tx && !rx) ||
      (tx && tx_cq_ != nullptr) || (rx && rx_cq_ != nullptr)) {
    return refuse(-FI_EINVAL, "bind a CQ with FI_TRANSMIT or FI_RECV, each once");
  }
  const Guard guard(engine_.lock());
  // Operations that were posted before this CQ was bound complete in it.
  const std::size_t posted = (tx ? tx_outstanding_ : 0) + (rx ? rx_outstanding_ : 0);
  for (std::size_t i = 0; i < posted; ++i) {
    if (cq.reserve()) continue;
    cq.release(i);
    return refuse(-FI_ENOMEM, "the CQ cannot hold the operations posted already; bind it earlier");
  }
  holds_.emplace_back(cq.references());
  const std::uint64_t always = (flags & FI_SELECTIVE_COMPLETION) != 0 ? 0 : FI_COMPLETION;
  if (tx) {
    tx_cq_ = &cq;
    tx_always_ = always;
  }
  if (rx) {
    rx_cq_ = &cq;
    rx_always_ = always;
  }
  bindings_changed();
  return 0;
}

int Endpoint::bind_counter(Cntr& counter, std::uint64_t flags) {
  static constexpr std::array<std::uint64_t, kCounters> kBits = {
      FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE};
  constexpr std::uint64_t kTransmits = FI_SEND | FI_READ | FI_WRITE;
  constexpr std::uint64_t kReceives = FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE;
  if (&counter.engine() != &engine_) {
    return refuse(-FI_EDOMAIN, "the counter belongs to another domain");
  }
  std::uint64_t left = flags;
  if (role_ != EndpointRole::Receive) left &= ~kTransmits;
  if (role_ != EndpointRole::Transmit) left &= ~kReceives;
  if (left != 0) return refuse(-FI_EINVAL, "fi_ep_bind: unsupported counter flags");
  for (std::size_t i = 0; i < kCounters; ++i) {
    if ((flags & kBits[i]) != 0 && counters_[i] != nullptr) {
      return refuse(-FI_EINVAL, "a counter is bound to these flags already");
    }
  }
  const Guard guard(engine_.lock());
  holds_.emplace_back(counter.references());
  for (std::size_t i = 0; i < kCounters; ++i) {
    if ((flags & kBits[i]) != 0) counters_[i] = &counter;
  }
  bindings_changed();
  return 0;
}

int Endpoint::bind_av(AvFid& av) {
  if (parent_ != nullptr) return refuse(-FI_EINVAL, "an AV is bound to the scalable endpoint");
  if (&av.engine() != &engine_) return refuse(-FI_EDOMAIN, "the AV belongs to another domain");
  if (av_ != nullptr) return refuse(-FI_EINVAL, "an AV is bound already");
  holds_.emplace_back(av.references());
  av_ = &av;
  return 0;
}

int Endpoint::bind_stx(Stx& stx) {
  if (role_ == EndpointRole::Receive) {
    return refuse(-FI_EINVAL, "fi_ep_bind: a receive context takes no shared transmit context");
  }
  if (&stx.engine() != &engine_) {
    return refuse(-FI_EDOMAIN, "the shared transmit context belongs to another domain");
  }
  if (stx_ != nullptr) return refuse(-FI_EINVAL, "a shared transmit context is bound already");
  holds_.emplace_back(stx.references());
  const std::size_t own_size = std::exchange(ses_config_.tx_size, stx.size());
  if (!enabled_) {
    const int result = open_context();
    if (result == 0) {
      stx_ = &stx;
    } else {
      ses_config_.tx_size = own_size;
      holds_.pop_back();
    }
    return result;
  }
  const Guard guard(engine_.lock());
  stx_ = &stx;
  stx.take_over(tx_outstanding_);
  bindings_changed();
  return 0;
}

int Endpoint::bind_srx(Srx& srx) {
  if (role_ != EndpointRole::Both) return refuse(-FI_EINVAL, "contexts have receives of their own");
  if (&srx.engine() != &engine_) {
    return refuse(-FI_EDOMAIN, "the shared receive context belongs to another domain");
  }
  if (srx_ != nullptr) return refuse(-FI_EINVAL, "a shared receive context is bound already");
  holds_.emplace_back(srx.references());
  ses_config_.shared = srx.queue();
  const int result = open_context();
  if (result == 0) {
    srx_ = &srx;
  } else {
    ses_config_.shared = nullptr;
    holds_.pop_back();
  }
  return result;
}

int Endpoint::bind(struct fid* other, struct fid* self, std::uint64_t flags) {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  switch (other->fclass) {
    case FI_CLASS_EQ:
      // No connections, so that nothing ever comes through it; but reading it makes progress.
      return eq_.open(Eq::from(other), engine_);
    case FI_CLASS_MR:
      return other->ops->bind(other, self, flags);
    case FI_CLASS_CQ:
    case FI_CLASS_CNTR:
    case FI_CLASS_AV:
    case FI_CLASS_STX_CTX:
    case FI_CLASS_SRX_CTX:
      break;
    default:
      return refuse(-FI_EINVAL, "fi_ep_bind: objects of this class cannot be bound");
  }
  if (other->fclass == FI_CLASS_CQ) return bind_cq(Cq::from(other), flags);
  if (other->fclass == FI_CLASS_CNTR) return bind_counter(Cntr::from(other), flags);
  if (flags != 0) return refuse(-FI_EINVAL, "fi_ep_bind: flags are for CQs and counters");
  if (other->fclass == FI_CLASS_AV) return bind_av(AvFid::from(other));
  if (other->fclass == FI_CLASS_STX_CTX) return bind_stx(Stx::from(other));
  if (enabled_) {
    return refuse(-FI_EOPBADSTATE, "bind the shared receive context before fi_enable");
  }
  return bind_srx(Srx::from(other));
}

bool Endpoint::sends() const {
  return role_ != EndpointRole::Receive && (caps_ & (FI_SEND | FI_READ | FI_WRITE)) != 0;
}

bool Endpoint::receives() const {
  return role_ != EndpointRole::Transmit && (caps_ & FI_RECV) != 0;
}

bool Endpoint::hears_of_sends() const {
  return tx_cq_ != nullptr || counters_[kSend] != nullptr || counters_[kRead] != nullptr ||
         counters_[kWrite] != nullptr;
}

bool Endpoint::hears_of_receives() const {
  return rx_cq_ != nullptr || counters_[kRecv] != nullptr;
}

// SES-80: immediate data of a write are refused if no CQ or counter would report them.
bool Endpoint::hears_of_cq_data() const {
  return role_ == EndpointRole::Transmit || hears_of_receives() ||
         counters_[kRemoteWrite] != nullptr;
}

// A side that the application has bound nothing to is one that it does not use. Queues, counters
// and a shared transmit context may also come after fi_enable.
void Endpoint::bindings_changed() noexcept {
  if (!enabled_) return;
  ses_config_.remote_cq_data = hears_of_cq_data();
  engine_.fep().ses().rebind(*ses_context_, ses_config_.tx_size, ses_config_.remote_cq_data);
  may_send_ = role_ != EndpointRole::Receive && (hears_of_sends() || !sends());
  may_receive_ =
      role_ != EndpointRole::Transmit && srx_ == nullptr && (hears_of_receives() || !receives());
}

int Endpoint::enable() {
  if (enabled_) return refuse(-FI_EOPBADSTATE, "the endpoint is enabled already");
  if (parent_ != nullptr) av_ = parent_->av();
  if (av_ == nullptr) return refuse(-FI_ENOAV, "no AV is bound; call fi_ep_bind first");
  const bool hears = (sends() && hears_of_sends()) || (receives() && hears_of_receives());
  if ((sends() || receives()) && !hears) return refuse(-FI_ENOCQ, "no CQ or counter is bound");
  if (shares_tx_ && stx_ == nullptr) {
    return refuse(-FI_EOPBADSTATE, "no shared transmit context is bound; call fi_ep_bind first");
  }
  if (shares_rx_ && srx_ == nullptr) {
    return refuse(-FI_EOPBADSTATE, "no shared receive context is bound; call fi_ep_bind first");
  }
  if (ses_context_ == nullptr) {  // there was no memory for another one
    if (const int result = open_context(); result != 0) return result;
  }
  const Guard guard(engine_.lock());
  if (srx_ != nullptr) {
    if (srx_->av() != nullptr && srx_->av() != av_) {
      return refuse(-FI_EINVAL, "bind one AV to all endpoints that share a receive context");
    }
    srx_->join(*this);
  }
  enabled_ = true;
  bindings_changed();
  engine_.fep().ses().enable(*ses_context_);
  return 0;
}

int Endpoint::refuse(int error, const char* why) const noexcept {
  FI_WARN(&provider, FI_LOG_EP_CTRL, "endpoint: %s\n", why);
  return error;
}

}  // namespace uet::prov
