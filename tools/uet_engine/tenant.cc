// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tenant.h"

#include <fcntl.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "errors.h"
#include "objects/open_nic.h"
#include "objects/stats.h"
#include "ses/initiator.h"
#include "settings/getinfo.h"
#include "settings/params.h"

namespace uet::engine {

using prov::ControlAnswer;
using prov::ControlRequest;

namespace {

// How soon to look again whether the application has made space for events, or a command need not
// wait any more.
constexpr Duration kRetry = std::chrono::milliseconds(1);

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

// An info as fi_getinfo gives, as far as a domain is opened by it.
Info info_of(const prov::OpenRequest& request) {
  Info info(fi_allocinfo());
  if (info == nullptr) throw std::bad_alloc();
  info->ep_attr->type = FI_EP_RDM;
  nic::SocketAddress address{};
  FepAddress at;
  at.ip.bytes = request.ip;
  at.ip.is_ipv6 = request.is_ipv6 != 0;
  at.port = request.port;
  nic::write_socket_address(at, address);
  info->addr_format = at.ip.is_ipv6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
  info->src_addrlen = nic::socket_address_length(at.ip.is_ipv6);
  info->src_addr = std::malloc(info->src_addrlen);
  if (info->src_addr == nullptr) throw std::bad_alloc();
  std::memcpy(info->src_addr, &address, info->src_addrlen);
  const auto end = std::find(request.interface.begin(), request.interface.end(), '\0');
  if (end != request.interface.begin()) {
    info->domain_attr->name = ::strndup(request.interface.data(),
                                        static_cast<std::size_t>(end - request.interface.begin()));
  }
  const std::size_t key_bytes = request.auth_key_bytes;
  if (key_bytes > 0 && key_bytes <= request.auth_key.size()) {
    info->domain_attr->auth_key = static_cast<std::uint8_t*>(std::malloc(key_bytes));
    if (info->domain_attr->auth_key == nullptr) throw std::bad_alloc();
    std::memcpy(info->domain_attr->auth_key, request.auth_key.data(), key_bytes);
    info->domain_attr->auth_key_size = key_bytes;
  }
  return info;
}

void put_text(std::array<char, 240>& to, const std::string& text) {
  const std::size_t length = std::min(text.size(), to.size() - 1);
  std::memcpy(to.data(), text.data(), length);
  to[length] = '\0';
}

}  // namespace

class Tenant::RegionObserver final : public ri::AccessObserver {
 public:
  RegionObserver(Events& events, std::uint64_t key) : events_(events), key_(key) {}
  void accessed(std::uint8_t access, std::uint64_t length) noexcept override {
    note(access, 1, length);
  }
  void accessed_part(std::uint8_t access, std::uint64_t length) noexcept override {
    note(access, 0, length);
  }

 private:
  void note(std::uint8_t access, std::uint64_t events, std::uint64_t bytes) noexcept {
    events_.note_access({.of = key_,
                         .kind = prov::EventKind::RegionAccess,
                         .operation = access,
                         .part = events == 0},
                        events, bytes);
  }

