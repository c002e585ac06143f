// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The events of several traces on one time line, and an event in words.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "live/trace_dump.h"

namespace uet::tracing {

// PDC id at this end -> the peer's address, as far as the trace or the lists tell.
using Peers = std::map<std::uint16_t, std::string>;
Peers peers_of(const live::TraceDump& dump);

struct CapturedPacket;  // captures.h

struct Event {
  std::int64_t realtime_ns = 0;
  std::size_t dump = 0;  // index of the trace that it is from; of the capture, if `packet` is set
  trace::Record record;
  const CapturedPacket* packet = nullptr;  // a captured packet; `record` is empty
  std::string note;                        // how captures and traces belong together: ", ..."
};

// All events, the oldest first. Clocks of hosts differ: where packets of two traces show by their
// PSNs how much, the later trace is moved to the time line of the first.
std::vector<Event> merge(std::span<const live::TraceDump> dumps);
// Nanoseconds to add to the times of `b` so that packets between the two take as long in both
// directions; 0 if there are not packets in both directions, or the clocks agree.
std::int64_t clock_difference(const live::TraceDump& a, const live::TraceDump& b);

// "sent psn 0x4021 bytes 1088 message 17, again, transmission 3"
std::string describe(const trace::Record& record);
// One line for an event: time of day, process, domain, PDC, peer, description.
std::string line_of(const Event& event, const live::TraceDump& dump, const Peers& peers);
// "2026-11-27 12:03:04.123456789", local time.
std::string time_text(std::int64_t realtime_ns);
// "0x4021"
std::string hex(std::uint64_t value);

}  // namespace uet::tracing
