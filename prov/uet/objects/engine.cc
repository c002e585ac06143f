// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How an engine starts, sleeps and ends. Forked children are marked here.
#include "objects/engine.h"

#include <poll.h>
#include <pthread.h>

#include <rdma/fi_errno.h>

#include <algorithm>
#include <mutex>

#include "nic/interface.h"
#include "objects/engines.h"
#include "process/engine_link.h"
#include "provider.h"
#include "security/transport_security.h"
#include "settings/core_config.h"
#include "settings/getinfo.h"

namespace uet::prov {

constexpr Duration kSiblingRest = std::chrono::milliseconds(1);

// The engines of all domains of the process, so that a fork can mark the child's copies.
struct ForkRegistry {
  std::mutex mutex;
  IntrusiveList<Engine, ForkTag> engines;

  static ForkRegistry& instance() {
    // Never destroyed: fork handlers may run after static destructors.
    static ForkRegistry& registry = *new ForkRegistry;
    return registry;
  }
  void add(Engine& engine) {
    static std::once_flag once;
    std::call_once(once, [] { pthread_atfork(before_fork, after_fork, in_child); });
    const std::lock_guard guard(mutex);
    engines.push_back(engine);
  }
  void remove(Engine& engine) {
    const std::lock_guard guard(mutex);
    engines.remove(engine);
  }
  void write_stats() noexcept;

