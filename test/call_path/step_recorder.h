// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Runs a call one instruction at a time, so that a test learns every function on its way without a
// line of code for that in the product.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace uet::call_path {

// The address of an instruction, and before it the stack pointer and the value on top of the stack.
struct Step {
  std::uint64_t at = 0;
  std::uint64_t stack = 0;
  std::uint64_t top = 0;
};

// The processor stops after each instruction (the trap flag of x86-64); ThreadSanitizer would not
// pass on the signal.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
inline constexpr bool kCanRecord = true;
#else
inline constexpr bool kCanRecord = false;
#endif

// All steps of `call` in this thread, those of libraries too. Replaces the handler of SIGTRAP.
// Throws std::length_error beyond kMostSteps.
std::vector<Step> record(const std::function<void()>& call);

inline constexpr std::size_t kMostSteps = 4'000'000;

// Call sites of the functions that are under way, kept from step to step.
class CallStack {
 public:
  // To be called with each step in turn.
  void advance(const Step& step);
  // The addresses of the call instructions, outermost first, without the current instruction.
  const std::vector<std::uint64_t>& call_sites() const { return call_sites_; }

 private:
  Step last_;
  std::vector<std::uint64_t> entry_stacks_;  // the stack pointer at each function's first step
  std::vector<std::uint64_t> call_sites_;
};

}  // namespace uet::call_path
