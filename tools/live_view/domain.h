// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A domain as uet_stats, uet_top and uet_exporter see it: the numbers of a live page (live/page.h),
// by name. Must not know how they are shown.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "live/page_reader.h"

namespace uet::view {

// A number that each peer has.
struct Column {
  std::string name;     // the unit ends it; "nacks_received_trimmed" for a NACK code
  std::string meaning;  // a few words, for people
  bool gauge = false;   // shows a state; else counts, and only grows
};
// The numbers of live::peer_fields(), then one for each name of a NACK code.
std::span<const Column> peer_columns();
// The index of a column; peer_columns().size() if there is none of that name.
std::size_t peer_column(std::string_view name);

struct Peer {
  std::string name;                   // as live::peer_name
  std::vector<std::uint64_t> values;  // in the order of peer_columns()
};

struct Domain {
  std::string file;
  std::int64_t pid = 0;
  std::uint64_t start_time = 0;    // of the process, clock ticks since the host was started
  std::uint64_t opened_ns = 0;     // CLOCK_REALTIME
  std::uint64_t updated_ns = 0;    // CLOCK_REALTIME; 0: no numbers yet
  std::uint64_t monotonic_ns = 0;  // the same moment by the clock of the domain
  live::Owner owner = live::Owner::Unknown;
  bool torn = false;  // the numbers may be of two moments
  std::string program;
  std::string interface;
  std::string nic;
  std::string address;
  std::uint64_t peers_known = 0;
  std::vector<live::Counter> counters;
  std::vector<Peer> peers;
};

Domain domain_of(const live::Snapshot& page);
// Both are of the same domain of the same process.
bool same_domain(const Domain& a, const Domain& b);
// "running", "gone" or "unknown".
const char* word_for(live::Owner owner);

struct Reading {
  std::vector<Domain> domains;        // by PID and number
  std::vector<std::string> problems;  // "FILE: reason" for each page that cannot be read
};
// All pages of this user, or of one process if `pid` is not 0.
Reading read_domains(pid_t pid = 0);

}  // namespace uet::view
