// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The trace of a domain and what waits in it, taken at one moment: from a page, or as the text that
// the provider writes and uet_trace reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/trace.h"
#include "live/page.h"
#include "live/place.h"

namespace uet::live {

struct TraceDump {
  std::int64_t pid = 0;
  std::string program;
  std::string address;           // of the domain, "10.0.0.1:4793"
  std::string why;               // the dump was made: "SIGUSR2"; empty: it was read from a page
  Owner owner = Owner::Unknown;  // whether the process still runs; Unknown in a text
  // The same moment by CLOCK_REALTIME and by the clock of the domain.
  std::int64_t realtime_ns = 0;
  std::int64_t monotonic_ns = 0;
  // The moment of the lists below, by the clock of the domain.
  std::int64_t updated_ns = 0;
  std::int64_t last_pass_ns = 0;       // as in trace::Ring
  std::int64_t sleeping_since_ns = 0;  // as in trace::Ring
  std::vector<PdcRecord> pdcs;
  std::vector<OperationRecord> operations;
  std::uint64_t operations_known = 0;
  std::vector<trace::Record> records;  // oldest first
  std::uint64_t written = 0;           // all records that were ever written
};

// The dump of the page `file` now. Empty, and `why` says the reason: as read_page and read_trace.
std::optional<TraceDump> dump_of_page(const std::string& file, std::string& why);
// The records of a ring that the caller owns, oldest first.
std::vector<trace::Record> records_of(const trace::Ring& ring);

// Lines of text, an event each. The first one begins with kDumpBegins, the last one is kDumpEnds.
inline constexpr std::string_view kDumpBegins = "uet trace: ";
inline constexpr std::string_view kDumpEnds = "uet trace ends";
std::string to_text(const TraceDump& dump);
// All dumps of a text, which may hold other lines between them. Lines inside a dump that are not
// understood are ignored, and so is a dump without an end.
std::vector<TraceDump> dumps_of_text(std::string_view text);

// Names as in the text: "nack_received", "quiesce", "window", "time_out", "write", "ok", "fence";
// "unknown" for numbers without a name.
const char* name_of(trace::Kind kind);
const char* name_of(trace::Loss loss);
const char* name_of(trace::Wait wait);
const char* pdc_state_name(std::uint64_t state);   // pds::PdcState
const char* pdc_error_name(std::uint64_t error);   // pds::PdsError
const char* operation_name(std::uint64_t kind);    // ses::Kind
const char* status_name(std::uint64_t status);     // ses::Status
const char* operation_wait_name(std::uint64_t w);  // ses::OperationWait
// "10.0.0.2:4793", "[2001:db8::1]:4793".
std::string address_text(const std::array<std::uint8_t, 16>& ip, bool is_ipv6, std::uint16_t port);

}  // namespace uet::live
