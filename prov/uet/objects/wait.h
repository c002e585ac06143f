// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sleeping without missing an event. A thread asleep in a call (Sleeper) has its own event;
// the application's descriptor or condition has another one. Both also watch the packets and the
// deadlines of the domains whose progress the sleeper makes itself (Engine::activity, DomainGroup).
#pragma once

#include <rdma/fi_eq.h>

#include <cstdint>
#include <memory>

#include "nic/clock.h"
#include "nic/socket.h"
#include "objects/bell.h"
#include "objects/lock.h"
#include "uet/base/intrusive_list.h"
#include "uet/base/time.h"

namespace uet::prov {

class Engines;
class WaitSet;
struct SleeperTag;

// Read once per call or pass.
inline Time clock_now() noexcept { return nic::monotonic_now(); }

// The moment a libfabric time-out (milliseconds, negative = none) ends.
Time end_of_timeout(Time now, int timeout_ms) noexcept;

class EventFd {
 public:
  bool open() noexcept;
  void signal() const noexcept;
  void drain() const noexcept;
  int get() const { return fd_.get(); }

 private:
  nic::FileDescriptor fd_;
};

// The domain's next deadline as a descriptor, which becomes and stays readable when it is reached.
class Timer {
 public:
  bool open() noexcept;
  void arm(Time deadline) noexcept;
  // Has any thread ever slept?
  bool in_use() const { return armed_ != Time::min(); }
  // A thread may be asleep until a later time than `deadline`; costs nothing if none ever slept.
  void bring_forward(Time deadline) noexcept {
    if (deadline < armed_) arm(deadline);
  }
  int get() const { return fd_.get(); }

 private:
  nic::FileDescriptor fd_;
  Time armed_ = Time::min();  // no thread has slept yet
};

// Adds `fd` to an epoll descriptor, -1 ignored. False: the kernel has no memory.
bool watch(const nic::FileDescriptor& epoll, int fd) noexcept;
// An epoll descriptor over up to two others, -1 ignored; not valid() on failure.
nic::FileDescriptor open_epoll(int a, int b) noexcept;

// Readable when an engine needs progress: its deadline has come, or one of the descriptors that it
// watches is readable. With the lock of the engine, except fd().
class Activity {
 public:
  // Also watches `other`, -1: none. 0 or an errno.
  int open(int other) noexcept;
  bool watch(int descriptor) noexcept { return prov::watch(epoll_, descriptor); }
  int fd() const { return epoll_.get(); }
  Timer& timer() { return timer_; }
  // A thread that sleeps looks again what it waits for.
  void wake() noexcept {
    if (timer_.in_use()) timer_.arm(Time{});
  }

 private:
  Timer timer_;
  nic::FileDescriptor epoll_;
};

// One thread asleep in fi_cq_sread, fi_cntr_wait, fi_eq_sread or fi_wait; lives on its stack.
class Sleeper : public ListNode<SleeperTag> {
 public:
  // Wakes when the object holds `wake_at` entries, or counts to it.
  explicit Sleeper(std::uint64_t wake_at) : wake_at_(wake_at) { event_.open(); }
  // Returns when woken, when `activity` (-1: none) is readable, at `end`, or, with false, because a
  // signal handler ran. Not to be called with a lock.
  bool wait(int activity, Time end) const noexcept;

 private:
  friend class Waiter;
  const std::uint64_t wake_at_;
  bool woken_ = false;
  EventFd event_;  // may not be open when descriptors are short: then wait() only yields
};

// The wait object of a CQ, counter, EQ or wait set, and those who sleep on it. All but open and
// close are called with the owner's lock.
class Waiter {
 public:
  ~Waiter() { close(); }

  // 0 or a negative fi_errno. `owner` and `set` count for FI_WAIT_SET, `engines` is nullptr for an
  // object that belongs to no domain.
  int open(const fi_wait_obj& kind, fid_wait* set, struct fid* owner, Engines* engines);
  // Leaves the wait set.
  void close() noexcept;

  fi_wait_obj kind() const { return kind_; }
  bool can_sleep() const { return kind_ != FI_WAIT_NONE; }

  // FI_GETWAIT and FI_GETWAITOBJ. `activity`: readable when the owner's domains need progress, -1
  // when others see to it.
  int control(int command, void* argument, int activity) noexcept;

  // The object holds `amount` entries now, or has counted to it.
  void notify(std::uint64_t amount = UINT64_MAX) noexcept {
    if (is_watched()) tell(amount);
  }
  // A thread, a wait set or the application waits for news.
  bool is_watched() const { return armed_ || set_ != nullptr || !sleepers_.empty(); }
  // For fi_trywait, when nothing is there: from now on the application's object tells.
  void arm() noexcept;
  // Whether there is an object that arm() is about.
  bool has_object() const;

  // Gives up `lock` and sleeps until something may have happened; YIELD and NONE only yield the
  // processor. False: a signal handler ran.
  bool sleep(Lock& lock, int activity, Time end,
             std::uint64_t wake_at = 1) noexcept UET_NO_THREAD_ANALYSIS;
  // The parts of sleep(), for owners that look at other objects in between.
  void enlist(Sleeper& sleeper) noexcept { sleepers_.push_back(sleeper); }
  void delist(Sleeper& sleeper) noexcept { sleepers_.remove(sleeper); }

 private:
  int open_descriptor(int activity) noexcept;
  void tell(std::uint64_t amount) noexcept;
  int get_wait(void* argument, int activity) noexcept;

  fi_wait_obj kind_ = FI_WAIT_NONE;
  bool armed_ = false;
  WaitSet* set_ = nullptr;
  struct fid* owner_ = nullptr;
  Engines* engines_ = nullptr;
  IntrusiveList<Sleeper, SleeperTag> sleepers_;
  EventFd event_;  // with epoll_: the application's descriptor, opened when it is asked for
  nic::FileDescriptor epoll_;
  std::unique_ptr<Bell> bell_;  // FI_WAIT_MUTEX_COND
};

}  // namespace uet::prov
