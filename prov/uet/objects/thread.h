// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A thread of the provider. It blocks all signals, which are for the application's threads.
#pragma once

#include <pthread.h>

#include <atomic>

#include "objects/wait.h"

namespace uet::prov {

// Without an end of its own (Bell): 0 or a positive errno.
int start_thread(pthread_t& thread, void* (*main)(void*), void* argument) noexcept;

// One that sleeps on a descriptor now and then and ends when it is told to.
class Thread {
 public:
  using Loop = void (*)(void* owner) noexcept;

  // Runs loop(owner), which is to come back soon once stopping() is true. 0 or a positive errno.
  int start(Loop loop, void* owner) noexcept;
  // Returns when the loop has; not to be called with a lock that it takes.
  void stop() noexcept;
  // In a forked child, where the thread does not exist.
  void forget() noexcept { running_ = false; }
  bool running() const { return running_; }

  void wake() const noexcept { wake_.signal(); }

  // For the loop. The descriptor is readable after wake() and stop(), until drained.
  bool stopping() const { return stop_.load(std::memory_order_relaxed); }
  const EventFd& wake_fd() const { return wake_; }

 private:
  static void* main(void* self) noexcept;

  Loop loop_ = nullptr;
  void* owner_ = nullptr;
  pthread_t thread_{};
  bool running_ = false;
  std::atomic<bool> stop_{false};
  EventFd wake_;
};

}  // namespace uet::prov
