// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The submission queue of an endpoint (submissions.h).
#pragma once

#include <atomic>
#include <cstddef>

#include "objects/lock.h"
#include "ses/operation_check.h"
#include "submission/command.h"
#include "submission/submissions.h"

namespace uet::prov {

class Endpoint;

// The two rings of an endpoint: operations that transmit, and receives, which must not wait behind
// them.
class Submission : public ListNode<PolledTag> {
 public:
  // Throws bad_alloc.
  Submission(Endpoint& endpoint, Submissions& engine, bool concurrent, std::size_t inject_size,
             const ses::OperationLimits& limits);
  // With the engine's lock: commands that are left end without a completion.
  ~Submission();

  CommandRing& tx() { return tx_; }
  // A copy: the engine writes beside the FEP's.
  const ses::OperationLimits& limits() const { return limits_; }
  // A command to fill in. Where the ring is full, the caller executes the first commands, with
  // `lock`, that of the engine; nullptr if the ring is full after that, too.
  CommandRing::Claim claim_tx(Lock& lock) noexcept { return claim(tx_, lock); }
  CommandRing::Claim claim_rx(Lock& lock) noexcept { return claim(rx_, lock); }
  // The command is filled in: gives it to the engine.
  void submit(const CommandRing::Claim& claim) noexcept {
    CommandRing::publish(claim);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // submissions.h: the thread does the rest
    if (engine_.orders_posts() && polled_.load(std::memory_order_relaxed)) return;
    if (!polled_.exchange(true, std::memory_order_acq_rel)) engine_.announce(*this);
  }

  // The rest with the engine's lock.
  // Executes commands until one has to wait. True if any.
  bool run(Time now) noexcept;
  // Likewise, all of one ring. False: commands are left.
  bool drain_tx(Time now) noexcept { return drain_all(tx_, now); }
  bool drain_rx(Time now) noexcept { return drain_all(rx_, now); }
  bool empty() noexcept { return tx_.published() == nullptr && rx_.published() == nullptr; }
  // fi_cancel: a command with this context that has not been executed ends as cancelled.
  bool cancel(const void* context) noexcept;

 private:
  friend class Submissions;
  CommandRing::Claim claim(CommandRing& ring, Lock& lock) noexcept;
  bool drain(CommandRing& ring, bool& any, Time now) noexcept;
  bool drain_all(CommandRing& ring, Time now) noexcept;
  bool execute(Command& command, CommandRing& ring, Time now) noexcept;
  // There is nothing to execute before something ends.
  bool is_quiet() noexcept {
    return (tx_blocked_ || tx_.published() == nullptr) &&
           (rx_blocked_ || rx_.published() == nullptr);
  }

  Endpoint& endpoint_;
  Submissions& engine_;
  const ses::OperationLimits limits_;
  Submission* next_ = nullptr;  // in the stack of announced queues
  bool tx_blocked_ = false;     // the first command has to wait
  bool rx_blocked_ = false;
  // Submitters read it for each command.
  alignas(64) std::atomic<bool> polled_{false};
  CommandRing tx_;
  CommandRing rx_;
};

}  // namespace uet::prov
