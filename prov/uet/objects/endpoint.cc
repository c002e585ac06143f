// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Life of an endpoint: open, bind, enable, options, end.
#include "objects/endpoint.h"

#include <algorithm>
#include <utility>

#include "errors.h"
#include "hmem/devices.h"
#include "objects/domain.h"
#include "objects/scalable_ep.h"
#include "objects/trigger.h"
#include "provider.h"
#include "ses/initiator.h"
#include "settings/hints.h"
#include "uet/fi_ext_uet.h"

namespace uet::prov {

bool is_connectionless(const fi_info& info) {
  return info.ep_attr != nullptr && info.tx_attr != nullptr && info.rx_attr != nullptr &&
         (info.ep_attr->type == FI_EP_RDM || info.ep_attr->type == FI_EP_DGRAM ||
          info.ep_attr->type == FI_EP_UNSPEC);
}

DeliveryMode delivery_mode(fi_ep_type type, const fi_tx_attr& tx, const fi_rx_attr& rx) {
  if (type == FI_EP_DGRAM) return DeliveryMode::Uud;
  if (type == FI_EP_MSG) return DeliveryMode::Rod;
  return (tx.msg_order | rx.msg_order) != 0 ? DeliveryMode::Rod : DeliveryMode::Rud;
}

std::uint32_t tclass_of(const fi_info& info) {
  if (info.tx_attr->tclass != FI_TC_UNSPEC || info.domain_attr == nullptr) {
    return info.tx_attr->tclass;
  }
  return info.domain_attr->tclass;
}

namespace {

ses::ContextConfig context_config(const Engine& engine, const EndpointConfig& config) {
  ses::ContextConfig out;
  out.job = config.identity->job();
  out.receives = config.role != EndpointRole::Transmit;
  out.mode = config.mode;
  out.traffic_class = config.traffic_class;
  out.tx_size = config.tx_size != 0 ? config.tx_size : engine.params().tx_size;
  out.rx_size = config.rx_size != 0 ? config.rx_size : engine.params().rx_size;
  out.connected = config.connections != nullptr;
  out.data_takes_receive = config.data_takes_receive;
  out.directed_receive = ReceiveSettings::of(config.caps).tagged_directed;
  return out;
}

EpOptions::Bounds option_bounds(Engine& engine, const EndpointConfig& config) {
  const std::size_t one_packet = engine.payload_mtu();
  const std::size_t most = max_msg_size(engine.params().profile);
  return {.max_msg_size = config.mode == DeliveryMode::Uud ? one_packet : most,
          .max_rma_size = config.mode == DeliveryMode::Uud ? 0 : kMaxRmaSize,
          .max_atomic_size = one_packet,  // SES-90
          .inject_size = config.inject_size,
          .tx_iov_limit = config.tx_iov_limit,
          .rx_iov_limit = config.rx_iov_limit,
          .knows_hmem = engine.knows_hmem(),
          .p2p = engine.knows_hmem() && may_read_devices(engine.nic()),
          .local_rings = engine.params().local_rings};
}

// With FI_UET_CORES: of the same domain, but of another engine.
bool is_of_sibling(const Engine& shared, const Engine& own) {
  const Engines* const siblings = own.place().siblings;
  return &shared != &own && siblings != nullptr && siblings->has(shared);
}

int refuse_shared() {
  return refuse_endpoint(
      -FI_EOPNOTSUPP,
      "fi_ep_bind: endpoint: FI_UET_CORES: not of the engine of shared contexts; "
      "open it with tx_ctx_cnt or rx_ctx_cnt FI_SHARED_CONTEXT");
}

}  // namespace

Endpoint::Endpoint(Domain* domain, const EndpointConfig& config, void* context)
    : engine_(config.engine != nullptr ? *config.engine : config.identity->engine()),
      config_(config),
      identity_(config.identity),
      parent_(config.parent),
      role_(config.role),
      state_{.engine = engine_, .caps = config.caps, .config = context_config(engine_, config)},
      bindings_(engine_, role_),
      reporter_(state_, bindings_, *identity_, context),
      options_(option_bounds(engine_, config), config.caps),
      tx_(state_, bindings_, config.whole != nullptr ? config.whole->options_ : options_, reporter_,
          *this),
      rx_(state_, bindings_, options_, *this) {
  if (domain != nullptr) holds_.emplace_back(domain->references());
  if (parent_ != nullptr) holds_.emplace_back(parent_->references());
  use_identity(config.index);
  if (config.connections != nullptr) {
    connection_.emplace(*config.connections, state_, *identity_, eq_);
    reporter_.watch_connection(*connection_);
  }
}

Endpoint::~Endpoint() {
  division_.reset();
  if (engine_.dead() || state_.context == nullptr) return;
  const Guard guard(engine_.lock());
  auto& ses = engine_.fep().ses();
  engine_.works().drop(*this, false);
  EngineLink* const link = engine_.link();
  state_.request_acks_now();
  auto& fep = engine_.fep();
  if (role_ != EndpointRole::Transmit) fep.note_gaps(clock_now());  // PDS-235
  engine_.linger([&] {
    const bool sent = state_.has_sent_all() && !tx_.compounds().any();
    return sent && (role_ == EndpointRole::Transmit || fep.gaps_over(clock_now()));
  });
  state_.submission = nullptr;
  submission_.reset();
  if (link != nullptr) link->close_context(state_.linked);
  ses.close_context(*state_.context, clock_now());
  if (connection_) connection_->leave();
  engine_.works().drop(*this, true);
  tx_.compounds().drop();
  if (srx_ != nullptr) srx_->leave(*this);
  bindings_.return_all();
}

void Endpoint::use_identity(std::size_t index) {
  const av::UetAddress& name = identity_->name();
  state_.config.pid_on_fep = name.pid_on_fep;
  state_.config.resource_index = identity_->resource_index(index);
  state_.config.initiator = name.initiator_id;
  state_.config.relative = !name.has(av::kAbsolute);
  state_.config.own_job_only = identity_->has_auth_key();
  if (config_.whole != nullptr) state_.config.via = config_.whole->engine().place().via();
}

// IP address and UDP port stay: they are the domain's.
int Endpoint::set_name(const void* address, std::size_t length) {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (state_.enabled)
    return refuse_endpoint(
        -FI_EOPBADSTATE, "fi_setname: endpoint: enabled already; call fi_setname before fi_enable");
  if (parent_ != nullptr)
    return refuse_endpoint(-FI_EOPNOTSUPP,
                           "fi_setname: endpoint: a context has the name of its scalable endpoint; "
                           "open another endpoint");
  const auto wanted = AddressFormat::decode(identity_->format().addr_format(), address, length);
  if (!wanted)
    return refuse_endpoint(
        -FI_EINVAL,
        "fi_setname: endpoint: the address is not of addr_format; use the domain's addr_format");
  if (const int result = identity_->rename(*wanted); result != 0) return result;
  use_identity(0);
  return open_context();
}

int Endpoint::open_context() noexcept {
  const Guard guard(engine_.lock());
  auto& ses = engine_.fep().ses();
  EngineLink* const link = engine_.link();
  if (state_.context != nullptr) {
    if (link != nullptr) link->close_context(state_.linked);
    ses.close_context(*state_.context, clock_now());
  }
  state_.context = nullptr;
  try {
    const auto opened = ses.open_context(state_.config, reporter_);
    if (!opened) {
      return refuse_endpoint(to_fi_errno(opened.error()),
                             "fi_endpoint, fi_setname: endpoint: another endpoint has these ids; "
                             "choose others or none");
    }
    if (link != nullptr) {
      const auto linked = link->open_context(state_.config, reporter_,
                                             srx_ != nullptr ? srx_->linked() : std::nullopt);
      if (!linked) {
        ses.close_context(*opened.value(), clock_now());
        return refuse_endpoint(
            to_fi_errno(linked.error()),
            "fi_endpoint: endpoint: refused by the engine; look at the output of uet_engine");
      }
      state_.linked = linked.value();
    }
    state_.context = opened.value();
    return 0;
  } catch (const std::bad_alloc&) {
    return refuse_endpoint(
        -FI_ENOMEM, "fi_endpoint: endpoint: no memory for its queues; ask for smaller queues");
  }
}

int Endpoint::open(Domain& domain, const EndpointConfig& config, void* context,
                   std::shared_ptr<Endpoint>& out) {
  if (config.tx_size > kMaxTxSize || config.rx_size > kMaxRxSize) {
    FI_WARN(&provider, FI_LOG_EP_CTRL, "fi_endpoint: tx_attr.size or rx_attr.size is too large\n");
    return -FI_EINVAL;
  }
  std::shared_ptr<Endpoint> endpoint(new Endpoint(&domain, config, context));
  if (const int result = endpoint->open_context(); result != 0) return result;
  out = std::move(endpoint);
  return 0;
}

int Endpoint::bind_av(AvFid& av) {
  if (connection_)
    return refuse_endpoint(-FI_EINVAL,
                           "fi_ep_bind: endpoint: FI_EP_MSG takes no AV; call fi_connect instead");
  if (parent_ != nullptr) {
    return refuse_endpoint(
        -FI_EINVAL,
        "fi_ep_bind: endpoint: a context takes no AV; bind the AV to the scalable endpoint");
  }
  if (!av.engines().has(engine_)) {
    return refuse_endpoint(
        -FI_EDOMAIN,
        "fi_ep_bind: endpoint: the AV belongs to another domain; open it on the same domain");
  }
  if (state_.av != nullptr)
    return refuse_endpoint(-FI_EINVAL,
                           "fi_ep_bind: endpoint: an AV is bound already; bind one only");
  holds_.emplace_back(av.references());
  state_.av = &av;
  return 0;
}

// Reading the EQ makes progress; only the events of the fabric come through it, where they are
// asked for.
int Endpoint::bind_eq(Eq& eq, struct fid& self, std::uint64_t flags) {
  int result = eq_.open(eq, engine_);
  if (result == 0 && (flags & FI_UET_FABRIC_EVENTS) != 0) {
    result = eq_.ask_events(self, &state_.av, identity_->format());
  }
  if (result != 0 || !division_) return result;
  return division_->for_each([this](Endpoint& part) { return part.eq_.follow(eq_, part.engine_); });
}

int Endpoint::bind_stx(Stx& stx) {
  if (role_ == EndpointRole::Receive) {
    return refuse_endpoint(-FI_EINVAL,
                           "fi_ep_bind: endpoint: a receive context takes no shared transmit "
                           "context; bind it to a transmit context");
  }
  if (is_of_sibling(stx.engine(), engine_)) return refuse_shared();
  if (&stx.engine() != &engine_) {
    return refuse_endpoint(-FI_EDOMAIN,
                           "fi_ep_bind: endpoint: the shared transmit context belongs to another "
                           "domain; open it on the same domain");
  }
  if (bindings_.shared_slots() != nullptr) {
    return refuse_endpoint(
        -FI_EINVAL,
        "fi_ep_bind: endpoint: a shared transmit context is bound already; bind one only");
  }
  const std::size_t own_size = std::exchange(state_.config.tx_size, stx.slots()->size());
  if (const int result = state_.enabled ? 0 : open_context(); result != 0) {
    state_.config.tx_size = own_size;
    return result;
  }
  share_slots(stx.slots());
  if (!division_) return 0;
  return division_->for_each([&](Endpoint& part) {
    part.share_slots(stx.slots());
    return 0;
  });
}

void Endpoint::share_slots(const std::shared_ptr<TxSlots>& slots) noexcept {
  const Guard guard(engine_.lock());
  if (bindings_.shared_slots() == slots) return;
  state_.config.tx_size = slots->size();
  bindings_.share_tx(slots);
  bindings_changed();
}

int Endpoint::bind_srx(Srx& srx) {
  if (role_ != EndpointRole::Both) {
    return refuse_endpoint(-FI_EINVAL,
                           "fi_ep_bind: endpoint: a context has receives of its own; bind the "
                           "shared one to an endpoint");
  }
  if (is_of_sibling(srx.engine(), engine_)) return refuse_shared();
  if (&srx.engine() != &engine_) {
    return refuse_endpoint(-FI_EDOMAIN,
                           "fi_ep_bind: endpoint: the shared receive context belongs to another "
                           "domain; open it on the same domain");
  }
  if (srx_ != nullptr) {
    return refuse_endpoint(
        -FI_EINVAL,
        "fi_ep_bind: endpoint: a shared receive context is bound already; bind one only");
  }
  holds_.emplace_back(srx.references());
  state_.config.shared = srx.queue();
  srx_ = &srx;
  const int result = open_context();
  if (result == 0) {
    reporter_.report_to_owner(srx.peer());
  } else {
    state_.config.shared = nullptr;
    srx_ = nullptr;
    holds_.pop_back();
  }
  return result;
}

int Endpoint::bind(struct fid* other, struct fid* self, std::uint64_t flags) {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  switch (other->fclass) {
    case FI_CLASS_EQ:
      return bind_eq(Eq::from(other), *self, flags);
    case FI_CLASS_MR:
      return other->ops->bind(other, self, flags);
    case FI_CLASS_CQ:
    case FI_CLASS_CNTR:
    case FI_CLASS_AV:
    case FI_CLASS_STX_CTX:
    case FI_CLASS_SRX_CTX:
      break;
    default:
      return refuse_endpoint(
          -FI_EINVAL,
          "fi_ep_bind: endpoint: objects of this class cannot be bound; see fi_endpoint(3)");
  }
  if (other->fclass == FI_CLASS_CQ) return after_bind(bindings_.bind_cq(Cq::from(other), flags));
  if (other->fclass == FI_CLASS_CNTR) {
    return after_bind(bindings_.bind_counter(Cntr::from(other), flags));
  }
  if (flags != 0)
    return refuse_endpoint(-FI_EINVAL,
                           "fi_ep_bind: endpoint: flags are for CQs and counters; pass 0");
  if (other->fclass == FI_CLASS_AV) return bind_av(AvFid::from(other));
  if (other->fclass == FI_CLASS_STX_CTX) return bind_stx(Stx::from(other));
  if (state_.enabled) {
    return refuse_endpoint(
        -FI_EOPBADSTATE,
        "fi_ep_bind: endpoint: enabled already; bind the shared receive context before fi_enable");
  }
  return bind_srx(Srx::from(other));
}

bool Endpoint::sends() const {
  return role_ != EndpointRole::Receive && (state_.caps & (FI_SEND | FI_READ | FI_WRITE)) != 0;
}

bool Endpoint::receives() const {
  return role_ != EndpointRole::Transmit && (state_.caps & FI_RECV) != 0;
}

int Endpoint::after_bind(int result) {
  if (result == 0 && division_) {
    result = division_->for_each(
        [this](Endpoint& part) { return part.after_bind(part.bindings_.follow_tx(bindings_)); });
  }
  if (result != 0) return result;
  const Guard guard(engine_.lock());
  bindings_changed();
  return 0;
}

// A side that the application has bound nothing to is one that it does not use. Queues, counters
// and a shared transmit context may also come after fi_enable.
void Endpoint::bindings_changed() noexcept {
  if (!state_.enabled) return;
  ses::ContextConfig& config = state_.config;
  config.remote_cq_data = bindings_.report_cq_data();
  engine_.fep().ses().rebind(*state_.context, config.tx_size, config.remote_cq_data);
  if (EngineLink* const link = engine_.link()) {
    link->rebind(state_.linked, config.tx_size, config.remote_cq_data);
  }
  state_.may_send = role_ != EndpointRole::Receive && (bindings_.report_sends() || !sends());
  state_.may_receive = role_ != EndpointRole::Transmit && srx_ == nullptr &&
                       (bindings_.report_receives() || !receives());
}

// FI_UET_ENGINE=thread: from fi_enable on, posts go through rings.
int Endpoint::open_submission() noexcept {
  if (!engine_.submissions().active() || submission_ != nullptr) return 0;
  return guarded([&] {
    const auto& inject = options_.limits().inject;
    const Guard guard(engine_.lock());
    const bool concurrent = engine_.submissions().threading() == FI_THREAD_SAFE ||
                            engine_.submissions().threading() == FI_THREAD_UNSPEC;
    submission_ = std::make_unique<Submission>(*this, engine_.submissions(), concurrent,
                                               *std::max_element(inject.begin(), inject.end()),
                                               engine_.fep().ses().initiator().limits());
    state_.submission = submission_.get();
    return 0;
  });
}

int Endpoint::enable() {
  if (state_.enabled)
    return refuse_endpoint(-FI_EOPBADSTATE,
                           "fi_enable: endpoint: enabled already; call fi_enable once");
  if (parent_ != nullptr) state_.av = parent_->av();
  if (state_.av == nullptr && !connection_) {
    return refuse_endpoint(-FI_ENOAV, "fi_enable: endpoint: no AV is bound; call fi_ep_bind first");
  }
  const bool reports =
      (sends() && bindings_.report_sends()) || (receives() && bindings_.report_receives());
  if ((sends() || receives()) && !reports) {
    return refuse_endpoint(-FI_ENOCQ,
                           "fi_enable: endpoint: no CQ or counter is bound; call fi_ep_bind first");
  }
  if (config_.shares_tx && bindings_.shared_slots() == nullptr) {
    return refuse_endpoint(
        -FI_EOPBADSTATE,
        "fi_enable: endpoint: no shared transmit context is bound; call fi_ep_bind first");
  }
  if (config_.shares_rx && srx_ == nullptr) {
    return refuse_endpoint(
        -FI_EOPBADSTATE,
        "fi_enable: endpoint: no shared receive context is bound; call fi_ep_bind first");
  }
  if (state_.av != nullptr) state_.jobs = state_.av->jobs();
  if (!state_.jobs.empty()) {
    state_.config.more_jobs = state_.jobs;
    if (const int result = open_context(); result != 0) return result;
  }
  if (state_.context == nullptr) {  // there was no memory for another one
    if (const int result = open_context(); result != 0) return result;
  }
  if (const int result = open_submission(); result != 0) return result;
  if (TxDivision::may_divide(*this)) {
    division_.emplace(*this, *engine_.place().siblings);
    tx_.divide(*division_);
  }
  const Guard guard(engine_.lock());
  if (srx_ != nullptr) {
    if (srx_->av() != nullptr && srx_->av() != state_.av) {
      return refuse_endpoint(-FI_EINVAL,
                             "fi_enable: endpoint: its AV is not that of the shared receive "
                             "context; bind one AV to all endpoints");
    }
    srx_->join(*this);
  }
  state_.enabled = true;
  bindings_changed();
  engine_.fep().ses().enable(*state_.context);
  if (EngineLink* const link = engine_.link()) link->enable(state_.linked);
  return 0;
}

int Endpoint::connect(struct fid& self, const void* address, const void* data, std::size_t length) {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (!connection_) return -FI_ENOSYS;
  const int result = state_.enabled ? 0 : enable();
  return result == 0 ? connection_->connect(self, address, data, length) : result;
}

int Endpoint::accept(struct fid& self, const void* data, std::size_t length) {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (!connection_) return -FI_ENOSYS;
  const int result = state_.enabled ? 0 : enable();
  return result == 0 ? connection_->accept(self, data, length) : result;
}

// Sends end first, as far as the peer answers in time (CM-30).
int Endpoint::shutdown(std::uint64_t flags) {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (!connection_) return -FI_ENOSYS;
  if (flags != 0)
    return refuse_endpoint(-FI_EINVAL, "fi_shutdown: endpoint: flags are not supported; pass 0");
  const Guard guard(engine_.lock());
  if (!connection_->is_connected()) {
    return refuse_endpoint(-FI_ENOTCONN,
                           "fi_shutdown: endpoint: not connected; wait for FI_CONNECTED");
  }
  state_.request_acks_now();
  engine_.linger([&] { return state_.has_sent_all(); });
  connection_->end();
  return 0;
}

int Endpoint::get_option(int name, void* value, std::size_t* length) noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (value == nullptr || length == nullptr) {
    return refuse_endpoint(-FI_EINVAL,
                           "fi_getopt: endpoint: NULL argument; pass a value and its length");
  }
  if (name == FI_OPT_CM_DATA_SIZE && connection_) return give_option(cm::kMaxData, value, length);
  if (name == FI_OPT_TX_SIZE) return give_option(state_.config.tx_size, value, length);
  if (name == FI_OPT_RX_SIZE) return give_option(state_.config.rx_size, value, length);
  return options_.get(name, value, length);
}

