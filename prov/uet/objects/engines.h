// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The engines of a domain, as many as FI_UET_CORES says. Each endpoint belongs to one of them,
// which has a FEP, a NIC, a lock and progress of its own: threads that use endpoints of different
// engines write to no memory in common.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "nic/socket.h"
#include "objects/engine.h"

namespace uet::prov {

class Engines {
 public:
  // As many as params.cores. The other arguments as for each engine.
  Engines(const Params& params, fi_threading threading, bool knows_hmem);

  // Connections and shared contexts of the domain belong to this one; all engines have the same
  // parameters, interface and payload MTU.
  Engine& first() { return *engines_.front(); }
  bool several() const { return engines_.size() > 1; }
  bool has(const Engine& engine) const;
  std::size_t size() const { return engines_.size(); }
  Engine& at(std::size_t number) const { return *engines_[number]; }
  auto begin() const { return engines_.begin(); }
  auto end() const { return engines_.end(); }
  // The next engine has been opened, in the order of their numbers.
  void note_open() { ++open_; }
  // The engine at this UDP port; nullptr: none.
  Engine* at_port(std::uint16_t port) const;

  // For a new endpoint, which is then counted: the engine that has fewest.
  Engine& deal();
  // Likewise: this engine.
  Engine& seat(Engine& engine);
  // The engines that have no endpoint now. May throw bad_alloc.
  std::vector<Engine*> idle() const;
  // From now on the FEP of `borrower` can send from the port of `owner`, with its via
  // (EnginePlace). 0 or a negative fi_errno; the caller has no lock.
  int lend_port(Engine& owner, Engine& borrower) noexcept;
  // The endpoint closes.
  void leave(const Engine& engine) noexcept;

  // As Engine::need_thread, for all. 0 or a negative fi_errno.
  int need_thread() noexcept;
  // A pass of each but one, which the caller has no lock of; true if there was work.
  bool progress_others(const Engine& but) noexcept;
  // As those of WorkQueue, for all.
  int cancel_work(const fi_deferred_work& work) noexcept;
  int flush_work(const fi_deferred_work* work) noexcept;
  // As Engine::close, for all that are open at a time: endpoints of one may have peers at another.
  void close() noexcept;

 private:
  template <class Done>
  void linger(Done done) noexcept;

  std::span<const std::unique_ptr<Engine>> open_ones() const { return {engines_.data(), open_}; }

  std::vector<std::unique_ptr<Engine>> engines_;
  std::size_t open_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::size_t> endpoints_;  // of each engine
  std::vector<std::uint64_t> lent_;     // of each engine, a bit for each that has borrowed its port
};

// The locks of all engines, for what all read and few calls change: address vectors, regions,
// bindings. The holder of any one of the locks may read that. No holder of one may take all.
class AllLocks {
 public:
  // `held`: the caller has the only lock already, and keeps it.
  explicit AllLocks(Engines& engines, bool held = false) UET_NO_THREAD_ANALYSIS : engines_(engines),
                                                                                  held_(held) {
    if (held_) return;
    for (const auto& engine : engines_) engine->lock().lock();
  }
  ~AllLocks() UET_NO_THREAD_ANALYSIS {
    if (held_) return;
    for (const auto& engine : engines_) engine->lock().unlock();
  }
  AllLocks(const AllLocks&) = delete;
  AllLocks& operator=(const AllLocks&) = delete;

 private:
  Engines& engines_;
  const bool held_;
};

// Around a change of an object that several engines write to, each with its own lock. nullptr: one
// engine does, and its lock is enough; then the guard costs a branch.
class WriterGuard {
 public:
  explicit WriterGuard(Lock* lock) : lock_(lock) {
    if (lock_ != nullptr) [[unlikely]]
      enter(*lock_);
  }
  ~WriterGuard() {
    if (lock_ != nullptr) [[unlikely]]
      leave(*lock_);
  }
  WriterGuard(const WriterGuard&) = delete;
  WriterGuard& operator=(const WriterGuard&) = delete;

 private:
  // Out of the way of a domain with one engine.
  static void enter(Lock& lock);
  static void leave(Lock& lock);

  Lock* const lock_;
};

// The engines whose progress the readers of a queue or counter make: those of the endpoints and
// regions that are bound to it, or all as long as nothing is. Of a domain with one engine readers
// have ways of their own.
class ReadEngines {
 public:
  explicit ReadEngines(Engines& engines) : engines_(engines), several_(engines.several()) {}
  // For an object with a wait object, before any other call. 0 or a negative fi_errno.
  int open() noexcept;

  bool several() const { return several_; }
  const Engines& all() const { return engines_; }
  // An endpoint of this engine has been bound, or a region of all.
  void add(const Engine& engine) noexcept;
  void add_all() noexcept;

  // A pass of each, unless threads make the progress or, of several, another thread uses it; the
  // caller has no lock. True: the caller should yield if it has found nothing.
  bool progress(Time now) noexcept;
  void yield() noexcept;
  // Posts the works that a counter has just released; the caller has no lock.
  void run_works() noexcept;
  // For a caller about to sleep, without a lock: readable when one of the engines needs progress;
  // sets their timers.
  int activity() noexcept;

 private:
  template <class Use>
  void for_each(Use use) noexcept;

  Engines& engines_;
  const bool several_;
  static_assert(kMostCores <= 64);
  std::atomic<std::uint64_t> bound_{0};    // a bit for each engine
  std::atomic<std::uint64_t> watched_{0};  // likewise: its descriptor is in epoll_
  nic::FileDescriptor epoll_;
};

}  // namespace uet::prov
