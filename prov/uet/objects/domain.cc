// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From an fi_info to a running engine: which address and port, which attributes; and the calls of a
// domain.
#include "objects/domain.h"

#include <cstring>
#include <string>

#include "calls/atomic.h"
#include "compat.h"
#include "objects/av_fid.h"
#include "objects/cntr.h"
#include "objects/cq.h"
#include "objects/endpoint_fid.h"
#include "objects/eq.h"
#include "objects/mr_fid.h"
#include "objects/open_nic.h"
#include "objects/passive_ep.h"
#include "objects/poll_set.h"
#include "objects/scalable_ep.h"
#include "objects/shared_ctx.h"
#include "ops.h"
#include "process/engine_link.h"
#include "security/auth_key.h"
#include "settings/getinfo.h"
#include "uet/fi_ext_uet.h"

namespace uet::prov {
namespace {

// Why a domain with these settings cannot have several engines, with the remedy; nullptr: it can.
const char* refuse_cores(const fi_info& info, const Params& params) {
  if (params.cores == 1) return nullptr;
  const bool named = info.nic != nullptr && info.nic->device_attr != nullptr &&
                     info.nic->device_attr->driver != nullptr;
  const std::string nic = named ? info.nic->device_attr->driver : params.nic;
  if (nic.find("native") != std::string::npos)
    return "the native form has no ports, which tell engines apart; leave out native";
  return nullptr;
}

int close_domain(fid* fid) noexcept { return Domain::from(fid).close(); }

int domain_bind(fid* fid, struct fid* other, std::uint64_t flags) noexcept {
  return Domain::from(fid).bind(*other, flags);
}

int domain_control(fid* fid, int command, void* argument) noexcept {
  Domain& domain = Domain::from(fid);
  if (domain.engine().dead()) return -FI_EOPNOTSUPP;
  auto* work = static_cast<fi_deferred_work*>(argument);
  switch (command) {
    case FI_QUEUE_WORK:
      return work != nullptr ? domain.engine().works().queue(*work) : -FI_EINVAL;
    case FI_CANCEL_WORK:
      return work != nullptr ? domain.engines().cancel_work(*work) : -FI_EINVAL;
    case FI_FLUSH_WORK:
      return domain.engines().flush_work(work);
    case FI_MAP_RAW_MR:
      return map_raw_key(*static_cast<const struct fi_mr_map_raw*>(argument));
    case FI_UNMAP_KEY:
      return 0;
    default:
      return -FI_ENOSYS;
  }
}

int domain_endpoint2(fid_domain* domain, fi_info* info, fid_ep** ep, std::uint64_t flags,
                     void* context) noexcept {
  return flags == 0 ? endpoint_open(domain, info, ep, context) : -FI_EOPNOTSUPP;
}

fi_ops domain_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_domain,
    .bind = domain_bind,
    .control = domain_control,
    .ops_open = open_domain_ops,
    .tostr = no_tostr,
    .ops_set = no_ops_set,
};

fi_ops_domain domain_ops = {
    .size = sizeof(fi_ops_domain),
    .av_open = av_open,
    .cq_open = cq_open,
    .endpoint = endpoint_open,
    .scalable_ep = scalable_ep_open,
    .cntr_open = cntr_open,
    .poll_open = poll_open,
    .stx_ctx = stx_open,
    .srx_ctx = srx_open,
    .query_atomic = query_atomic,
    .query_collective = not_supported<&fi_ops_domain::query_collective>,
    .endpoint2 = domain_endpoint2,
};

fi_ops_mr domain_mr_ops = {
    .size = sizeof(fi_ops_mr),
    .reg = mr_reg,
    .regv = mr_regv,
    .regattr = mr_regattr,
};

}  // namespace

