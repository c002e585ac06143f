// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_UET_ENGINE=thread: posts go through rings to the engine's thread.
//
//   application                                  engine's thread, with the domain's lock
//   TxSide::post, RxSide::receive                Engine::progress
//     check the call, resolve the peer             Submissions::run: each queue that is polled
//     Submission: claim, fill in, publish   ──▶      Submission::run: execute, release
//     announce the queue, unless it is polled        a command that has to wait stays first
//     wake the thread, if it sleeps
//
// A queue is polled from its announcement on until the thread sleeps, or polls many. A post must
// see that this has ended, or the thread must see the post: each writes before it reads. The thread
// pays for that order, by membarrier(2) before it sleeps; without membarrier each post does, by a
// locked instruction.
//
// A call that does not fit a command (too many pieces, FI_PEEK ...) takes the domain's lock,
// executes what lies in its ring, and then itself.
#pragma once

#include <rdma/fabric.h>

#include <atomic>
#include <cstddef>

#include "uet/base/intrusive_list.h"
#include "uet/base/time.h"

namespace uet::prov {

class Submission;
struct PolledTag;

// The polled queues of an engine, and its doorbell.
class Submissions {
 public:
  // `active`: FI_UET_ENGINE=thread; the process is registered for membarrier(2) then. `threading`:
  // of the threads that post (fi_domain(3)).
  Submissions(bool active, fi_threading threading) noexcept;
  bool active() const { return active_; }
  fi_threading threading() const { return threading_; }

  // By any thread, after publishing: the engine polls `submission` from now on.
  void announce(Submission& submission) noexcept;
  // May a post read whether its queue is polled without a locked instruction?
  bool orders_posts() const { return orders_posts_; }

  // The rest with the engine's lock.
  // Executes the commands of all polled queues until one has to wait in each; true if any.
  bool run(Time now) noexcept;
  // Before the engine's thread sleeps: from now on each post announces its queue, which wakes the
  // thread. False: there is a command to execute.
  bool arm() noexcept;
  void disarm() noexcept { armed_.store(false, std::memory_order_relaxed); }
  // The queue closes.
  void forget(Submission& submission) noexcept;
  // announce() calls it where the thread sleeps; set before the first one.
  void wake_by(void (*wake)(void*) noexcept, void* argument) noexcept {
    wake_ = wake;
    argument_ = argument;
  }
  // A descriptor that wakes the thread when it is written.
  void set_doorbell(int fd) noexcept { doorbell_ = fd; }
  int doorbell() const noexcept { return doorbell_; }

 private:
  void collect() noexcept;
  bool retire() noexcept;

  const bool active_;
  const fi_threading threading_;
  const bool orders_posts_;
  alignas(64) std::atomic<Submission*> announced_{nullptr};  // a stack, the last one first
  std::atomic<bool> armed_{false};
  IntrusiveList<Submission, PolledTag> polled_;
  std::size_t polled_count_ = 0;
  unsigned passes_ = 0;  // with many polled queues
  void (*wake_)(void*) noexcept = nullptr;
  void* argument_ = nullptr;
  int doorbell_ = -1;
};

}  // namespace uet::prov
