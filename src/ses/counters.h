// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What SES counts, per FEP. Names and meanings for people: src/fep/stats.cc, which needs a row for
// each member.
#pragma once

#include <cstdint>

namespace uet::ses {

struct Counters {
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t unexpected_messages = 0;
  std::uint64_t messages_parked = 0;  // of these, put off: their senders send them again (SES-66)
  std::uint64_t unexpected_refused = 0;  // no memory: refused with a NACK
  std::uint64_t no_match_answered = 0;   // of these, refused with NO_MATCH
  std::uint64_t messages_retried = 0;    // sent again because their target asked for it
  std::uint64_t truncated = 0;
  std::uint64_t malformed = 0;        // SES header or payload that does not parse
  std::uint64_t errors_answered = 0;  // responses with an error code sent
  std::uint64_t errors_received = 0;
  std::uint64_t datagrams_dropped = 0;  // no receive, or no memory (PDS-193)
  std::uint64_t stray_responses = 0;    // data or responses that belong to nothing
  std::uint64_t staged_bytes = 0;       // copied from device memory to chunks (staging.h)
  std::uint64_t staging_bytes = 0;      // of the chunks that are in use now
  std::uint64_t staging_waits = 0;      // times that a message waited for a chunk
};

}  // namespace uet::ses
