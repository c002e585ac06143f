// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From a semaphore, which anybody may post, to the condition, which wants its mutex.
#include "objects/bell.h"

#include <string.h>
#include <unistd.h>

#include "objects/thread.h"
#include "provider.h"

namespace uet::prov {

Bell::Bell() { sem_init(&rung_, 0, 0); }

Bell::~Bell() {
  if (process_ == getpid()) {
    const nic::NoCancel no_cancel;
    stop_.store(true, std::memory_order_relaxed);
    ring();
    pthread_join(thread_, nullptr);
  }
  sem_destroy(&rung_);
}

int Bell::open() noexcept {
  const int error = start_thread(thread_, main, this);
  if (error != 0) {
    FI_WARN(&provider, FI_LOG_CORE, "no thread for FI_WAIT_MUTEX_COND: %s\n", strerror(error));
    return -error;
  }
  process_ = getpid();
  return 0;
}

void* Bell::main(void* self) noexcept {
  Bell& bell = *static_cast<Bell*>(self);
  for (;;) {
    while (sem_wait(&bell.rung_) != 0) continue;
    if (bell.stop_.load(std::memory_order_relaxed)) return nullptr;
    pthread_mutex_lock(&bell.mutex_);
    pthread_cond_broadcast(&bell.condition_);
    pthread_mutex_unlock(&bell.mutex_);
  }
}

}  // namespace uet::prov
