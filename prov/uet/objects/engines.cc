// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "objects/engines.h"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "nic/port_sharing.h"

namespace uet::prov {

Engines::Engines(const Params& params, fi_threading threading, bool knows_hmem)
    : endpoints_(params.cores), lent_(params.cores) {
  engines_.reserve(params.cores);
  for (std::uint64_t number = 0; number < params.cores; ++number) {
    const EnginePlace place{params.cores > 1 ? this : nullptr, number};
    engines_.push_back(std::make_unique<Engine>(params, threading, knows_hmem, place));
  }
}

bool Engines::has(const Engine& engine) const {
  const std::size_t number = engine.place().number;
  return number < engines_.size() && engines_[number].get() == &engine;
}

Engine* Engines::at_port(std::uint16_t port) const {
  const auto found = std::find_if(engines_.begin(), engines_.end(), [&](const auto& engine) {
    return engine->local_address().port == port;
  });
  return found != engines_.end() ? found->get() : nullptr;
}

Engine& Engines::deal() {
  const std::lock_guard guard(mutex_);
  const auto fewest = std::min_element(endpoints_.begin(), endpoints_.end());
  ++*fewest;
  return *engines_[static_cast<std::size_t>(fewest - endpoints_.begin())];
}

Engine& Engines::seat(Engine& engine) {
  const std::lock_guard guard(mutex_);
  ++endpoints_[engine.place().number];
  return engine;
}

std::vector<Engine*> Engines::idle() const {
  const std::lock_guard guard(mutex_);
  std::vector<Engine*> idle;
  for (const auto& engine : engines_) {
    if (endpoints_[engine->place().number] == 0) idle.push_back(engine.get());
  }
  return idle;
}

int Engines::lend_port(Engine& owner, Engine& borrower) noexcept {
  const std::lock_guard lending(mutex_);
  const std::uint64_t bit = std::uint64_t{1} << borrower.place().number;
  std::uint64_t& lent = lent_[owner.place().number];
  if ((lent & bit) != 0) return 0;
  PdcIdShare share;
  {
    const Guard guard(borrower.lock());
    share = borrower.fep().config().pds.id_share;
  }
  nic::LentSocket socket;
  {
    const Guard guard(owner.lock());
    socket = owner.nic().lend_port(share);
    if (socket.fd < 0) return socket.fd;
    constexpr std::uint8_t kFirst = nic::PortExchange::kFirst;
    if (lent == 0 && !owner.watched().watch(socket.exchange->bell(kFirst))) return -FI_ENOMEM;
  }
  nic::FileDescriptor closes(socket.fd);
  const Guard guard(borrower.lock());
  if (!borrower.watched().watch(socket.fd) ||
      !borrower.watched().watch(socket.exchange->bell(share.number)) ||
      !borrower.nic().borrow_port(socket, owner.place().via(), share)) {
    return -FI_ENOMEM;
  }
  closes.release();
  lent |= bit;
  return 0;
}

void Engines::leave(const Engine& engine) noexcept {
  const std::lock_guard guard(mutex_);
  --endpoints_[engine.place().number];
}

int Engines::need_thread() noexcept {
  for (const auto& engine : engines_) {
    if (const int result = engine->need_thread(); result != 0) return result;
  }
  return 0;
}

bool Engines::progress_others(const Engine& but) noexcept {
  bool busy = false;
  for (const auto& engine : open_ones()) {
    if (engine.get() == &but || engine->dead()) continue;
    const Guard guard(engine->lock());
    busy |= engine->progress(clock_now());
  }
  return busy;
}

int Engines::cancel_work(const fi_deferred_work& work) noexcept {
  for (const auto& engine : engines_) {
    if (const int result = engine->works().cancel(work); result != -FI_ENOENT) return result;
  }
  return -FI_ENOENT;
}

int Engines::flush_work(const fi_deferred_work* work) noexcept {
  for (const auto& engine : engines_) {
    if (const int result = engine->works().flush(work); result != 0) return result;
  }
  return 0;
}

// As Engine::linger(), for all at a time.
template <class Done>
void Engines::linger(Done done) noexcept {
  Time now = clock_now();
  for (Duration left = kClosePatience; left > Duration{};) {
    bool busy = false;
    bool all_done = true;
    for (const auto& engine : open_ones()) {
      const Guard guard(engine->lock());
      busy |= engine->progress(now);
      all_done &= done(engine->fep());
    }
    if (all_done) return;
    if (!busy) ::poll(nullptr, 0, 1);
    const Time before = std::exchange(now, clock_now());
    left -= std::min(now - before, kLongestTurn);
  }
}

void Engines::close() noexcept {
  if (open_ == 0) return;
  if (!several()) return first().close();
  const nic::NoCancel no_cancel;
  for (const auto& engine : open_ones()) engine->close(ClosePart::Thread);
  if (!first().dead()) {
    linger([](fep::Fep& fep) { return fep.ses().idle(); });
    for (const auto& engine : open_ones()) {
      const Guard guard(engine->lock());
      engine->fep().begin_close(clock_now());
    }
    linger([](fep::Fep& fep) { return fep.closed(); });
  }
  for (const auto& engine : open_ones()) engine->close(ClosePart::Statistics);
}

[[gnu::cold, gnu::noinline]] void WriterGuard::enter(Lock& lock) UET_NO_THREAD_ANALYSIS {
  lock.lock();
}

[[gnu::cold, gnu::noinline]] void WriterGuard::leave(Lock& lock) UET_NO_THREAD_ANALYSIS {
  lock.unlock();
}

int ReadEngines::open() noexcept {
  if (!several()) return 0;
  epoll_ = open_epoll(-1, -1);
  return epoll_.valid() ? 0 : -errno;
}

void ReadEngines::add(const Engine& engine) noexcept {
  bound_.fetch_or(std::uint64_t{1} << engine.place().number, std::memory_order_relaxed);
}

void ReadEngines::add_all() noexcept {
  for (const auto& engine : engines_) add(*engine);
}

template <class Use>
void ReadEngines::for_each(Use use) noexcept {
  std::uint64_t left = bound_.load(std::memory_order_relaxed);
  if (left == 0) left = ~std::uint64_t{0} >> (64 - engines_.size());
  for (; left != 0; left &= left - 1) {
    use(engines_.at(static_cast<std::size_t>(std::countr_zero(left))));
  }
}

// Of several engines the readers wait for none: another thread makes its progress now.
bool ReadEngines::progress(Time now) noexcept {
  bool idle = true;
  const bool waits = std::has_single_bit(bound_.load(std::memory_order_relaxed));
  for_each([&](Engine& engine) UET_NO_THREAD_ANALYSIS {
    if (engine.submissions().active()) return;
    if (waits) {
      engine.lock().lock();
    } else if (!engine.lock().try_lock()) {
      idle = false;
      return;
    }
    engine.progress(now);
    idle &= engine.patience().exhausted();
    engine.lock().unlock();
  });
  return idle;
}

void ReadEngines::yield() noexcept {
  const Time before = clock_now();
  sched_yield();
  const Duration away = clock_now() - before;
  for_each([&](Engine& engine) { engine.patience().came_back(away); });
}

void ReadEngines::run_works() noexcept {
  for (const auto& engine : engines_) {
    if (!engine->works().has_arrivals()) continue;
    const Guard guard(engine->lock());
    engine->works().run();
  }
}

int ReadEngines::activity() noexcept {
  for_each([&](Engine& engine) {
    const Guard guard(engine.lock());
    const int fd = engine.activity();
    const std::uint64_t bit = std::uint64_t{1} << engine.place().number;
    if (fd < 0 || (watched_.load(std::memory_order_relaxed) & bit) != 0) return;
    // With the engine's lock: no other thread adds this one.
    if (watch(epoll_, fd)) watched_.fetch_or(bit, std::memory_order_relaxed);
  });
  return epoll_.get();
}

}  // namespace uet::prov
