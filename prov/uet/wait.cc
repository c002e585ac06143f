// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The order that makes wake-ups certain is always: arm, look, sleep. The timer is level-triggered
// and shared, because a deadline belongs to the domain; posting brings it forward.
#include "wait.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>

#include <algorithm>
#include <cerrno>

#include "domain.h"
#include "provider.h"

namespace uet::prov {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

timespec to_timespec(std::int64_t ns) {
  return {.tv_sec = static_cast<time_t>(ns / kSecond), .tv_nsec = static_cast<long>(ns % kSecond)};
}

}  // namespace

Time clock_now() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return time_from_ns(now.tv_sec * kSecond + now.tv_nsec);
}

Time end_of_timeout(Time now, int timeout_ms) noexcept {
  return timeout_ms < 0 ? kNever : now + std::chrono::milliseconds(timeout_ms);
}

bool EventFd::open() noexcept {
  fd_ = nic::FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return fd_.valid();
}

void EventFd::signal() const noexcept {
  const eventfd_t one = 1;
  // Fails only when the counter is full, and then it is readable anyway.
  [[maybe_unused]] const int result = eventfd_write(fd_.get(), one);
}

void EventFd::drain() const noexcept {
  eventfd_t count;
  [[maybe_unused]] const int result = eventfd_read(fd_.get(), &count);  // EAGAIN: was empty
}

bool Timer::open() noexcept {
  if (!fd_.valid()) {
    fd_ = nic::FileDescriptor(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  }
  return fd_.valid();
}

void Timer::arm(Time deadline) noexcept {
  if (deadline == armed_) return;
  armed_ = deadline;
  itimerspec spec{};
  // 0 would mean "never"; the past is reached at once.
  if (deadline != kNever) spec.it_value = to_timespec(std::max<std::int64_t>(1, to_ns(deadline)));
  timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

nic::FileDescriptor open_epoll(int a, int b, int c) noexcept {
  nic::FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return epoll;
  for (const int fd : {a, b, c}) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    if (fd >= 0 && epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      return nic::FileDescriptor();
    }
  }
  return epoll;
}

bool Waiter::supports(fi_wait_obj kind) {
  return kind == FI_WAIT_NONE || kind == FI_WAIT_UNSPEC || kind == FI_WAIT_FD ||
         kind == FI_WAIT_YIELD;
}

int Waiter::open(Domain& domain, fi_wait_obj kind) noexcept {
  if (kind == FI_WAIT_NONE) return 0;
  const Guard guard(domain.lock());
  if (!event_.open() || !domain.timer().open()) return -errno;
  // With automatic progress packets and deadlines are the thread's business.
  const bool own_progress = !domain.has_thread();
  epoll_ = open_epoll(event_.get(), own_progress ? domain.timer().get() : -1,
                      own_progress ? domain.nic_fd() : -1);
  if (!epoll_.valid()) return -errno;
  kind_ = kind;
  return 0;
}

int Waiter::control(int command, void* argument) const noexcept {
  if (command == FI_GETWAITOBJ && argument != nullptr) {
    *static_cast<fi_wait_obj*>(argument) = kind_ == FI_WAIT_UNSPEC ? FI_WAIT_FD : kind_;
    return 0;
  }
  if (command == FI_GETWAIT && argument != nullptr) {
    if (kind_ != FI_WAIT_FD && kind_ != FI_WAIT_UNSPEC) return -FI_ENODATA;
    *static_cast<int*>(argument) = epoll_.get();
    return 0;
  }
  return -FI_ENOSYS;
}

void Waiter::arm(Domain& domain) noexcept {
  event_.drain();
  armed_ = true;
  if (!domain.has_thread()) domain.arm_timer();
}

void Waiter::sleep(Domain& domain, Time end) noexcept {
  ++sleepers_;
  if (!domain.has_thread()) domain.arm_timer();
  domain.lock().unlock();
  pollfd poll_fd{.fd = epoll_.get(), .events = POLLIN, .revents = 0};
  if (end == kNever) {
    ::poll(&poll_fd, 1, -1);
  } else {
    const std::int64_t left = to_ns(end) - to_ns(clock_now());
    const timespec limit = to_timespec(std::max<std::int64_t>(0, left));
    ::ppoll(&poll_fd, 1, &limit, nullptr);
  }
  domain.lock().lock();
  --sleepers_;
  event_.drain();
}

}  // namespace uet::prov