const char* Domain::read_job(const std::uint8_t* auth_key, std::size_t size, JobId& job) const {
  const Result<AuthKey> key = read_auth_key(auth_key, size);
  if (!key) return "auth_key: not a JobID of 3 bytes, nor JobID, SDI and SSI; pass one of these";
  const auto& identity = key.value().identity;
  const bool is_ours = !identity || (identity->sdi == sdi_ &&
                                     (!secured_ || !identity->ssi || identity->ssi == ssi_));
  if (!is_ours) {
    return "auth_key: names another SDI or SSI than the domain; open a domain of its own with that "
           "auth_key";
  }
  job = key.value().job;
  return nullptr;
}

Domain::Domain(Fabric& fabric, const fi_info& info, const Params& params, void* context)
    : fid_domain{},
      fabric_(fabric.references()),
      version_(fabric.version()),
      mr_mode_(info.domain_attr->mr_mode),
      caps_(info.caps),
      has_av_keys_(info.domain_attr->auth_key_size == kAvAuthKey),
      job_{static_cast<std::uint32_t>(params.job_id)},
      engines_(params, info.domain_attr->threading, (info.caps & FI_HMEM) != 0),
      indices_(engines_.size()) {
  fid.fclass = FI_CLASS_DOMAIN;
  fid.context = context;
  fid.ops = &domain_fid_ops;
  ops = &domain_ops;
  mr = &domain_mr_ops;
}

int Domain::open(Fabric& fabric, const fi_info& info, void* context, Domain*& out) {
  if (info.domain_attr == nullptr) {
    FI_WARN(&provider, FI_LOG_DOMAIN, "fi_domain: the info has no domain_attr\n");
    return -FI_EINVAL;
  }
  auto params = load_params();
  if (!params) return -FI_EINVAL;
  InfoPtr place;  // fi_endpoint(3): that of a passive endpoint
  if (PassiveEndpoint::is_open(info.handle)) {
    place = PassiveEndpoint::from(info.handle).hand_over();
  }
  if ((info.caps & FI_PEER) != 0) {  // peer_receives.h
    params->engine = EngineMode::Caller;
    params->cores = 1;
  }
  if (const char* const problem = refuse_cores(info, *params)) {
    FI_WARN(&provider, FI_LOG_DOMAIN, "fi_domain: FI_UET_CORES: %s\n", problem);
    return -FI_EOPNOTSUPP;
  }
  Protection protection;
  int result = open_protection(info, *params, "fi_domain", protection);
  if (result != 0) return result;
  std::unique_ptr<Domain> domain(new Domain(fabric, info, *params, context));
  if (protection.job) domain->job_ = *protection.job;
  domain->auth_job_ = protection.job;
  domain->sdi_ = protection.sdi();
  domain->secured_ = protection.security != nullptr;
  if (domain->secured_) domain->ssi_ = protection.security->ssi();
  result = domain->open_engines(info, place != nullptr ? *place : info, protection);
  if (result == 0) out = domain.release();
  return result;
}

// The first engine has the port that the info names, the others have any.
int Domain::open_engines(const fi_info& info, const fi_info& at, Protection& protection) {
  int result = 0;
  for (std::size_t number = 0; result == 0 && number < engines_.size(); ++number) {
    Engine& engine = engines_.at(number);
    if (number > 0 && secured_) {  // a FEP has keys and packet counters of its own
      Params adapted = engine.params();
      result = open_protection(info, adapted, "fi_domain", protection);
      if (result == 0 && protection.security == nullptr) result = -FI_ENOKEY;  // the keys have gone
    }
    if (result == 0) result = open_engine(info, at, engine, protection);
    if (result == 0) engines_.note_open();
  }
  if (result != 0) engines_.close();
  return result;
}

int Domain::open_engine(const fi_info& info, const fi_info& at, Engine& engine,
                        Protection& protection) {
  const Params& params = engine.params();
  OpenedNic opened;
  const bool connected = info.ep_attr != nullptr && info.ep_attr->type == FI_EP_MSG;
  const std::size_t number = engine.place().number;
  const NicPlace place{.port = number > 0  ? PortChoice::Any
                               : connected ? PortChoice::NamedOrAny
                                           : PortChoice::Named,
                       .sharers = static_cast<std::uint32_t>(engines_.size() - number)};
  const int result = open_nic(at, params, "fi_domain", place, protection.of_nic(), opened);
  if (result != 0) return result;
  format_ = opened.format;
  const auto interfaces = usable_interfaces(params);
  const auto* const own = nic::interface_of(interfaces, opened.nic->local_address().ip);
  engine.keep(std::move(protection.security));
  return engine.open(std::move(opened.nic), wants_thread(info), opened.link,
                     own != nullptr ? own->name : std::string());
}