 private:
  static void before_fork() { instance().mutex.lock(); }
  static void after_fork() { instance().mutex.unlock(); }
  static void in_child() {
    for (Engine& engine : instance().engines) {
      engine.dead_.store(true, std::memory_order_relaxed);
      engine.thread_.forget();
      if (engine.security_ != nullptr) engine.security_->forget_keys_in_child();
    }
    instance().mutex.unlock();
  }
};

Engine::Engine(const Params& params, fi_threading threading, bool knows_hmem,
               const EnginePlace& place)
    : params_(params),
      knows_hmem_(knows_hmem),
      place_(place),
      lock_(threading != FI_THREAD_DOMAIN || params.engine == EngineMode::Thread),
      submissions_(params.engine == EngineMode::Thread, threading) {}
Engine::~Engine() = default;

void Engine::keep(std::unique_ptr<TransportSecurity> security) { security_ = std::move(security); }

int Engine::open_fep() {
  payload_mtu_ = prov::payload_mtu(params_, nic_->caps().ip_mtu);
  if (payload_mtu_ == 0) {
    FI_WARN(&provider, FI_LOG_DOMAIN,
            "fi_domain: MTU: %u bytes are too few for a payload of %llu; raise the MTU\n",
            nic_->caps().ip_mtu,
            static_cast<unsigned long long>(std::max<std::uint64_t>(1024, params_.payload_mtu)));
    return -FI_EINVAL;
  }
  fep::Config config = fep_config(params_, *nic_, payload_mtu_, place_.number);
  placing_copy_.adapt_to(nic_->shared_memory());
  config.ses.host_copy = &placing_copy_;
  piece_bytes_ = config.ses.rma_piece_bytes;
  fep_ = std::make_unique<fep::Fep>(config, *nic_, clock_now());
  // The FEP's own domain, which is 0 in its addresses (TSS-11). Called with the lock.
  if (security_ != nullptr) security_->on_key_change([this] { fep_->key_changed(0); });
  return 0;
}

// The NIC's descriptor is watched from the first sleep on: the kernel tells who watches a socket of
// every packet, at the expense of its sender.
bool Engine::prepare_sleep() {
  const nic::NoCancel no_cancel;
  live_.sleeps(*this, clock_now());
  if (!nic_watched_) nic_watched_ = activity_.watch(nic_->wait_fd());
  activity_.timer().arm(!nic_watched_ || nic_->prepare_wait() ? Time{} : next_deadline());
  return client_ == nullptr || client_->may_sleep();
}

int Engine::subscribe(EventSubscriber& subscriber) noexcept {
  const bool watched = events_.fd() >= 0;
  if (const int result = events_.add(subscriber, interface_); result != 0) return result;
  if (!watched && events_.fd() >= 0 && !activity_.watch(events_.fd())) {
    events_.remove(subscriber);
    return -FI_ENOMEM;
  }
  fep_->watch_peers(&events_);
  if (link_ != nullptr) {
    link_->contexts().watch_peers(&events_);
    link_->requests().ask(request_of(Request::WatchPeers));
  }
  watches_peers_ = params_.keep_alive_ms > 0;  // PDS-234
  if (watches_peers_) nic_->watch_refusals();
  return 0;
}

int Engine::need_thread() noexcept {
  lock_.need();
  const Guard guard(lock_);
  return thread_.running() ? 0 : thread_.start(*this);
}

int Engine::open(std::unique_ptr<nic::Nic> nic, bool thread, EngineLink* link,
                 std::string interface) {
  link_ = link;
  interface_ = std::move(interface);
  nic_ = std::move(nic);
  int result = open_fep();
  if (result == 0) {
    if (params_.stats.when == StatsDump::When::Signal) stats_signal_.subscribe();
    result = -activity_.open(stats_signal_.fd());
    if (result == 0 && place_.siblings != nullptr) result = works_.serve_several();
    if (result == 0 && works_.fd() >= 0 && !activity_.watch(works_.fd())) result = -FI_ENOMEM;
  }
  if (result == 0) {
    const nic::NoCancel no_cancel;
    const Guard guard(lock_);
    live_.open(*this, interface_);
    FI_INFO(&provider, FI_LOG_DOMAIN,
            "%s on %s: FI_UET_NIC=%s, %u bytes of IP and %u of payload in a packet, rings %s\n",
            nic::to_text(local_address()).c_str(), interface_.c_str(), params_.nic.c_str(),
            nic_->caps().ip_mtu, payload_mtu_, params_.local_rings ? "allowed" : "off");
  }
  if (result == 0 && (thread || submissions_.active())) result = need_thread();
  if (result == 0) ForkRegistry::instance().add(*this);
  return result;
}

void Engine::close(ClosePart part) noexcept {
  if (!dead() && part != ClosePart::Statistics) {
    thread_.stop();
    const Guard guard(lock_);
    fep_->watch_peers(nullptr);
  }
  if (!dead() && part == ClosePart::Whole) {
    const Guard guard(lock_);
    linger([&] { return fep_->ses().idle(); });  // senders wait for messages not received yet
    fep_->begin_close(clock_now());
    linger([&] { return fep_->closed(); });
  }
  if (part == ClosePart::Thread) return;
  if (!dead()) {
    const Guard guard(lock_);
    if (params_.stats.when == StatsDump::When::Exit) live_.write_counters(*this, "closed");
    if (params_.stats.when == StatsDump::When::Pages) live_.save_page(*this, clock_now());
    live_.close();
    fep_->keep_trace_in(nullptr);
  }
  ForkRegistry::instance().remove(*this);
}

// Other threads may still run, and one may have ended with the lock in its hands. Of a live page
// only the name of the file goes, without the lock: other threads may still write the page.
void ForkRegistry::write_stats() noexcept UET_NO_THREAD_ANALYSIS {
  const std::lock_guard guard(mutex);
  for (Engine& engine : engines) {
    const StatsDump::When when = engine.params_.stats.when;
    const bool stats = when == StatsDump::When::Exit || when == StatsDump::When::Pages;
    if (engine.dead()) continue;
    engine.live_.remove_file();
    if (!stats) continue;
    if (!engine.lock_.try_lock_for_a_while()) {
      FI_WARN(&provider, FI_LOG_DOMAIN, "FI_UET_STATS: not written: a thread is busy at exit\n");
      continue;
    }
    if (when == StatsDump::When::Exit) engine.live_.write_counters(engine, "process ends");
    if (when == StatsDump::When::Pages) engine.live_.save_page(engine, clock_now());
    engine.lock_.unlock();
  }
}

void write_stats_at_exit() noexcept { ForkRegistry::instance().write_stats(); }

// A sibling may be the peer that the caller waits for, and no other thread may make its progress.
void Engine::rest(Time until) {
  const nic::NoCancel no_cancel;
  if (place_.siblings != nullptr) {
    lock_.unlock();
    const bool busy = place_.siblings->progress_others(*this);
    lock_.lock();
    if (busy) return;
    until = std::min(until, clock_now() + kSiblingRest);
  }
  if (nic_->prepare_wait()) return;
  const Time deadline = std::min(until, next_deadline());
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock_now());
  pollfd poll_fd{.fd = nic_->wait_fd(), .events = POLLIN, .revents = 0};
  lock_.unlock();
  ::poll(&poll_fd, 1, static_cast<int>(std::clamp<std::int64_t>(left.count() + 1, 0, 10)));
  lock_.lock();
}

}  // namespace uet::prov
