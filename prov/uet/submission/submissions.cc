// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "submission/submissions.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "submission/submission.h"

namespace uet::prov {
namespace {

// More polled queues than this are looked through for idle ones, after so many passes.
constexpr std::size_t kFewQueues = 32;
constexpr unsigned kPassesToRetire = 1000;

}  // namespace

Submissions::Submissions(bool active, fi_threading threading) noexcept
    : active_(active),
      threading_(threading),
      orders_posts_(active &&
                    ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0) == 0) {}

// In one total order (seq_cst) of these accesses: either the thread that arms the doorbell sees the
// queue, or the announcer sees the armed doorbell.
void Submissions::announce(Submission& submission) noexcept {
  Submission* first = announced_.load(std::memory_order_relaxed);
  do {
    submission.next_ = first;
  } while (!announced_.compare_exchange_weak(first, &submission, std::memory_order_seq_cst,
                                             std::memory_order_relaxed));
  if (armed_.load(std::memory_order_seq_cst) && armed_.exchange(false, std::memory_order_relaxed)) {
    wake_(argument_);
  }
}

void Submissions::collect() noexcept {
  if (announced_.load(std::memory_order_relaxed) == nullptr) return;
  Submission* next = announced_.exchange(nullptr, std::memory_order_acquire);
  while (next != nullptr) {
    Submission& submission = *next;
    next = submission.next_;
    if (static_cast<ListNode<PolledTag>&>(submission).linked()) continue;
    polled_.push_back(submission);
    ++polled_count_;
  }
}

bool Submissions::run(Time now) noexcept {
  collect();
  bool any = false;
  for (Submission& submission : polled_) any |= submission.run(now);
  if (polled_count_ > kFewQueues && ++passes_ >= kPassesToRetire) {
    passes_ = 0;
    retire();
  }
  return any;
}

// From now on each post announces its queue. Queues without work are polled no more. False: a queue
// has work.
bool Submissions::retire() noexcept {
  collect();
  for (Submission& submission : polled_) {
    submission.polled_.exchange(false, std::memory_order_acq_rel);
  }
  if (orders_posts_) ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0);
  bool quiet = true;
  for (auto at = polled_.begin(); at != polled_.end();) {
    Submission& submission = *at;
    ++at;
    quiet &= submission.is_quiet();
    if (!submission.empty()) continue;
    polled_.remove(submission);
    --polled_count_;
  }
  return quiet;
}

bool Submissions::arm() noexcept {
  armed_.store(true, std::memory_order_seq_cst);
  if (retire() && announced_.load(std::memory_order_seq_cst) == nullptr) return true;
  disarm();
  return false;
}

void Submissions::forget(Submission& submission) noexcept {
  collect();
  if (!static_cast<ListNode<PolledTag>&>(submission).linked()) return;
  polled_.remove(submission);
  --polled_count_;
}

}  // namespace uet::prov