  Events& events_;
  const std::uint64_t key_;
};

Tenant::Tenant() = default;
Tenant::~Tenant() {
  if (engine_ == nullptr) return;
  end();
  close();
}

// ---- begin and end ------------------------------------------------------------------------------

int Tenant::open(const ControlRequest& request, const prov::PeerProcess& process,
                 ControlAnswer& answer) {
  std::string why;
  int result = -FI_EACCES;
  if (memory_.open(process.pid, why)) result = open_engine(request.open, why);
  if (result == 0) result = open_memory(why);
  if (result != 0) {
    put_text(answer.open.message, why);
    return result;
  }
  const FepAddress here = engine_->local_address();
  answer.open.ip = here.ip.bytes;
  answer.open.is_ipv6 = here.ip.is_ipv6;
  answer.open.port = here.port;
  answer.open.caps = engine_->nic().caps();
  answer.open.payload_mtu = engine_->payload_mtu();
  return 0;
}

// The settings are those of this program. Both ends have to know the profile.
int Tenant::open_engine(const prov::OpenRequest& request, std::string& why) {
  auto params = prov::load_params();
  why = "its settings are broken; look at its output";
  if (!params) return -FI_EINVAL;
  if (static_cast<std::uint8_t>(params->profile) != request.profile) {
    why = "it has another profile; set FI_UET_PROFILE alike for both";
    return -FI_EINVAL;
  }
  params->engine = prov::EngineMode::Thread;
  const Info info = info_of(request);
  prov::Protection protection;
  why = "no domain; look at its output";
  int result = prov::open_protection(*info, *params, "uet_engine", protection);
  if (result != 0) return result;
  auto engine = std::make_unique<prov::Engine>(*params, FI_THREAD_SAFE, false);
  prov::OpenedNic opened;
  result = prov::open_nic(*info, *params, "uet_engine", {}, protection.of_nic(), opened);
  if (result != 0) return result;
  const char* const name = info->domain_attr->name;
  engine->keep(std::move(protection.security));
  result = engine->open(std::move(opened.nic), true, nullptr, name != nullptr ? name : "");
  if (result == 0) engine_ = std::move(engine);
  return result;
}

int Tenant::open_memory(std::string& why) {
  share_fd_ = nic::FileDescriptor(::memfd_create("uet-engine", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  event_fd_ = nic::FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  void* memory = MAP_FAILED;
  if (share_fd_.valid() && event_fd_.valid() &&
      ::ftruncate(share_fd_.get(), sizeof(prov::Share)) == 0 &&
      ::fcntl(share_fd_.get(), F_ADD_SEALS, kSeals) == 0) {
    memory = ::mmap(nullptr, sizeof(prov::Share), PROT_READ | PROT_WRITE, MAP_SHARED,
                    share_fd_.get(), 0);
  }
  if (memory == MAP_FAILED) {
    why = "no memory to share: " + nic::error_text(errno);
    engine_->close();
    engine_.reset();
    return -FI_ENOMEM;
  }
  rings_ = std::make_unique<Rings>(static_cast<prov::Share*>(memory));
  events_.heed(rings_->share.queues_full);
  const prov::Guard guard(engine_->lock());
  engine_->attach(this);
  ::eventfd_write(engine_->submissions().doorbell(),
                  1);  // it may sleep, and has not said so in the new memory
  return 0;
}

std::array<int, 3> Tenant::descriptors() const {
  return {share_fd_.get(), engine_->submissions().doorbell(), event_fd_.get()};
}

void Tenant::end() UET_NO_THREAD_ANALYSIS {
  const prov::Guard guard(engine_->lock());
  fep::Fep& fep = engine_->fep();
  events_.cut_off_now();
  engine_->attach(nullptr);
  fep.watch_peers(nullptr);
  const Time now = prov::clock_now();
  contexts_.close_all(fep.ses(), now);
  for (const auto& [key, observer] : regions_) (void)fep.regions().remove(Rkey{key});
  regions_.clear();
  fep.begin_close(now);
  engine_->end_post(now);
}

void Tenant::close() {
  engine_->close();
  engine_.reset();
}

// ---- requests -----------------------------------------------------------------------------------

ControlAnswer Tenant::handle(const ControlRequest& request) UET_NO_THREAD_ANALYSIS {
  ControlAnswer answer;
  std::memset(static_cast<void*>(&answer), 0, sizeof answer);
  answer.version = prov::control_version();
  const prov::Guard guard(engine_->lock());
  const Time now = prov::clock_now();
  try {
    answer.error = prov::code_of(dispatch(request, answer, now));
  } catch (const std::bad_alloc&) {
    answer.error = prov::code_of(Error::NoMemory);
  }
  engine_->fep().push(now);
  engine_->end_post(now);
  return answer;
}

Result<void> Tenant::dispatch(const ControlRequest& request, ControlAnswer& answer,
                              Time now) UET_NO_THREAD_ANALYSIS {
  using prov::Request;
  ses::Ses& ses = engine_->fep().ses();
  const auto kind = static_cast<Request>(request.request);
  switch (kind) {
    case Request::OpenContext:
      return contexts_.open(ses, request.config, answer.context);
    case Request::OpenQueue:
      return contexts_.open_queue(ses, request.config, answer.context);
    case Request::WatchRefusals:
      engine_->nic().watch_refusals();
      return {};
    case Request::WatchPeers:
      engine_->fep().watch_peers(this);
      return {};
    case Request::AddRegion:
    case Request::ChangeRegion:
    case Request::RemoveRegion:
    case Request::MoveContext:
      return handle_region(request);
    case Request::Learn:
    case Request::Unlearn:
    case Request::Forget:
    case Request::LearnFurther:
      handle_peer(request, now);
      return {};
    case Request::Counters: {
      const auto values = prov::counter_values(*engine_);
      const std::size_t count = std::min(values.size(), answer.counters.size());
      std::copy_n(values.begin(), count, answer.counters.begin());
      answer.counter_count = static_cast<std::uint32_t>(count);
      return {};
    }
    default:
      break;
  }
  Context* const context = contexts_.find(request.context);
  return context != nullptr ? handle_context(*context, request, now) : Error::Invalid;
}

// All but three are for contexts alone.
Result<void> Tenant::handle_context(Context& context, const ControlRequest& request,
                                    Time now) UET_NO_THREAD_ANALYSIS {
  using prov::Request;
  ses::Ses& ses = engine_->fep().ses();
  const auto kind = static_cast<Request>(request.request);
  if (kind == Request::CloseContext) return close_context(context);
  if (kind == Request::Peek || kind == Request::Cancel) {
    execute_commands(now);
    if (kind == Request::Peek) return peek(context, request.peek, now);
    void* const operation = context_of(request.operation);
    return context.queue != nullptr ? ses.cancel(*context.queue, operation, now)
                                    : ses.cancel(*context.context, operation, now);
  }
  if (context.context == nullptr) return Error::Invalid;
  switch (kind) {
    case Request::EnableContext:
      ses.enable(*context.context);
      return {};
    case Request::ConnectContext:
      ses.connect(*context.context, prov::peer_of(request.peer.peer));
      return {};
    case Request::RebindContext:
      ses.rebind(*context.context,
                 std::clamp<std::size_t>(request.config.tx_size, 1, prov::kMaxTxSize),
                 request.config.remote_cq_data != 0);
      return {};
    case Request::RequestAcks:
      ses.initiator().request_acks_now(*context.context);
      return {};
    case Request::CancelReceives:
      execute_commands(now);
      if (context.receives_from == nullptr) ses.cancel_receives(*context.context);
      return {};
    default:
      return Error::Invalid;
  }
}

// As the end of an endpoint: packets of peers that are known to be missing come first (PDS-235).
Result<void> Tenant::close_context(Context& context) UET_NO_THREAD_ANALYSIS {
  fep::Fep& fep = engine_->fep();
  fep.note_gaps(prov::clock_now());
  engine_->linger([&] { return fep.gaps_over(prov::clock_now()); });
  return contexts_.close(fep.ses(), context, prov::clock_now());
}

Result<void> Tenant::peek(Context& context, const prov::PeekRequest& request,
                          Time now) UET_NO_THREAD_ANALYSIS {
  const ses::Peer source = prov::peer_of(request.source);
  ses::PeekOp op;
  op.tagged = request.tagged != 0;
  op.tag = request.tag;
  op.ignore = request.ignore;
  if (request.has_source != 0) op.source = &source;
  if (request.has_job != 0) op.job = JobId{request.job & kMaxJobId};
  op.claimed = request.claimed != 0;
  op.claim = request.claim != 0;
  op.discard = request.discard != 0;
  op.context = context_of(request.operation);
  ses::Ses& ses = engine_->fep().ses();
  return context.queue != nullptr ? ses.peek(*context.queue, op, now)
                                  : ses.peek(*context.context, op, now);
}

Result<void> Tenant::handle_region(const ControlRequest& request) UET_NO_THREAD_ANALYSIS {
  ri::MrTable& table = engine_->fep().regions();
  const prov::RegionRequest& asked = request.region;
  switch (static_cast<prov::Request>(request.request)) {
    case prov::Request::AddRegion: {
      auto observer = std::make_unique<RegionObserver>(events_, asked.key);
      ri::MemoryRegion region = prov::region_of(asked);
      region.device = &memory_;
      region.observer = observer.get();
      const auto place = regions_.try_emplace(asked.key, std::move(observer));
      if (!place.second) return Error::KeyInUse;
      const Result<void> added = table.adopt(region, Rkey{asked.key});
      if (!added) regions_.erase(place.first);
      return added;
    }
    case prov::Request::ChangeRegion: {
      ri::MemoryRegion* const region = table.find(Rkey{asked.key});
      if (region == nullptr) return Error::NotFound;
      const ri::MemoryRegion changed = prov::region_of(asked);
      region->access = changed.access;
      region->ri = changed.ri;
      region->pid = changed.pid;
      region->ri_count = changed.ri_count;
      region->enabled = changed.enabled;
      return {};
    }
    case prov::Request::RemoveRegion: {
      const Result<void> removed = table.remove(Rkey{asked.key});
      regions_.erase(asked.key);
      return removed;
    }
    default: {
      const prov::MoveRequest& move = request.move;
      std::optional<ri::ContextName> to;
      if (move.has_to != 0) to = {PidOnFep{move.to_pid}, ResourceIndex{move.to_index}};
      table.move_context({PidOnFep{move.from_pid}, ResourceIndex{move.from_index}}, to);
      return {};
    }
  }
}

void Tenant::handle_peer(const ControlRequest& request, Time now) UET_NO_THREAD_ANALYSIS {
  const FepAddress address = prov::peer_of(request.peer.peer).fep;
  fep::Fep& fep = engine_->fep();
  switch (static_cast<prov::Request>(request.request)) {
    case prov::Request::Learn:
      return fep.learn(address);
    case prov::Request::Unlearn:
      return fep.unlearn(address);
    case prov::Request::Forget:
      return fep.forget(address, now);
    default: {
      std::vector<FabricAddress> further;
      const std::size_t count =
          std::min<std::size_t>(request.peer.further_count, kMostFurtherAddresses);
      for (std::size_t i = 0; i < count; ++i) further.push_back({.bytes = request.peer.further[i]});
      return engine_->nic().learn_further(address, further);
    }
  }
}

// ---- commands -----------------------------------------------------------------------------------

bool Tenant::begin(Time now) noexcept { return !cut_off() && execute_commands(now); }

void Tenant::run(Time now) noexcept {
  if (cut_off()) return;
  events_.hand_over(*rings_, event_fd_.get());
  retry_ = events_.any() || commands_.wait() ? now + kRetry : kNever;
}

bool Tenant::execute_commands(Time now) UET_NO_THREAD_ANALYSIS {
  return commands_.execute_all(*rings_, engine_->fep().ses(), now);
}

Time Tenant::next_deadline() const noexcept { return retry_; }

void Tenant::refused(const FepAddress& peer) noexcept { events_.note_refusal(peer); }

bool Tenant::may_sleep() noexcept {
  if (cut_off()) return true;
  prov::note_sleep(rings_->share.engine_sleeps);
  return !commands_.any(*rings_);
}

}  // namespace uet::engine
