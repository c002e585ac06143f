// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Is an answer what revision 1.0.3 wants? Bytes in, findings out: no socket, no clock, no memory of
// earlier answers but what Asked says.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "line.h"
#include "report.h"
#include "uet/wire/pds.h"
#include "uet/wire/ses.h"

namespace uet::probe {

// The fields of our packet with which its answer must agree.
struct Asked {
  Psn psn{};
  Psn start{};                       // Start_PSN of both directions
  Psn newest{};                      // the highest PSN that was sent
  PdcId own{};                       // our PDC
  PdcId peer{};                      // the peer's, 0: not known yet
  bool control = false;              // a control packet: its ACK has no SES response
  std::optional<bool> retx = false;  // nothing: it was sent with and without
  bool probe = false;                // the answer carries `opaque` and no PSN
  std::uint16_t opaque = 0;
  // Of a request: what its response repeats, unless the peer cannot read it (another SES version).
  bool readable = true;
  MsgId message_id{};
  JobId job{};
  std::uint32_t length = 0;    // request_length
  bool room_is_known = false;  // the target's memory holds all of it (WRITE, READ)
};

// A decoded packet from the peer. At most one of ack, nack, control and data is there.
struct Answer {
  std::optional<wire::AckHeader> ack;
  std::optional<wire::NackHeader> nack;
  std::optional<wire::ControlHeader> control;
  std::optional<wire::RequestHeader> data;          // read data in the PDC's return direction
  std::optional<wire::SesResponseHeader> response;  // of ack or data
  std::vector<std::byte> payload;                   // of that
};

// Looks at one packet on its own: does it parse, is it for our PDC, is what is reserved 0, did it
// come where it should? Nothing: it is no answer to us.
std::optional<Answer> take_apart(const Heard& heard, const Asked& asked, std::uint16_t entropy,
                                 std::uint16_t peer_port, Report& report);

// The ACK of `asked`, its response included.
void judge_ack(const Answer& answer, const Asked& asked, Report& report);
// The response to our request must repeat its fields and give lengths that fit.
void judge_response(const wire::SesResponseHeader& response, const Asked& asked, Report& report);
// A refusal by PDS. `expected`: the code that fits, if only one does.
void judge_nack(const wire::NackHeader& nack, const Asked& asked,
                std::optional<wire::NackCode> expected, Report& report);
// A piece of read data: `wanted` is what the memory holds from its first byte on; empty: not known.
void judge_read_data(const Answer& answer, const Asked& asked, std::span<const std::byte> wanted,
                     Report& report);

// "ACK_CC with RESPONSE OK", "NACK NO_RESOURCE", ...
std::string in_words(const Answer& answer);

}  // namespace uet::probe
