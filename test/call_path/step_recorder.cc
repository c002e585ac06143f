// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// See step_recorder.h.
#include "call_path/step_recorder.h"

#include <signal.h>
#include <ucontext.h>

#include <memory>
#include <stdexcept>

namespace uet::call_path {
namespace {

Step* steps = nullptr;
std::size_t step_count = 0;

#ifdef __x86_64__
void on_step(int, siginfo_t*, void* context) {
  const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (step_count < kMostSteps) {
    const auto stack = static_cast<std::uint64_t>(registers[REG_RSP]);
    steps[step_count] = {static_cast<std::uint64_t>(registers[REG_RIP]), stack,
                         *reinterpret_cast<const std::uint64_t*>(stack)};
  }
  ++step_count;
}

// The 128 bytes below the stack pointer may be in use.
void set_trap_flag() {
  asm volatile(
      "lea -128(%%rsp), %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::
          : "memory", "cc");
}

void clear_trap_flag() {
  asm volatile(
      "lea -128(%%rsp), %%rsp\n pushfq\n andq $~0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::
          : "memory", "cc");
}
#endif

}  // namespace

std::vector<Step> record(const std::function<void()>& call) {
#ifdef __x86_64__
  const std::unique_ptr<Step[]> room(new Step[kMostSteps]);
  steps = room.get();
  step_count = 0;
  struct sigaction action {};
  struct sigaction before {};
  action.sa_sigaction = on_step;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGTRAP, &action, &before);
  set_trap_flag();
  call();
  clear_trap_flag();
  ::sigaction(SIGTRAP, &before, nullptr);
  if (step_count > kMostSteps) throw std::length_error("the call has more steps than are kept");
  return {steps, steps + step_count};
#else
  (void)call;
  throw std::logic_error("no steps can be recorded on this processor");
#endif
}

void CallStack::advance(const Step& step) {
  constexpr std::uint64_t kLongestInstruction = 15;
  while (!entry_stacks_.empty() && step.stack > entry_stacks_.back()) {
    entry_stacks_.pop_back();
    call_sites_.pop_back();
  }
  // A push moves the stack pointer as a call does; a call leaves the address behind itself there.
  const bool returns = step.top > last_.at && step.top <= last_.at + kLongestInstruction;
  if (step.stack + sizeof(std::uint64_t) == last_.stack && returns) {
    entry_stacks_.push_back(step.stack);
    call_sites_.push_back(last_.at);
  }
  last_ = step;
}

}  // namespace uet::call_path