int Domain::close() noexcept {
  const nic::NoCancel no_cancel;
  if (references_.any()) return -FI_EBUSY;
  hub_.reset();
  engines_.close();
  delete this;
  return 0;
}

int Domain::connections(CmHub*& out) {
  Engine& engine = engines_.first();
  if (engine.params().keep_alive_ms > 0) {  // CM-37
    if (const int result = engine.need_thread(); result != 0) return result;
  }
  const Guard guard(engine.lock());
  if (hub_ == nullptr) {
    if (const int result = CmHub::open(*this, hub_); result != 0) return result;
  }
  out = hub_.get();
  return 0;
}

bool Domain::mr_mode_has(int bit) const {
  constexpr int kBasicBits = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  if (mr_mode_ == kMrBasic) return (bit & kBasicBits) != 0;
  return mr_mode_ != kMrScalable && (mr_mode_ & bit) != 0;
}

// Registrations and the fabric have events where the flags ask for them.
int Domain::bind(struct fid& other, std::uint64_t flags) {
  if (other.fclass != FI_CLASS_EQ || (flags & ~(kRegMr | FI_UET_FABRIC_EVENTS)) != 0) {
    FI_WARN(&provider, FI_LOG_DOMAIN,
            "fi_domain_bind: bind an EQ; flags may be FI_REG_MR and FI_UET_FABRIC_EVENTS\n");
    return -FI_EINVAL;
  }
  const bool asks_events = (flags & FI_UET_FABRIC_EVENTS) != 0;
  if (!eqs_.empty()) {
    FI_WARN(&provider, FI_LOG_DOMAIN,
            "fi_domain_bind: domain: an EQ is bound already; bind one only\n");
    return -FI_EINVAL;
  }
  Eq& eq = Eq::from(&other);
  std::vector<std::unique_ptr<EqBinding>> bindings;
  for (const auto& engine : engines_) {
    bindings.push_back(std::make_unique<EqBinding>());
    if (const int result = bindings.back()->open(eq, *engine); result != 0) return result;
  }
  eqs_ = std::move(bindings);
  if ((flags & kRegMr) != 0) registration_eq_ = &eq;
  if (!asks_events) return 0;
  // The interface is the same for all engines: the first one reports it.
  for (const auto& binding : eqs_) {
    const EventKinds kinds = binding == eqs_.front() ? EventKinds::All : EventKinds::Peers;
    if (const int result = binding->ask_events(fid, nullptr, format_, kinds); result != 0) {
      return result;
    }
  }
  return 0;
}

void Domain::registered(fid_mr& mr) {
  if (registration_eq_ == nullptr) return;
  fi_eq_entry entry{};
  entry.fid = &mr.fid;
  entry.context = mr.fid.context;
  registration_eq_->write(FI_MR_COMPLETE, &entry, sizeof entry);
}

Result<ri::ContextName> Domain::take_resource_indices(Engine& engine,
                                                      std::optional<ri::ContextName> wanted,
                                                      std::size_t count, bool any) {
  IndexTable& indices = indices_[engine.place().number];
  const FepAddress here = engine.local_address();
  indices.set_own_pid(av::default_pid_on_fep(here.port));
  return indices.take(wanted, count, [&](const ri::ContextName& name) {
    return any || format_.can_name(av::default_address(here, name.pid, name.index));
  });
}

int domain_open(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context) noexcept {
  return guarded([&] {
    Domain* opened = nullptr;
    const int result = Domain::open(Fabric::from(fabric), *info, context, opened);
    if (result == 0) *domain = opened;
    return result;
  });
}

}  // namespace uet::prov
