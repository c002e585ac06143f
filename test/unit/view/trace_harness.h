// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A trace of a process that hangs: a write to 10.0.0.2 that nothing answers.
#pragma once

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

}  // namespace uet::tracing
