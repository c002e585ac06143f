// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How the numbers of a domain have changed between two readings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "live_view/domain.h"

namespace uet::view {

struct Difference {
  std::string name;
  bool gauge = false;
  std::uint64_t before = 0;
  std::uint64_t now = 0;

  // Negative only for gauges, and where a peer was forgotten between the readings and came again.
  std::int64_t change() const { return static_cast<std::int64_t>(now - before); }
};

struct PeerChange {
  std::string name;
  std::vector<Difference> numbers;  // those that differ
};

struct Change {
  double seconds = 0;  // between the two updates by the domain; 0: it has made none
  std::vector<Difference> counters;
  std::vector<PeerChange> peers;  // with a difference
};

// Both are of the same domain. A counter or a peer that `before` lacks was 0.
Change change_between(const Domain& before, const Domain& now);

}  // namespace uet::view
