// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Automatic progress: one thread per domain that asked for it.
#pragma once

#include <pthread.h>

#include <atomic>

#include "bell.h"
#include "wait.h"

namespace uet::prov {

class Domain;

class ProgressThread {
 public:
  // 0 or a negative fi_errno. The thread blocks all signals.
  int start(Domain& domain) noexcept;
  // Returns when the thread has ended. Not to be called with the domain's lock.
  void stop() noexcept;
  bool running() const { return running_; }
  // In a forked child, where the thread does not exist.
  void forget() noexcept { running_ = false; }

 private:
  static void* main(void* self) noexcept;
  void loop() noexcept;

  Domain* domain_ = nullptr;
  pthread_t thread_{};
  bool running_ = false;
  std::atomic<bool> stop_{false};
  EventFd wake_;
};

}  // namespace uet::prov
