// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Tagged messages in one direction, one after the other, with their contents checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness.h"

namespace uet::e2e {

// Sends `messages` of `bytes` each to `peer`, tagged 0, 1, ..., or receives as many from `peer`.
// Ends the process if one fails or its data are wrong.
inline void stream(Node& node, fi_addr_t peer, bool sender, std::uint64_t messages,
                   std::size_t bytes) {
  std::vector<std::byte> memory(bytes);
  for (std::uint64_t i = 0; i < messages; ++i) {
    if (sender) {
      fill_pattern(memory, i);
      node.post("sending", [&] {
        return fi_tsend(node.ep.get(), memory.data(), bytes, nullptr, peer, i, nullptr);
      });
    } else {
      node.post("receiving", [&] {
        return fi_trecv(node.ep.get(), memory.data(), bytes, nullptr, peer, i, 0, nullptr);
      });
    }
    node.next("message");
    if (!sender) require_pattern(memory, i, "message");
  }
}

}  // namespace uet::e2e