int Endpoint::set_option(int name, const void* value, std::size_t length) noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (name != FI_OPT_TX_SIZE && name != FI_OPT_RX_SIZE) return options_.set(name, value, length);
  const auto wanted = read_option<std::size_t>(value, length);
  return wanted ? set_queue_size(name, *wanted) : refuse_option_length();
}

int Endpoint::set_queue_size(int name, std::size_t wanted) noexcept {
  if (state_.enabled) {
    return refuse_endpoint(
        -FI_EOPBADSTATE, "fi_setopt: endpoint: enabled already; set queue sizes before fi_enable");
  }
  const bool tx = name == FI_OPT_TX_SIZE;
  if (wanted == 0 || wanted > (tx ? kMaxTxSize : kMaxRxSize)) {
    return refuse_endpoint(
        -FI_EINVAL,
        "fi_setopt: endpoint: the queue size is 0 or too large; see tx_attr.size and rx_attr.size");
  }
  if (tx && bindings_.shared_slots() != nullptr) {
    return refuse_endpoint(
        -FI_EINVAL,
        "fi_setopt: endpoint: a shared transmit context is bound; set the size in fi_stx_context");
  }
  (tx ? state_.config.tx_size : state_.config.rx_size) = wanted;
  return open_context();
}

ssize_t Endpoint::cancel(void* operation_context) noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (!state_.enabled)
    return refuse_endpoint(-FI_EOPBADSTATE,
                           "fi_cancel: endpoint: not enabled; call fi_enable first");
  ssize_t result = cancel_here(operation_context);
  if (result == 0 || !division_) return result;
  division_->for_each([&](Endpoint& part) {
    if (result != 0) result = part.cancel_here(operation_context);
    return 0;
  });
  return result;
}

ssize_t Endpoint::cancel_here(void* operation_context) noexcept {
  const Guard guard(engine_.lock());
  if (engine_.works().cancel(*this, operation_context)) return 0;
  const Time now = clock_now();
  if (submission_ != nullptr) {
    submission_->drain_rx(now);
    submission_->drain_tx(now);
    if (submission_->cancel(operation_context)) return 0;
  }
  if (tx_.compounds().cancel(operation_context, now)) {
    engine_.posted(now, false);
    return 0;
  }
  const auto result = state_.cancel(operation_context, now);
  if (result) engine_.posted(now, false);
  return result ? 0 : to_fi_errno(result.error());
}

bool Endpoint::end_unposted(ses::Kind kind, void* operation_context,
                            std::uint64_t user_flags) noexcept {
  if (!is_receive(kind)) {
    if (!bindings_.take_tx()) return false;
  } else if (!bindings_.take_rx()) {
    return false;
  }
  ses::Completion completion;
  completion.kind = kind;
  completion.status = ses::Status::Cancelled;
  completion.context = operation_context;
  completion.user_flags = user_flags;
  reporter_.complete(completion);
  return true;
}

}  // namespace uet::prov
