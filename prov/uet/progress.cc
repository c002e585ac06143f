// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The thread spins while packets come, for a moment longer, and then sleeps until a packet, the
// domain's next deadline or stop(). A post that brings the deadline forward re-arms the timer.
#include "progress.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "domain.h"
#include "provider.h"

namespace uet::prov {
namespace {

constexpr int kIdlePasses = 20;  // before it sleeps

}  // namespace

int ProgressThread::start(Domain& domain) noexcept {
  domain_ = &domain;
  if (!wake_.open() || !domain.timer().open()) return -errno;
  epoll_ = open_epoll(wake_.get(), domain.timer().get(), domain.nic_fd());
  if (!epoll_.valid()) return -errno;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&thread_, nullptr, main, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    FI_WARN(&provider, FI_LOG_DOMAIN, "no progress thread: %s\n", strerror(error));
    return -error;
  }
  running_ = true;
  return 0;
}

void ProgressThread::stop() noexcept {
  if (!running_) return;
  stop_.store(true, std::memory_order_relaxed);
  wake_.signal();
  pthread_join(thread_, nullptr);
  running_ = false;
}

void* ProgressThread::main(void* self) noexcept {
  static_cast<ProgressThread*>(self)->loop();
  return nullptr;
}

void ProgressThread::loop() noexcept {
  int idle_passes = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    {
      const Guard guard(domain_->lock());
      idle_passes = domain_->progress(clock_now()) ? 0 : idle_passes + 1;
      if (idle_passes >= kIdlePasses) domain_->arm_timer();
    }
    if (idle_passes >= kIdlePasses) {
      pollfd poll_fd{.fd = epoll_.get(), .events = POLLIN, .revents = 0};
      ::poll(&poll_fd, 1, -1);
      idle_passes = kIdlePasses - 1;  // one pass for what woke it
    } else if (idle_passes > 0 || domain_->lock().contended()) {
      sched_yield();
    }
  }
}

}  // namespace uet::prov
