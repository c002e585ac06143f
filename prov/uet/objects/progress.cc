// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The thread spins while packets or commands come, for a moment longer, and then sleeps until a
// packet, a command, the domain's next deadline or stop(). A post that brings the deadline forward
// re-arms the timer.
#include "objects/progress.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "objects/engine.h"
#include "provider.h"

namespace uet::prov {
namespace {

constexpr int kIdlePasses = 20;  // before it sleeps

// FI_UET_CORES: the engines take the processors in turn.
void keep_one(cpu_set_t& processors, std::size_t number) {
  std::size_t left = number % static_cast<std::size_t>(CPU_COUNT(&processors));
  for (int each = 0; each < CPU_SETSIZE; ++each) {
    if (CPU_ISSET(each, &processors) && left-- != 0) CPU_CLR(each, &processors);
  }
}

}  // namespace

int ProgressThread::start(Engine& engine) noexcept {
  engine_ = &engine;
  engine.submissions().wake_by([](void* self) noexcept { static_cast<Thread*>(self)->wake(); },
                               &thread_);
  const int error = thread_.start(loop, this);
  engine.submissions().set_doorbell(thread_.wake_fd().get());
  if (error != 0) FI_WARN(&provider, FI_LOG_DOMAIN, "no progress thread: %s\n", strerror(error));
  return -error;
}

void ProgressThread::loop(void* self) noexcept { static_cast<ProgressThread*>(self)->run(); }

// FI_UET_ENGINE_CPUS, and a name for tools that list threads.
void ProgressThread::place() noexcept {
  pthread_setname_np(pthread_self(), "uet-engine");
  auto processors = parse_cpus(engine_->params().engine_cpus);
  if (!processors) return;
  if (engine_->params().cores > 1) keep_one(*processors, engine_->place().number);
  if (sched_setaffinity(0, sizeof *processors, &*processors) == 0) return;
  FI_WARN(&provider, FI_LOG_DOMAIN,
          "fi_domain: FI_UET_ENGINE_CPUS=%s: %s; name processors that this process may use\n",
          engine_->params().engine_cpus.c_str(), strerror(errno));
}

bool ProgressThread::prepare_sleep() noexcept {
  return engine_->prepare_sleep() && engine_->submissions().arm();
}

void ProgressThread::run() noexcept {
  if (engine_->submissions().active()) place();
  const Duration spin = engine_->submissions().active()
                            ? std::chrono::microseconds(engine_->params().engine_spin_us)
                            : Duration{};
  int idle_passes = 0;
  Time busy_at = clock_now();
  while (!thread_.stopping()) {
    bool sleeps = false;
    {
      const Guard guard(engine_->lock());
      const Time now = clock_now();
      const bool busy = engine_->progress(now);
      if (busy) busy_at = now;
      idle_passes = busy ? 0 : idle_passes + 1;
      sleeps = idle_passes >= kIdlePasses && now - busy_at >= spin && prepare_sleep();
    }
    if (sleeps) {
      pollfd fds[] = {{.fd = thread_.wake_fd().get(), .events = POLLIN, .revents = 0},
                      {.fd = engine_->watched().fd(), .events = POLLIN, .revents = 0}};
      ::poll(fds, 2, -1);
      engine_->submissions().disarm();
      thread_.wake_fd().drain();
      idle_passes = kIdlePasses - 1;  // one pass for what woke it
    } else if (idle_passes > 0 || engine_->lock().contended()) {
      sched_yield();
    }
  }
}

}  // namespace uet::prov
