// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What uet_run tells an agent to start, as it goes through the standard input of the agent: no
// other user sees it there, as command lines are seen.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace uet::run {

struct Order {
  std::string directory;               // to start in, if it is there
  std::vector<std::string> variables;  // "NAME=value", beside what the agent's environment has
  std::vector<std::string> arguments;  // the program first; not empty
  bool operator==(const Order&) const = default;
};

inline constexpr std::size_t kMostOrderBytes = 4U << 20;
inline constexpr std::size_t kOrderHeaderBytes = 8;

// With a header of kOrderHeaderBytes. Texts have no 0 bytes.
std::string encode(const Order& order);
// Length of what follows a header; empty if it is none, or too long.
std::optional<std::size_t> body_bytes(std::string_view header);
std::optional<Order> decode(std::string_view body);

}  // namespace uet::run
