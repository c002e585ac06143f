// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The thread spins while packets come, for a moment longer, and then sleeps until a packet, the
// domain's next deadline or stop(). A post that brings the deadline forward re-arms the timer.
#include "objects/progress.h"

#include <poll.h>
#include <sched.h>
#include <string.h>

#include "objects/engine.h"
#include "provider.h"

namespace uet::prov {
namespace {

constexpr int kIdlePasses = 20;  // before it sleeps

}  // namespace

int ProgressThread::start(Engine& engine) noexcept {
  engine_ = &engine;
  const int error = thread_.start(loop, this);
  if (error != 0) FI_WARN(&provider, FI_LOG_DOMAIN, "no progress thread: %s\n", strerror(error));
  return -error;
}

void ProgressThread::loop(void* self) noexcept { static_cast<ProgressThread*>(self)->run(); }

void ProgressThread::run() noexcept {
  int idle_passes = 0;
  while (!thread_.stopping()) {
    {
      const Guard guard(engine_->lock());
      idle_passes = engine_->progress(clock_now()) ? 0 : idle_passes + 1;
      if (idle_passes >= kIdlePasses) engine_->prepare_sleep();
    }
    if (idle_passes >= kIdlePasses) {
      pollfd fds[] = {{.fd = thread_.wake_fd().get(), .events = POLLIN, .revents = 0},
                      {.fd = engine_->activity_fd(), .events = POLLIN, .revents = 0}};
      ::poll(fds, 2, -1);
      idle_passes = kIdlePasses - 1;  // one pass for what woke it
    } else if (idle_passes > 0 || engine_->lock().contended()) {
      sched_yield();
    }
  }
}

}  // namespace uet::prov
