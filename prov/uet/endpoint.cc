// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Life of an endpoint: open, bind, enable, name, options, end.
#include "endpoint.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "errors.h"
#include "getinfo.h"
#include "hints.h"
#include "provider.h"

namespace uet::prov {
namespace {

// SES-124: any order asked for makes a ROD endpoint.
DeliveryMode mode_of(const fi_info& info) {
  return (info.tx_attr->msg_order | info.rx_attr->msg_order) != 0 ? DeliveryMode::Rod
                                                                  : DeliveryMode::Rud;
}

}  // namespace

Endpoint::Endpoint(Domain& domain, const fi_info& info, void* context)
    : domain_(domain),
      context_(context),
      caps_(info.caps),
      inject_size_(info.tx_attr->inject_size),
      tx_size_(info.tx_attr->size),
      rx_size_(info.rx_attr->size) {
  holds_[holds_used_++] = Hold(domain.references());
}

Endpoint::~Endpoint() {
  if (domain_.dead() || ses_context_ == nullptr) return;
  const Guard guard(domain_.lock());
  auto& ses = domain_.fep().ses();
  domain_.linger([&] { return ses.outstanding(*ses_context_) == 0; });
  ses.close_context(*ses_context_, clock_now());
  domain_.give_back(name_.start_resource_index);
  if (tx_cq_ != nullptr) tx_cq_->release(tx_outstanding_);
  if (rx_cq_ != nullptr) rx_cq_->release(rx_outstanding_);
}

int Endpoint::open_context(const fi_info& info) {
  ses::ContextConfig config;
  config.job = domain_.job();
  if (info.ep_attr->auth_key_size != 0) {
    const auto job = job_of(info.ep_attr->auth_key, info.ep_attr->auth_key_size);
    if (!job) return static_cast<int>(refuse(-FI_EINVAL, "auth_key is not a JobID of 3 bytes"));
    config.job = job.value();
  }
  av::UetAddress wanted;
  if (info.src_addr != nullptr) {
    wanted = decode_address(info.src_addr, info.src_addrlen).value_or(wanted);
  }
  std::optional<ResourceIndex> index;
  if (wanted.has(av::kResourceIndexValid)) index = wanted.start_resource_index;
  const Guard guard(domain_.lock());
  const auto taken = domain_.take_resource_index(index);
  if (!taken) {
    return static_cast<int>(refuse(to_fi_errno(taken.error()), "no free resource index"));
  }
  name_ = av::default_address(domain_.local_address());
  name_.start_resource_index = taken.value();
  name_.initiator_id = av::default_initiator(domain_.local_address(), taken.value());
  if (wanted.has(av::kPidOnFepValid)) name_.pid_on_fep = wanted.pid_on_fep;
  if (wanted.has(av::kInitiatorIdValid)) name_.initiator_id = wanted.initiator_id;
  if (wanted.has(av::kAbsolute)) name_.flags |= av::kAbsolute;

  config.pid_on_fep = name_.pid_on_fep;
  config.resource_index = name_.start_resource_index;
  config.initiator = name_.initiator_id;
  config.relative = !name_.has(av::kAbsolute);
  config.mode = mode_of(info);
  config.tx_size = tx_size_;
  config.rx_size = rx_size_;
  config.directed_receive = (caps_ & FI_DIRECTED_RECV) != 0;
  const auto opened = domain_.fep().ses().open_context(config, *this);
  if (!opened) {
    domain_.give_back(taken.value());
    return static_cast<int>(refuse(to_fi_errno(opened.error()), "the endpoint's ids are taken"));
  }
  ses_context_ = opened.value();
  return 0;
}

int Endpoint::open(Domain& domain, const fi_info& info, void* context,
                   std::shared_ptr<Endpoint>& out) {
  if (domain.dead()) return -FI_EOPNOTSUPP;
  const bool complete =
      info.ep_attr != nullptr && info.tx_attr != nullptr && info.rx_attr != nullptr;
  if (!complete || (info.ep_attr->type != FI_EP_RDM && info.ep_attr->type != FI_EP_UNSPEC)) {
    FI_WARN(&provider, FI_LOG_EP_CTRL, "fi_endpoint: the info is not one for FI_EP_RDM\n");
    return -FI_EINVAL;
  }
  if (info.tx_attr->size > kMaxTxSize || info.rx_attr->size > kMaxRxSize) {
    FI_WARN(&provider, FI_LOG_EP_CTRL, "fi_endpoint: tx_attr or rx_attr size is too large\n");
    return -FI_EINVAL;
  }
  std::shared_ptr<Endpoint> endpoint(new Endpoint(domain, info, context));
  if (endpoint->tx_size_ == 0) endpoint->tx_size_ = domain.params().tx_size;
  if (endpoint->rx_size_ == 0) endpoint->rx_size_ = domain.params().rx_size;
  if (const int result = endpoint->open_context(info); result != 0) return result;
  out = std::move(endpoint);
  return 0;
}

int Endpoint::bind_cq(Cq& cq, std::uint64_t flags) {
  constexpr std::uint64_t kFlags = FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION;
  const bool tx = (flags & FI_TRANSMIT) != 0;
  const bool rx = (flags & FI_RECV) != 0;
  if (&cq.domain() != &domain_) {
    return static_cast<int>(refuse(-FI_EDOMAIN, "the CQ belongs to another domain"));
  }
  if ((flags & ~kFlags) != 0 || (!tx && !rx) || (tx && tx_cq_ != nullptr) ||
      (rx && rx_cq_ != nullptr)) {
    return static_cast<int>(refuse(-FI_EINVAL, "CQ flags not valid, or a CQ is bound already"));
  }
  const std::uint64_t always = (flags & FI_SELECTIVE_COMPLETION) != 0 ? 0 : FI_COMPLETION;
  if (tx) {
    tx_cq_ = &cq;
    tx_always_ = always;
  }
  if (rx) {
    rx_cq_ = &cq;
    rx_always_ = always;
  }
  holds_[holds_used_++] = Hold(cq.references());
  return 0;
}

int Endpoint::bind_counter(Cntr& counter, std::uint64_t flags) {
  static constexpr std::array<std::uint64_t, kCounters> kBits = {
      FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE};
  if (&counter.domain() != &domain_) {
    return static_cast<int>(refuse(-FI_EDOMAIN, "the counter belongs to another domain"));
  }
  std::uint64_t left = flags;
  for (std::size_t i = 0; i < kCounters; ++i) {
    if ((flags & kBits[i]) == 0) continue;
    if (counters_[i] != nullptr) {
      return static_cast<int>(refuse(-FI_EINVAL, "a counter is bound already"));
    }
    left &= ~kBits[i];
  }
  if (left != 0 || flags == 0) {
    return static_cast<int>(refuse(-FI_EINVAL, "counter flags not valid"));
  }
  for (std::size_t i = 0; i < kCounters; ++i) {
    if ((flags & kBits[i]) != 0) counters_[i] = &counter;
  }
  holds_[holds_used_++] = Hold(counter.references());
  return 0;
}

int Endpoint::bind(struct fid* other, std::uint64_t flags) {
  if (domain_.dead()) return -FI_EOPNOTSUPP;
  switch (other->fclass) {
    case FI_CLASS_EQ:
      return 0;  // no connections, so that nothing ever comes through it
    case FI_CLASS_CQ:
    case FI_CLASS_CNTR:
    case FI_CLASS_AV:
      break;
    default:
      return static_cast<int>(refuse(-FI_EINVAL, "fi_ep_bind: this class cannot be bound"));
  }
  if (enabled_) return static_cast<int>(refuse(-FI_EOPBADSTATE, "bind before fi_enable"));
  if (other->fclass == FI_CLASS_CQ) return bind_cq(Cq::from(other), flags);
  if (other->fclass == FI_CLASS_CNTR) return bind_counter(Cntr::from(other), flags);
  AvFid& av = AvFid::from(other);
  if (&av.domain() != &domain_) {
    return static_cast<int>(refuse(-FI_EDOMAIN, "the AV belongs to another domain"));
  }
  if (av_ != nullptr) return static_cast<int>(refuse(-FI_EINVAL, "an AV is bound already"));
  av_ = &av;
  holds_[holds_used_++] = Hold(av.references());
  return 0;
}

int Endpoint::enable() noexcept {
  if (enabled_) return static_cast<int>(refuse(-FI_EOPBADSTATE, "the endpoint is enabled already"));
  if (av_ == nullptr) return static_cast<int>(refuse(-FI_ENOAV, "no AV is bound"));
  const bool sends = (caps_ & (FI_SEND | FI_READ | FI_WRITE)) != 0;
  const bool receives = (caps_ & FI_RECV) != 0;
  const bool tx_counter = counters_[kSend] || counters_[kRead] || counters_[kWrite];
  if (sends && tx_cq_ == nullptr && !tx_counter) {
    return static_cast<int>(refuse(-FI_ENOCQ, "no CQ or counter is bound for FI_TRANSMIT"));
  }
  if (receives && rx_cq_ == nullptr && counters_[kRecv] == nullptr) {
    return static_cast<int>(refuse(-FI_ENOCQ, "no CQ or counter is bound for FI_RECV"));
  }
  const Guard guard(domain_.lock());
  domain_.fep().ses().enable(*ses_context_);
  enabled_ = true;
  return 0;
}

// SES-149: complete from the start, because the port is bound when the domain opens.
int Endpoint::get_name(void* address, std::size_t* length) noexcept {
  if (domain_.dead()) return -FI_EOPNOTSUPP;
  const av::AddressBytes bytes = av::encode(name_);
  const std::size_t room = *length;
  *length = bytes.size();
  if (room > 0 && address != nullptr) {
    std::memcpy(address, bytes.data(), std::min(room, bytes.size()));
  }
  return room < bytes.size() ? -FI_ETOOSMALL : 0;
}

int Endpoint::get_option(int name, void* value, std::size_t* length) noexcept {
  std::size_t answer = 0;
  switch (name) {
    case FI_OPT_CM_DATA_SIZE:
      break;
    case FI_OPT_TX_SIZE:
      answer = tx_size_;
      break;
    case FI_OPT_RX_SIZE:
      answer = rx_size_;
      break;
    default:
      return -FI_ENOPROTOOPT;
  }
  if (*length < sizeof answer) return -FI_ETOOSMALL;
  std::memcpy(value, &answer, sizeof answer);
  *length = sizeof answer;
  return 0;
}

ssize_t Endpoint::tx_size_left() noexcept {
  if (domain_.dead()) return -FI_EOPNOTSUPP;
  if (!enabled_) return -FI_EOPBADSTATE;
  const Guard guard(domain_.lock());
  return static_cast<ssize_t>(tx_size_ - std::min(tx_size_, tx_outstanding_));
}

ssize_t Endpoint::rx_size_left() noexcept {
  if (domain_.dead()) return -FI_EOPNOTSUPP;
  if (!enabled_) return -FI_EOPBADSTATE;
  const Guard guard(domain_.lock());
  return static_cast<ssize_t>(rx_size_ - std::min(rx_size_, rx_outstanding_));
}

ssize_t Endpoint::refuse(int error, const char* why) const noexcept {
  FI_WARN(&provider, FI_LOG_EP_CTRL, "endpoint: %s\n", why);
  return error;
}

}  // namespace uet::prov
