// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The order that makes wake-ups certain is always: arm, look, sleep. The timer is level-triggered
// and shared, because a deadline belongs to the domain; posting brings it forward. The event of the
// application's descriptor is drained only when nothing is there, so that no poller misses it.
#include "objects/wait.h"

#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "objects/engines.h"
#include "objects/wait_set.h"
#include "provider.h"

namespace uet::prov {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

timespec to_timespec(std::int64_t ns) {
  return {.tv_sec = static_cast<time_t>(ns / kSecond), .tv_nsec = static_cast<long>(ns % kSecond)};
}

}  // namespace

Time end_of_timeout(Time now, int timeout_ms) noexcept {
  return timeout_ms < 0 ? kNever : now + std::chrono::milliseconds(timeout_ms);
}

bool EventFd::open() noexcept {
  fd_ = nic::FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return fd_.valid();
}

void EventFd::signal() const noexcept {
  const nic::NoCancel no_cancel;
  const eventfd_t one = 1;
  // Fails only when the counter is full, and then it is readable anyway.
  [[maybe_unused]] const int result = eventfd_write(fd_.get(), one);
}

void EventFd::drain() const noexcept {
  const nic::NoCancel no_cancel;
  eventfd_t count;
  [[maybe_unused]] const int result = eventfd_read(fd_.get(), &count);  // EAGAIN: was empty
}

bool Timer::open() noexcept {
  fd_ = nic::FileDescriptor(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
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

bool watch(const nic::FileDescriptor& epoll, int fd) noexcept {
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  return fd < 0 || epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

nic::FileDescriptor open_epoll(int a, int b) noexcept {
  nic::FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  if (epoll.valid() && watch(epoll, a) && watch(epoll, b)) return epoll;
  return nic::FileDescriptor();
}

int Activity::open(int other) noexcept {
  if (timer_.open()) epoll_ = open_epoll(timer_.get(), other);
  return epoll_.valid() ? 0 : errno;
}

bool Sleeper::wait(int activity, Time end) const noexcept {
  if (event_.get() < 0) {
    sched_yield();
    return true;
  }
  pollfd fds[] = {{.fd = event_.get(), .events = POLLIN, .revents = 0},
                  {.fd = activity, .events = POLLIN, .revents = 0}};  // poll ignores -1
  if (end == kNever) return ::poll(fds, 2, -1) >= 0;
  const timespec left = to_timespec(std::max<std::int64_t>(0, to_ns(end) - to_ns(clock_now())));
  return ::ppoll(fds, 2, &left, nullptr) >= 0;
}

int Waiter::open(const fi_wait_obj& kind, fid_wait* set, struct fid* owner, Engines* engines) {
  if (is_beyond(kind, FI_WAIT_POLLFD)) {
    FI_WARN(&provider, FI_LOG_CORE,
            "fi_cq_open, fi_cntr_open: wait object %u: not supported; use FI_WAIT_FD\n",
            raw_number(kind));
    return -FI_EINVAL;
  }
  switch (kind) {
    case FI_WAIT_NONE:
    case FI_WAIT_UNSPEC:
    case FI_WAIT_YIELD:
    case FI_WAIT_FD:
    case FI_WAIT_POLLFD:
      break;
    case FI_WAIT_MUTEX_COND: {
      // Only a thread makes progress while the application sleeps on the condition.
      const int thread = engines != nullptr ? engines->need_thread() : 0;
      if (thread != 0) return thread;
      bell_ = std::make_unique<Bell>();
      if (const int result = bell_->open(); result != 0) return result;
      break;
    }
    case FI_WAIT_SET: {
      if (set == nullptr || set->fid.fclass != FI_CLASS_WAIT) {
        FI_WARN(&provider, FI_LOG_CORE,
                "fi_cq_open, fi_cntr_open: wait_set: not of fi_wait_open; pass one that is\n");
        return -FI_EINVAL;
      }
      WaitSet& wait_set = WaitSet::from(set);
      if (const int result = wait_set.attach(*owner, engines); result != 0) return result;
      set_ = &wait_set;
      owner_ = owner;
      engines_ = engines;
      break;
    }
  }
  kind_ = kind;
  return 0;
}

void Waiter::close() noexcept {
  if (set_ != nullptr) set_->detach(*owner_, engines_);
  set_ = nullptr;
}

int Waiter::open_descriptor(int activity) noexcept {
  if (epoll_.valid()) return 0;
  if (!event_.open()) return -errno;
  epoll_ = open_epoll(event_.get(), activity);
  if (!epoll_.valid()) return -errno;
  event_.signal();  // a poll before the first fi_trywait returns at once
  return 0;
}

int Waiter::get_wait(void* argument, int activity) noexcept {
  if (kind_ == FI_WAIT_MUTEX_COND) {
    *static_cast<fi_mutex_cond*>(argument) = bell_->handles();
    return 0;
  }
  if (kind_ != FI_WAIT_FD && kind_ != FI_WAIT_UNSPEC && kind_ != FI_WAIT_POLLFD) {
    return -FI_ENODATA;
  }
  if (const int result = open_descriptor(activity); result != 0) return result;
  if (kind_ != FI_WAIT_POLLFD) {
    *static_cast<int*>(argument) = epoll_.get();
    return 0;
  }
  // The epoll descriptor stands for all; it never changes.
  auto& answer = *static_cast<fi_wait_pollfd*>(argument);
  const bool fits = answer.nfds >= 1 && answer.fd != nullptr;
  answer.change_index = 1;
  answer.nfds = 1;
  if (fits) *answer.fd = {.fd = epoll_.get(), .events = POLLIN, .revents = 0};
  return fits ? 0 : -FI_ETOOSMALL;
}

int Waiter::control(int command, void* argument, int activity) noexcept {
  if (command != FI_GETWAITOBJ && command != FI_GETWAIT) return -FI_ENOSYS;
  if (argument == nullptr) return -FI_EINVAL;
  if (command == FI_GETWAIT) return get_wait(argument, activity);
  *static_cast<fi_wait_obj*>(argument) = kind_ == FI_WAIT_UNSPEC ? FI_WAIT_FD : kind_;
  return 0;
}

void Waiter::tell(std::uint64_t amount) noexcept {
  for (Sleeper& sleeper : sleepers_) {
    if (sleeper.woken_ || amount < sleeper.wake_at_) continue;
    sleeper.woken_ = true;
    sleeper.event_.signal();
  }
  if (armed_) {
    armed_ = false;
    if (bell_ != nullptr) bell_->ring();
    if (epoll_.valid()) event_.signal();
  }
  if (set_ != nullptr) set_->signal();
}

bool Waiter::has_object() const {
  return kind_ == FI_WAIT_UNSPEC || kind_ == FI_WAIT_FD || kind_ == FI_WAIT_POLLFD ||
         kind_ == FI_WAIT_MUTEX_COND;
}

void Waiter::arm() noexcept {
  if (epoll_.valid() && !armed_) event_.drain();
  armed_ = true;
}

bool Waiter::sleep(Lock& lock, int activity, Time end, std::uint64_t wake_at) noexcept {
  if (kind_ == FI_WAIT_NONE || kind_ == FI_WAIT_YIELD) {
    lock.unlock();
    sched_yield();
    lock.lock();
    return true;
  }
  Sleeper sleeper(wake_at);
  enlist(sleeper);
  lock.unlock();
  const bool undisturbed = sleeper.wait(activity, end);
  lock.lock();
  delist(sleeper);
  return undisturbed;
}

}  // namespace uet::prov
