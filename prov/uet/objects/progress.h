// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Automatic progress: one thread per domain that asked for it, or that FI_UET_ENGINE=thread gives
// it.
#pragma once

#include "objects/lock.h"
#include "objects/thread.h"

namespace uet::prov {

class Engine;

class ProgressThread {
 public:
  // 0 or a negative fi_errno.
  int start(Engine& engine) noexcept;
  // Returns when the thread has ended. Not to be called with the domain's lock.
  void stop() noexcept { thread_.stop(); }
  bool running() const { return thread_.running(); }
  // In a forked child, where the thread does not exist.
  void forget() noexcept { thread_.forget(); }

 private:
  static void loop(void* self) noexcept;
  void run() noexcept;
  void place() noexcept;
  // True: the thread may sleep now.
  bool prepare_sleep() noexcept UET_NO_THREAD_ANALYSIS;

  Engine* engine_ = nullptr;
  Thread thread_;
};

}  // namespace uet::prov
