// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Captures beside traces: whose packet a captured one is, and which packets a capture lacks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "live/trace_dump.h"
#include "uet_trace/events.h"

namespace uet::tracing {

struct CapturedPacket {
  std::int64_t realtime_ns = 0;  // by the clock of the host that captured it
  std::string source;            // IP address
  std::string destination;       // with its port, as the address of a domain
  bool has_psn = false;          // a request or control packet of a PDC; if not, the next two are 0
  std::uint16_t pdc = 0;         // the sender's id
  std::uint32_t psn = 0;
  std::size_t bytes = 0;  // behind the header of PDS
  bool request = false;
  bool again = false;           // a request that says that it is a retransmission
  bool ack = false;             // then the next four count, and `has_psn` is not set
  std::uint16_t acked_pdc = 0;  // of the sender of the requests
  std::uint32_t acked_psn = 0;  // of the packet that it answers
  std::uint32_t cack = 0;       // this one and all before it have arrived
  bool marked = false;          // the answered packet had an ECN mark
  std::string words;            // of the dissector, with the comment of the file
};

struct Capture {
  std::string file;
  std::vector<CapturedPacket> packets;  // in the order of the file
  std::string problem;                  // the file is damaged; `packets` are those before that
};

// All UET packets of a file. False, and `why` says the reason: no part of it can be read.
bool read_capture(const std::string& file, Capture& capture, std::string& why);

// All events and packets, the oldest first, on the time line of the first trace: clocks are aligned
// by the PSNs of packets that a trace and the capture have in both directions. A captured packet
// that a trace has sent names it in its note; a sent one that a capture lacks is noted, too.
// The events refer to `captures`.
std::vector<Event> merge(std::span<const live::TraceDump> dumps, std::span<const Capture> captures);
// One line for a captured packet: time of day, file, addresses, words, note.
std::string line_of(const Event& event, const Capture& capture);

}  // namespace uet::tracing
