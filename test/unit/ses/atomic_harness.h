// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two nodes, the second with a region of 64-bit counters.
#pragma once

#include "unit/ses/harness.h"

namespace uet::ses::test {

class AtomicNodes : public TwoNodes {
 protected:
  static constexpr std::size_t kCells = 512;

  AtomicNodes() {
    region.base = reinterpret_cast<std::byte*>(cells.data());
    region.length = sizeof cells;
    region.access = ri::kRemoteRead | ri::kRemoteWrite;
    key = b.regions.add(region).value();
  }
  template <class T>
  static IoSlice slice(T* values, std::size_t count) {
    return {reinterpret_cast<std::byte*>(values), count * sizeof(T)};
  }
  AtomicOp op(Kind form, wire::AmoOp what, const std::vector<IoSlice>& local,
              const std::vector<IoSlice>& results = {},
              const std::vector<IoSlice>& compare = {}) const {
    AtomicOp op;
    op.peer = &peer;
    op.kind = form;
    op.op = what;
    op.datatype = wire::AmoDatatype::Uint64;
    op.key = key;
    op.local = local;
    op.results = results;
    op.compare = compare;
    return op;
  }

  alignas(16) std::array<std::uint64_t, kCells> cells{};
  ri::MemoryRegion region;
  Rkey key;
  const Peer peer = b.peer();
};

}  // namespace uet::ses::test
