// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The memory of an application's atomics from their command to their end: operands are copied out
// of the inline memory, which the next command may use before a packet has them; results wait here
// for their way to the application.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "process_memory.h"
#include "rings.h"
#include "uet/base/result.h"

namespace uet::engine {

class Atomics {
 public:
  // Of one application; atomics beyond wait for the end of others.
  static constexpr std::size_t kMostBytes = 4 << 20;

  explicit Atomics(ProcessMemory& memory) : memory_(memory) {}

  // Of one atomic; an empty slice stands for none.
  struct Slices {
    ses::IoSlice local;
    ses::IoSlice compare;
    ses::IoSlice results;
  };

  // `inlined`: the inline memory of the command. Invalid: the command is broken, or its number is
  // in use. Again: others hold too much memory. Throws bad_alloc.
  Result<Slices> begin(const prov::SharedCommand& command, std::span<const std::byte> inlined);
  // Its results go to the application.
  void end(const ses::Completion& completion) noexcept;
  // It has not begun.
  void forget(prov::OperationNumber number) noexcept;
  void forget_context(std::uint16_t context) noexcept;

 private:
  struct Atomic {
    std::uint16_t context = 0;
    std::vector<std::byte> bytes;  // operands, comparison values, results
    std::size_t results = 0;       // where these begin
    std::uint8_t pieces = 0;
    std::array<prov::SharedPiece, ses::kMaxIoSlices> piece{};  // where they go
  };

  using All = std::unordered_map<prov::OperationNumber, Atomic>;

  // The share of an atomic in kMostBytes, its entry of the table included.
  static std::size_t bytes_of(std::size_t own) { return own + 2 * sizeof(Atomic); }
  All::iterator erase(All::iterator atomic) noexcept;

  ProcessMemory& memory_;
  All all_;
  std::size_t held_bytes_ = 0;
};

}  // namespace uet::engine
