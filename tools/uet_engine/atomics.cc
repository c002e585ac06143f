// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "atomics.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace uet::engine {

Result<Atomics::Slices> Atomics::begin(const prov::SharedCommand& command,
                                       std::span<const std::byte> inlined) {
  const std::size_t operands = command.inlined_bytes;
  const std::size_t compared = command.compared_bytes;
  if (operands > inlined.size() || compared > inlined.size() - operands ||
      command.pieces > ses::kMaxIoSlices) {
    return Error::Invalid;
  }
  std::uint64_t results = 0;
  for (std::size_t i = 0; i < command.pieces; ++i) {
    if (command.piece[i].length > prov::kShareInlineBytes - results) return Error::Invalid;
    results += command.piece[i].length;
  }
  const std::size_t bytes = operands + compared + results;
  if (held_bytes_ + bytes_of(bytes) > kMostBytes) return Error::Again;
  Atomic atomic;
  atomic.context = command.context;
  atomic.pieces = command.pieces;
  atomic.piece = command.piece;
  atomic.results = operands + compared;
  atomic.bytes.resize(bytes);
  std::copy_n(inlined.data(), atomic.results, atomic.bytes.data());
  // A number that is in use would take the memory from under its atomic.
  const auto placed = all_.try_emplace(command.operation, std::move(atomic));
  if (!placed.second) return Error::Invalid;
  held_bytes_ += bytes_of(bytes);
  std::byte* const at = placed.first->second.bytes.data();
  return Slices{.local = {at, operands},
                .compare = {at + operands, compared},
                .results = {at + operands + compared, results}};
}

void Atomics::end(const ses::Completion& completion) noexcept {
  const auto found = all_.find(number_of(completion.context));
  if (found == all_.end()) return;
  const Atomic& atomic = found->second;
  const std::byte* from = atomic.bytes.data() + atomic.results;
  for (std::size_t i = 0; i < atomic.pieces && completion.status == ses::Status::Ok; ++i) {
    const std::size_t length = atomic.piece[i].length;
    memory_.place(prov::address_of(atomic.piece[i].address), {from, length});
    from += length;
  }
  erase(found);
}

void Atomics::forget(prov::OperationNumber number) noexcept {
  const auto found = all_.find(number);
  if (found != all_.end()) erase(found);
}

void Atomics::forget_context(std::uint16_t context) noexcept {
  for (auto atomic = all_.begin(); atomic != all_.end();) {
    atomic = atomic->second.context == context ? erase(atomic) : std::next(atomic);
  }
}

Atomics::All::iterator Atomics::erase(All::iterator atomic) noexcept {
  held_bytes_ -= bytes_of(atomic->second.bytes.size());
  return all_.erase(atomic);
}

}  // namespace uet::engine
