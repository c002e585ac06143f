// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "submission/submission.h"

#include <sched.h>

#include <utility>

#include "objects/endpoint.h"
#include "submission/translation.h"

namespace uet::prov {
namespace {

constexpr int kMostCommands = 64;  // of a ring in one pass, so that packets have their turn

}  // namespace

Submission::Submission(Endpoint& endpoint, Submissions& engine, bool concurrent,
                       std::size_t inject_size, const ses::OperationLimits& limits)
    : endpoint_(endpoint),
      engine_(engine),
      limits_(limits),
      tx_(concurrent, inject_size),
      rx_(concurrent, 0) {}

Submission::~Submission() { engine_.forget(*this); }

// False: the command has to wait for slots or memory.
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
