// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What two processes say to each other to show that they still can.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "e2e/harness.h"

namespace uet::e2e {

// Messages in both directions at once, `count` of `bytes` in turn.
inline void exchange(Node& node, fi_addr_t peer, std::size_t bytes, std::uint64_t count) {
  std::vector<std::byte> out(bytes);
  std::vector<std::byte> in(bytes);
  for (std::uint64_t i = 0; i < count; ++i) {
    fill_pattern(out, i);
    node.post("receiving", [&] {
      return fi_trecv(node.ep.get(), in.data(), bytes, nullptr, FI_ADDR_UNSPEC, i, 0, nullptr);
    });
    node.post("sending", [&] {
      return fi_tsend(node.ep.get(), out.data(), bytes, nullptr, peer, i, nullptr);
    });
    node.drain(2, "a message");
    require_pattern(in, i, "message");
  }
}

}  // namespace uet::e2e
