// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The one lock of a domain, and clang's annotations for it. Under FI_THREAD_DOMAIN with manual
// progress there is nothing to lock; a debug build then stops when two threads are inside at once.
#pragma once

#include <sched.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "uet/base/check.h"

#ifdef __clang__
#define UET_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define UET_THREAD_ANNOTATION(x)
#endif
#define UET_CAPABILITY(name) UET_THREAD_ANNOTATION(capability(name))
#define UET_SCOPED_CAPABILITY UET_THREAD_ANNOTATION(scoped_lockable)
#define UET_GUARDED_BY(lock) UET_THREAD_ANNOTATION(guarded_by(lock))
#define UET_REQUIRES(...) UET_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define UET_ACQUIRE(...) UET_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define UET_RELEASE(...) UET_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define UET_TRY_ACQUIRE(...) UET_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define UET_RETURN_CAPABILITY(lock) UET_THREAD_ANNOTATION(lock_returned(lock))
#define UET_NO_THREAD_ANALYSIS UET_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace uet::prov {

class UET_CAPABILITY("mutex") Lock {
 public:
  // `needed`: more than one thread may enter.
  explicit Lock(bool needed) : needed_(needed) {}
  // From now on more than one thread may enter; no thread is inside or comes in during the call.
  void need() {
    if (!needed_) needed_ = true;  // written only while no other thread can read it
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void lock() UET_ACQUIRE() UET_NO_THREAD_ANALYSIS {
    if (!needed_) {
      [[maybe_unused]] const bool alone = !occupied_.exchange(true, std::memory_order_relaxed);
      UET_ASSERT(alone);
    } else if (!mutex_.try_lock()) {
      waiting_.fetch_add(1, std::memory_order_relaxed);
      mutex_.lock();
      waiting_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  // False if another thread has it.
  bool try_lock() UET_TRY_ACQUIRE(true) UET_NO_THREAD_ANALYSIS {
    return needed_ ? mutex_.try_lock() : !occupied_.exchange(true, std::memory_order_relaxed);
  }
  // For the end of the process; false if others keep it for longer than a pass takes.
  bool try_lock_for_a_while() UET_TRY_ACQUIRE(true) UET_NO_THREAD_ANALYSIS {
    for (int attempt = 0; attempt < 1000; ++attempt) {
      if (try_lock()) return true;
      sched_yield();
    }
    return false;
  }
  void unlock() UET_RELEASE() UET_NO_THREAD_ANALYSIS {
    if (needed_) {
      mutex_.unlock();
    } else {
      occupied_.store(false, std::memory_order_relaxed);
    }
  }
  // The calling thread has it, and is in foreign code that may call back (CallOut).
  bool called_out() const {
    return caller_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
  // A thread waits for the lock: the progress thread then steps back.
  bool contended() const { return waiting_.load(std::memory_order_relaxed) > 0; }

 private:
  friend class CallOut;
  bool needed_;
  std::atomic<std::thread::id> caller_{};
  std::mutex mutex_;
  std::atomic<int> waiting_{0};
  std::atomic<bool> occupied_{false};
};

class UET_SCOPED_CAPABILITY Guard {
 public:
  explicit Guard(Lock& lock) UET_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
  // `held`: the caller has it already, and keeps it.
  Guard(Lock& lock, bool held) UET_ACQUIRE(lock) UET_NO_THREAD_ANALYSIS : lock_(lock), held_(held) {
    if (!held_) lock_.lock();
  }
  ~Guard() UET_RELEASE() UET_NO_THREAD_ANALYSIS {
    if (!held_) lock_.unlock();
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  Lock& lock_;
  const bool held_ = false;
};

// Around a call into foreign code by the lock's holder: calls back from there find the lock held.
class CallOut {
 public:
  explicit CallOut(Lock& lock) : lock_(lock) {
    lock_.caller_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  ~CallOut() { lock_.caller_.store({}, std::memory_order_relaxed); }
  CallOut(const CallOut&) = delete;
  CallOut& operator=(const CallOut&) = delete;

 private:
  Lock& lock_;
};

}  // namespace uet::prov
