// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "objects/cm_hub.h"

#include <new>

#include "objects/domain.h"
#include "provider.h"
#include "settings/core_config.h"

namespace uet::prov {
namespace {

constexpr std::size_t kHubReceives = 64;

cm::Timing timing_of(const Params& params) {
  cm::Timing timing;
  timing.probe_period = std::chrono::milliseconds(params.keep_alive_ms);
  return timing;
}

}  // namespace

CmHub::CmHub(Domain& domain, const av::UetAddress& name)
    : domain_(domain),
      engine_(domain.engine()),
      name_(name),
      connections_(name, random_seed(), timing_of(engine_.params())),
      port_(engine_, connections_, kHubReceives) {}

// CM-2: from the highest index down, since an address format may name only the lowest ones.
int CmHub::open(Domain& domain, std::unique_ptr<CmHub>& out) {
  for (std::uint16_t index = kMaxResourceIndex; index > 0; --index) {
    const av::UetAddress name =
        av::default_address(domain.engine().local_address(), ResourceIndex{index});
    if (!domain.take_resource_indices(domain.engine(), ri::ContextName{name.pid_on_fep, {index}},
                                      1))
      continue;
    std::unique_ptr<CmHub> hub(new CmHub(domain, name));
    const int result = hub->port_.open(name, domain.job());
    if (result != 0) return result;
    domain.engine().attach(hub.get());
    domain.engine().nic().watch_refusals();
    hub->attached_ = true;
    out = std::move(hub);
    return 0;
  }
  FI_WARN(&provider, FI_LOG_EP_CTRL, "fi_endpoint: all resource indices are in use\n");
  return -FI_ENOSPC;
}

CmHub::~CmHub() {
  if (engine_.dead()) return;
  if (!attached_) {  // open() has the lock
    domain_.give_back(engine_, {name_.pid_on_fep, name_.start_resource_index}, 1);
    return;
  }
  const Guard guard(engine_.lock());
  engine_.linger([&] { return port_.idle(); });
  engine_.attach(nullptr);
  port_.close();
  domain_.give_back(engine_, {name_.pid_on_fep, name_.start_resource_index}, 1);
}

cm::ConnectionId CmHub::connect(ConnectionUser& user, const av::UetAddress& own, JobId job,
                                const av::UetAddress& to, std::span<const std::byte> data) {
  return enter(connections_.connect(own, job, to, data, clock_now()), user);
}

cm::ConnectionId CmHub::accept(ConnectionUser& user, const cm::PeerRequest& request,
                               const av::UetAddress& own, JobId job,
                               std::span<const std::byte> data) {
  return enter(connections_.accept(request, own, job, data, clock_now()), user);
}

// Without memory the connection is dropped.
cm::ConnectionId CmHub::enter(cm::ConnectionId id, ConnectionUser& user) {
  try {
    users_[id].user = &user;
  } catch (const std::bad_alloc&) {
    connections_.drop(id);
    throw;
  }
  return id;
}

void CmHub::shutdown(cm::ConnectionId id) noexcept {
  users_.erase(id);
  try {
    connections_.shutdown(id, clock_now());
  } catch (const std::bad_alloc&) {
    connections_.drop(id);  // the peer learns it when it sends
  }
}

void CmHub::wake(cm::ConnectionId id) noexcept {
  const auto found = users_.find(id);
  if (found == users_.end()) return;
  found->second.woken = some_woken_ = true;
}

// An event may end the connection, or be about one whose endpoint has left.
void CmHub::hand_out_events() {
  while (const cm::ConnectionEvent* event = connections_.next_event()) {
    const auto found = users_.find(event->id);
    if (found != users_.end()) {
      found->second.user->on_event(*event);
      if (event->kind != cm::ConnectionEvent::Kind::Connected) users_.erase(event->id);
    }
    connections_.pop_event();
  }
}

void CmHub::wake_all() {
  while (some_woken_) {
    ConnectionUser* user = nullptr;
    for (auto& [id, each] : users_) {
      if (each.woken) user = each.user;
    }
    if (user == nullptr) some_woken_ = false;
    if (user != nullptr) user->on_wake();  // leaves
  }
}

// CM-29. A report is lost if there is no memory: the transport gives up later.
void CmHub::refused(const FepAddress& peer) noexcept {
  try {
    connections_.refused(peer);
  } catch (const std::bad_alloc&) {
    FI_WARN(&provider, FI_LOG_EP_CTRL, "no memory for an event of a connection\n");
  }
}

// Events first: an endpoint takes data of its peer before the peer gets the Confirm and may send
// them.
void CmHub::run(Time now) noexcept UET_NO_THREAD_ANALYSIS {
  port_.take(now);
  try {
    hand_out_events();
    wake_all();
  } catch (const std::bad_alloc&) {
    FI_WARN(&provider, FI_LOG_EP_CTRL, "no memory for an event of a connection\n");
  }
  port_.send(now);
}

}  // namespace uet::prov
