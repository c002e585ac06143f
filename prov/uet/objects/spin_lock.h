// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A lock around a few instructions, which no holder sleeps with. It is taken only where threads of
// the application meet the engine's own thread (FI_UET_ENGINE=thread) or several engines of the
// domain (FI_UET_CORES); elsewhere the lock of the only engine protects the same data, and this one
// costs a branch.
#pragma once

#include <sched.h>

#include <atomic>

#include "objects/lock.h"

namespace uet::prov {

class UET_CAPABILITY("mutex") SpinLock {
 public:
  explicit SpinLock(bool needed) : needed_(needed) {}
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

  void lock() UET_ACQUIRE() UET_NO_THREAD_ANALYSIS {
    if (needed_ && locked_.exchange(true, std::memory_order_acquire)) wait();
  }
  void unlock() UET_RELEASE() UET_NO_THREAD_ANALYSIS {
    if (needed_) locked_.store(false, std::memory_order_release);
  }

 private:
  static constexpr int kSpins = 200;  // then the holder may have lost its processor

  void wait() noexcept {
    for (int spins = 0;; ++spins) {
      if (!locked_.load(std::memory_order_relaxed) &&
          !locked_.exchange(true, std::memory_order_acquire)) {
        return;
      }
      if (spins >= kSpins) sched_yield();
    }
  }

  const bool needed_;
  std::atomic<bool> locked_{false};
};

class UET_SCOPED_CAPABILITY SpinGuard {
 public:
  explicit SpinGuard(SpinLock& lock) UET_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
  ~SpinGuard() UET_RELEASE() { lock_.unlock(); }
  SpinGuard(const SpinGuard&) = delete;
  SpinGuard& operator=(const SpinGuard&) = delete;

 private:
  SpinLock& lock_;
};

}  // namespace uet::prov
