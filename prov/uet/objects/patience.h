// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Says when a caller that polls and finds nothing should give the processor to others.
// Usually after some passes: the peer may wait for this very processor. If programs that never wait
// want the processor too, each of them keeps it for its whole time slice, and the peer's answer
// lies here unseen for longer than it was on its way. Then the caller polls for longer before it
// yields. How long the last yield took says which of the two it is.
#pragma once

#include <sched.h>

#include <atomic>

#include "nic/clock.h"
#include "uet/base/time.h"

namespace uet::prov {

class Patience {
 public:
  static constexpr unsigned kPasses = 32;
  // Shorter than kCostly: two processes that share a processor and both poll for kLonger do not
  // look like programs that never wait.
  static constexpr Duration kLonger = std::chrono::microseconds(500);
  static constexpr Duration kCostly = std::chrono::milliseconds(1);

  // After each pass.
  void passed(bool busy, Time now) noexcept {
    if (busy) {
      idle_passes_ = 0;
      return;
    }
    if (idle_passes_ == 0 || returned_.load(std::memory_order_relaxed)) {
      returned_.store(false, std::memory_order_relaxed);
      since_ = now;
    }
    idle_ = now - since_;
    if (idle_passes_ < kPasses) ++idle_passes_;
  }
  bool exhausted() const noexcept {
    return idle_passes_ >= kPasses &&
           (idle_ >= kLonger || !costly_.load(std::memory_order_relaxed));
  }
  // Gives the processor to others.
  void yield() noexcept {
    const Time before = nic::monotonic_now();
    sched_yield();
    came_back(nic::monotonic_now() - before);
  }
  // Others had the processor for so long.
  void came_back(Duration after) noexcept {
    costly_.store(after >= kCostly, std::memory_order_relaxed);
    returned_.store(true, std::memory_order_relaxed);
  }

 private:
  unsigned idle_passes_ = 0;
  Time since_;
  Duration idle_{};
  std::atomic<bool> costly_{false};
  std::atomic<bool> returned_{false};
};

// Of readers that find nothing while the engine's thread makes the progress: now and then one gives
// it the processor.
class IdleReads {
 public:
  void note() noexcept {
    if (count_.fetch_add(1, std::memory_order_relaxed) % kReadsPerYield == 0) sched_yield();
  }

 private:
  static constexpr unsigned kReadsPerYield = 32;

  std::atomic<unsigned> count_{0};
};

}  // namespace uet::prov
