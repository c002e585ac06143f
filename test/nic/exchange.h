// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What two processes say to each other to show that they still can.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "e2e/harness.h"

namespace uet::e2e {

// Messages in both directions at once, `count` of `bytes` in turn. `take` gets what ends meanwhile
// of operations that have a context; without it there are none.
inline void exchange(Node& node, fi_addr_t peer, std::size_t bytes, std::uint64_t count,
                     const std::function<void(const Event&)>& take = {}) {
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
    for (int pending = 2; pending > 0;) {
      const auto event = node.poll();
      if (event && take && event->context != nullptr) {
        take(*event);
      } else if (event) {
        require(event->error == 0, std::string("a message failed: ") + fi_strerror(event->error));
        --pending;
      }
    }
    require_pattern(in, i, "message");
  }
}

// Runs `run` on both hosts, each with its end of a channel. Returns what went wrong.
inline std::string run_on_both(const std::function<void(Channel&)>& run,
                               const Environment& environment = {}) {
  ChannelPair channels;
  Process left("left", environment, [&] { run(channels.left); });
  Process right("right", environment, [&] { run(channels.right); });
  return wait_for_all({&left, &right});
}

}  // namespace uet::e2e
