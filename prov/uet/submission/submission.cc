// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "submission/submission.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "objects/endpoint.h"
#include "submission/translation.h"

namespace uet::prov {
namespace {

constexpr int kMostCommands = 64;  // of a ring in one pass, so that packets have their turn
// More polled queues than this are looked through for idle ones, after so many passes.
constexpr std::size_t kFewQueues = 32;
constexpr unsigned kPassesToRetire = 1000;

}  // namespace

Submissions::Submissions() noexcept
    : orders_posts_(::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0) == 0) {}

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

Submission::Submission(Endpoint& endpoint, Submissions& engine, bool concurrent,
                       std::size_t inject_size, const ses::OperationLimits& limits)
    : endpoint_(endpoint),
      engine_(engine),
      limits_(limits),
      tx_(concurrent, inject_size),
      rx_(concurrent, 0) {}

Submission::~Submission() { engine_.forget(*this); }

// False: there is no room for what the command needs.
bool Submission::execute(Command& command, CommandRing& ring, Time now) noexcept {
  if (command.opcode == Opcode::None) return true;
  const bool receives = &ring == &rx_;
  if (command.cancelled) {
    return endpoint_.end_unposted(kind_of(command), command.context, command.flags);
  }
  return receives ? endpoint_.rx().execute(command, now) : endpoint_.tx().execute(command, now);
}

bool Submission::drain(CommandRing& ring, bool& any, Time now) noexcept {
  for (int done = 0; done < kMostCommands; ++done) {
    Command* const command = ring.published();
    if (command == nullptr) return true;
    if (!execute(*command, ring, now)) return false;
    ring.release();
    any = true;
  }
  return true;
}

bool Submission::run(Time now) noexcept {
  bool any = false;
  rx_blocked_ = !drain(rx_, any, now);
  tx_blocked_ = !drain(tx_, any, now);
  return any;
}

bool Submission::drain_all(CommandRing& ring, Time now) noexcept {
  bool any = true;
  while (std::exchange(any, false)) drain(ring, any, now);
  return ring.published() == nullptr;
}

CommandRing::Claim Submission::claim(CommandRing& ring, Lock& lock) noexcept {
  CommandRing::Claim claim = ring.claim();
  if (claim.command != nullptr) return claim;
  {
    const Guard guard(lock);
    drain_all(ring, clock_now());
  }
  claim = ring.claim();
  if (claim.command == nullptr) sched_yield();  // the engine's thread may wait for this processor
  return claim;
}

bool Submission::cancel(const void* context) noexcept {
  for (CommandRing* const ring : {&tx_, &rx_}) {
    for (std::size_t i = 0; Command* const command = ring->published(i); ++i) {
      if (command->context != context || command->cancelled) continue;
      command->cancelled = true;
      return true;
    }
  }
  return false;
}

}  // namespace uet::prov
