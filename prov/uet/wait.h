// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sleeping without missing anything. A sleeper of a domain waits for its packets (the NIC's
// descriptor), its next deadline (one timer per domain) and its own object's events (one eventfd
// per CQ, counter or EQ).
#pragma once

#include <rdma/fi_eq.h>

#include "lock.h"
#include "uet/base/time.h"
#include "uet/nic/socket.h"

namespace uet::prov {

class Domain;

// CLOCK_MONOTONIC; read once per call or pass.
Time clock_now() noexcept;

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
  // Opens it if it is not open yet.
  bool open() noexcept;
  void arm(Time deadline) noexcept;
  // Somebody may be asleep until a later time than `deadline`; costs nothing if nobody ever is.
  void bring_forward(Time deadline) noexcept {
    if (fd_.valid() && deadline < armed_) arm(deadline);
  }
  int get() const { return fd_.get(); }

 private:
  nic::FileDescriptor fd_;
  Time armed_ = kNever;
};

// The wait object of a CQ or counter, and those who sleep in sread or fi_cntr_wait on it.
class Waiter {
 public:
  // True if uet serves this kind. Everything but FI_WAIT_NONE gets descriptors; only UNSPEC and FD
  // give one to the application.
  static bool supports(fi_wait_obj kind);
  // 0 or a negative fi_errno.
  int open(Domain& domain, fi_wait_obj kind) noexcept;

  bool can_sleep() const { return kind_ != FI_WAIT_NONE; }
  // FI_GETWAIT and FI_GETWAITOBJ.
  int control(int command, void* argument) const noexcept;
  // Something new is there; wakes sleepers and the application's poll.
  void notify() noexcept {
    if (sleepers_ > 0 || armed_) event_.signal();
    armed_ = false;
  }
  // The next two with the domain's lock, which the analysis cannot see from here.
  // For fi_trywait: from now on the descriptor tells. The caller looks once more afterwards.
  void arm(Domain& domain) noexcept UET_NO_THREAD_ANALYSIS;
  // Gives up the domain's lock and sleeps until something may have happened, at the latest until
  // `end`.
  void sleep(Domain& domain, Time end) noexcept UET_NO_THREAD_ANALYSIS;
  bool others_sleep() const { return sleepers_ > 0; }
  void wake() noexcept { event_.signal(); }

 private:
  fi_wait_obj kind_ = FI_WAIT_NONE;
  EventFd event_;
  nic::FileDescriptor epoll_;
  int sleepers_ = 0;
  bool armed_ = false;
};

// An epoll descriptor over up to three others, -1 ignored; not valid() on failure.
nic::FileDescriptor open_epoll(int a, int b, int c) noexcept;

}  // namespace uet::prov
