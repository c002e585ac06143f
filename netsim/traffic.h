// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Who sends how much to whom, and when: read from a connection matrix in the form of the official
// simulator (uet-htsim), or generated. Knows no network.
//
// A matrix is lines of words; `#` begins a comment line:
//   Nodes 16 | Connections 2 | Triggers 1 | Failures 1
//   0->13 id 1 start 0 size 2000000 send_done_trigger 1    or recv_done_trigger
//   13->0 id 2 trigger 1 size 2000000
//   trigger id 1 oneshot | multishot | barrier count 2
//   failure switch_type TOR switch_id 0 link_id 1
// `start` counts picoseconds, as there, unless it ends in ns, us or ms. A connection may also have
// `rod` (ordered delivery) and `class` with a DSCP, which that simulator does not know.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "netsim/clock.h"

namespace uet::netsim {

struct Flow {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint64_t bytes = 0;
  std::uint32_t id = 0;                // as in the matrix; 0 = none
  std::optional<Picoseconds> start;    // or:
  std::uint32_t trigger = 0;           // starts it
  std::uint32_t sent_trigger = 0;      // told when the source has all ACKs; 0 = none
  std::uint32_t received_trigger = 0;  // told when the destination has all bytes; 0 = none
  bool rod = false;                    // ordered (ROD), whatever the others are
  std::uint8_t traffic_class = 0;      // 0 or pds::class_of_dscp: contexts of its own (CMS-2)
};

struct Trigger {
  std::uint32_t id = 0;
  // Fires when it has been told so often; 1 unless it is a barrier.
  std::uint32_t count = 1;
  bool repeats = false;  // fires each time (multishot)
};

// A link that the matrix wants slow: the simulator of this format gives it a quarter of its rate.
struct MatrixFailure {
  enum class Switch : std::uint8_t { Leaf, Aggregation, Spine };
  Switch kind{};
  std::uint32_t switch_id = 0;
  std::uint32_t link_id = 0;
};

struct Traffic {
  std::uint32_t nodes = 0;
  std::vector<Flow> flows;
  std::vector<Trigger> triggers;
  std::vector<MatrixFailure> failures;
};

// Reads a matrix. Empty and `complaint` ("line 3: ...") if it is not one.
std::optional<Traffic> read_matrix(std::istream& in, std::string& complaint);
void write_matrix(const Traffic& traffic, std::ostream& out);
// Describes an error between numbers that are valid alone: hosts that do not exist, unknown
// triggers, flows that nothing starts. Empty if there is none.
std::string complaint_about(const Traffic& traffic);

// N to 1: to host 0 from `count` others, drawn from the seed; seed 0: from hosts 1, 2, ...
Traffic incast(std::uint32_t nodes, std::uint32_t count, std::uint64_t bytes, std::uint64_t seed);
// 1 to N, likewise.
Traffic outcast(std::uint32_t nodes, std::uint32_t count, std::uint64_t bytes, std::uint64_t seed);
// Everybody sends to one other and receives from one other.
Traffic permutation(std::uint32_t nodes, std::uint64_t bytes, std::uint64_t seed);
// Each of `count` hosts to each other one; `serial`: a host sends to one at a time.
Traffic all_to_all(std::uint32_t nodes, std::uint32_t count, std::uint64_t bytes, bool serial);
// `count` hosts in a ring, 2 (count - 1) steps: a host passes on what it got in the step before.
Traffic ring_all_reduce(std::uint32_t nodes, std::uint32_t count, std::uint64_t bytes);

}  // namespace uet::netsim
