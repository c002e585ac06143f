// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Traces: of a process that hangs in a write to 10.0.0.2 that nothing answers, and of two ends.
#pragma once

#include <cstdint>
#include <vector>

#include "live/trace_dump.h"
#include "ses/waiting_operation.h"
#include "uet/wire/pds.h"

namespace uet::tracing {

inline live::TraceDump hanging_dump() {
  live::TraceDump dump;
  dump.pid = 4711;
  dump.program = "solver";
  dump.address = "10.0.0.1:4793";
  dump.owner = live::Owner::Running;
  dump.realtime_ns = 1'000'000'000'000;
  dump.monotonic_ns = dump.updated_ns = 10'000'000'000;
  dump.last_pass_ns = 9'999'000'000;
  live::PdcRecord pdc;
  pdc.ip = {10, 0, 0, 2};
  pdc.port = 4793;
  pdc.pdc = 0x4A21;
  pdc.state = 2;
  pdc.oldest_psn = 0x4021;
  pdc.oldest_transmissions = 6;
  pdc.oldest_message = 17;
  pdc.oldest_first_sent_ns = 7'900'000'000;
  pdc.oldest_last_sent_ns = 9'500'000'000;
  pdc.peer_heard_ns = 7'800'000'000;
  pdc.packets_outstanding = 1;
  dump.pdcs.push_back(pdc);
  live::OperationRecord operation;
  operation.ip = pdc.ip;
  operation.port = pdc.port;
  operation.kind = 2;
  operation.message_id = 17;
  operation.pdc = pdc.pdc;
  operation.posted_ns = 7'900'000'000;
  operation.bytes = 8;
  operation.packets_made = 1;
  dump.operations.push_back(operation);
  dump.operations_known = 1;
  return dump;
}

inline constexpr std::uint64_t kOnePacket = std::uint64_t{1} << 32;

inline trace::Record event(std::int64_t time, trace::Kind kind, std::uint16_t pdc,
                           std::uint32_t psn) {
  return {.time_ns = time, .kind = kind, .pdc = pdc, .psn = psn, .a = kOnePacket + 100, .b = 0};
}

// Two ends of a PDC; the clock of the second is `ahead`, a packet takes 1,000 ns either way.
inline std::vector<live::TraceDump> two_ends(std::int64_t ahead) {
  live::TraceDump a = hanging_dump();
  live::TraceDump b;
  b.pid = 815;
  b.program = "target";
  b.address = "10.0.0.2:4793";
  b.realtime_ns = a.realtime_ns + ahead;
  b.monotonic_ns = a.monotonic_ns;
  live::PdcRecord back;
  back.ip = {10, 0, 0, 1};
  back.port = 4793;
  back.pdc = 7;
  b.pdcs.push_back(back);
  a.records = {event(5'000, trace::Kind::Sent, 0x4A21, 1),
               event(8'000, trace::Kind::Received, 0x4A21, 50)};
  b.records = {event(6'000, trace::Kind::Received, 7, 1), event(7'000, trace::Kind::Sent, 7, 50)};
  return {a, b};
}

}  // namespace uet::tracing
