// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One function for each kind of packet; each condition stands beside the rule that it is from.
#include "verdict.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "wire/dissect.h"
#include "wire/parse.h"

namespace uet::probe {
namespace {

using wire::ResponseOpcode;
using wire::ReturnCode;

std::string hex(std::uint64_t value) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(value));
  return text.data();
}

std::string number(std::int64_t value) { return std::to_string(value); }

// Compares the header with our encoding of its fields: they differ if reserved bits are set.
template <class Header>
bool reserved_is_zero(const Header& header, std::span<const std::byte> bytes) {
  std::array<std::byte, wire::kMaxSesHeaderBytes> ours{};
  const std::size_t length = header.encode(ours.data());
  return length <= bytes.size() &&
         std::equal(ours.begin(), ours.begin() + static_cast<std::ptrdiff_t>(length),
                    bytes.begin());
}

template <class Header>
void check_reserved(const Header& header, std::span<const std::byte> bytes, const char* rule,
                    Report& report) {
  if (reserved_is_zero(header, bytes)) return;
  report.deviation(rule, "reserved bits of the header are not 0");
}

void check_way(const Heard& heard, Report& report) {
  if (heard.crc_wrong) report.deviation("WIRE 1.4", "the CRC trailer is missing or wrong");
  if (heard.at_source_port) {
    report.deviation("WIRE 1.1",
                     "the answer went to the source port of the request, which is an entropy value "
                     "and no return address: it belongs to port 4793");
  }
}

// Of an ACK or a NACK. Data and control packets of the peer have an entropy of their own.
void check_entropy(const Heard& heard, std::uint16_t entropy, std::uint16_t peer_port,
                   Report& report) {
  if (heard.entropy == entropy) return;
  const std::string text = "the answer has entropy " + number(heard.entropy) +
                           ", the packet that it answers " + number(entropy);
  if (peer_port != 0 && heard.entropy == peer_port) {
    report.note("PDS-103", text + ": a socket with one source port cannot do otherwise");
  } else {
    report.deviation("PDS-103", text);
  }
}

void check_response_form(const wire::SesResponseHeader& response, Report& report) {
  if (response.version != 0) {
    report.deviation("SES-9", "the response has SES version " + number(response.version));
  }
  const auto opcode = static_cast<unsigned>(response.opcode);
  if (opcode > 3 && opcode < 0x30) {
    report.deviation("WIRE 3.1", "the response opcode " + hex(opcode) + " is reserved");
  }
  const auto code = static_cast<unsigned>(response.return_code);
  if ((code > 0x24 && code < 0x30) || (code > 0x37 && code < 0x3E) || code == 0x3F) {
    report.deviation("WIRE 3.1", "the return code " + hex(code) + " is reserved");
  }
  if (static_cast<unsigned>(response.list) > 1) {
    report.note("WIRE 3.1",
                "list " + number(static_cast<unsigned>(response.list)) + " is the vendor's");
  }
}

// The SES response behind a PDS header, if there is one.
void take_response(Answer& answer, wire::NextHdr next_hdr, std::span<const std::byte> rest,
                   Report& report) {
  if (next_hdr == wire::NextHdr::None) return;
  wire::SesResponseHeader response;
  if (!wire::SesResponseHeader::decode(next_hdr, rest, response)) {
    report.deviation("WIRE 2.1", "next_hdr says " + std::string(wire::name_of(next_hdr)) +
                                     ", and no such header follows in whole");
    return;
  }
  answer.payload.assign(response.payload.begin(), response.payload.end());
  response.payload = {};
  check_reserved(response, rest, "WIRE 3.9", report);
  check_response_form(response, report);
  answer.response = response;
}

bool is_fatal_before_a_pdc(wire::NackCode code) {
  return code == wire::NackCode::NoPdcAvail || code == wire::NackCode::NoCccAvail ||
         code == wire::NackCode::NoBitmap || code == wire::NackCode::InvDpdcid ||
         code == wire::NackCode::PdcHdrMismatch;
}

bool is_reserved(wire::NackCode code) {
  const auto value = static_cast<unsigned>(code);
  return value == 0 || value == 0x0C || (value > 0x1A && value < 0xFD);
}

// The PDC ids of what came for our PDC.
void check_peer_id(PdcId theirs, const Asked& asked, Report& report) {
  if (theirs.value == 0) {
    report.deviation("PDS-27", "its PDCID is 0, which is reserved");
  } else if (asked.peer.value != 0 && theirs != asked.peer) {
    report.deviation("PDS-26", "its PDCID is " + hex(theirs.value) + ", and was " +
                                   hex(asked.peer.value) + " before");
  }
}

}  // namespace

std::optional<Answer> take_apart(const Heard& heard, const Asked& asked, std::uint16_t entropy,
                                 std::uint16_t peer_port, Report& report) {
  const std::span<const std::byte> bytes(heard.bytes);
  const auto packet = wire::parse(bytes);
  if (!packet) {
    report.deviation("WIRE 2.1", "a packet of " + number(static_cast<std::int64_t>(bytes.size())) +
                                     " bytes has a reserved type or is cut short");
    return {};
  }
  Answer answer;
  PdcId meant{};
  if (const auto* ack = std::get_if<wire::AckHeader>(&packet->header)) {
    answer.ack = *ack;
    meant = ack->dpdcid;
    check_reserved(*ack, bytes, "WIRE 2.3", report);
    take_response(answer, ack->next_hdr, packet->rest, report);
  } else if (const auto* nack = std::get_if<wire::NackHeader>(&packet->header)) {
    answer.nack = *nack;
    meant = nack->dpdcid;
    // Encoding gives next_hdr 0, so that another one shows, too.
    check_reserved(*nack, bytes, "PDS-212", report);
  } else if (const auto* control = std::get_if<wire::ControlHeader>(&packet->header)) {
    answer.control = *control;
    meant = control->dpdcid;
    check_reserved(*control, bytes, "WIRE 2.6", report);
  } else if (const auto* data = std::get_if<wire::RequestHeader>(&packet->header)) {
    if (data->syn) {
      report.deviation("PDS-200", "a packet opens a PDC towards us without any request for it");
      return {};
    }
    answer.data = *data;
    meant = data->dpdcid;
    check_reserved(*data, bytes, "WIRE 2.2", report);
    take_response(answer, data->next_hdr, packet->rest, report);
  } else {
    report.deviation("PDS-2", "a packet of type " + std::string(wire::name_of(packet->type)) +
                                  " answers one of a PDC");
    return {};
  }
  check_way(heard, report);
  if (answer.ack || answer.nack) check_entropy(heard, entropy, peer_port, report);
  if (meant != asked.own) {
    report.deviation(
        "PDS-25", "the packet names PDC " + hex(meant.value) + ", ours is " + hex(asked.own.value));
    return {};
  }
  return answer;
}

void judge_response(const wire::SesResponseHeader& response, const Asked& asked, Report& report) {
  const bool has_id = response.next_hdr == wire::NextHdr::Response;
  if (asked.readable && has_id && response.message_id != asked.message_id) {
    report.deviation("SES-106", "the response names message " + number(response.message_id.value) +
                                    ", the request is " + number(asked.message_id.value));
  }
  if (asked.readable && response.job_id != asked.job) {
    report.deviation("SES-106", "the response has JobID " + hex(response.job_id.value) +
                                    ", the request " + hex(asked.job.value));
  }
  const bool good =
      response.return_code == ReturnCode::Ok || response.return_code == ReturnCode::Null;
  if (response.opcode == ResponseOpcode::DefaultResponse && !good) {
    report.deviation("SES-104", "a DEFAULT_RESPONSE says " +
                                    std::string(wire::name_of(response.return_code)) +
                                    ": an error is a RESPONSE, whose delivery is guaranteed");
  }
  if (!good || !has_id || response.opcode == ResponseOpcode::NoResponse) return;
  if (response.modified_length == asked.length) return;
  // PDS makes a DEFAULT_RESPONSE on its own, where it knows no length.
  if (response.opcode == ResponseOpcode::DefaultResponse && response.modified_length == 0) return;
  // A deferral (SES-67); a shorter receive (SES-43).
  if (!asked.room_is_known && response.modified_length < asked.length) {
    return report.note("SES-43", "modified_length is " + number(response.modified_length) + " of " +
                                     number(asked.length) +
                                     ": the receive is shorter, or deferred");
  }
  report.deviation("WIRE 3.9", "modified_length is " + number(response.modified_length) +
                                   ", the message has " + number(asked.length) + " bytes");
}

void judge_ack(const Answer& answer, const Asked& asked, Report& report) {
  const wire::AckHeader& ack = *answer.ack;
  check_peer_id(ack.spdcid, asked, report);
  if (ack.p != asked.probe) {
    return report.deviation("PDS-106", ack.p ? "the ACK has the flag of a Probe's answer"
                                             : "the answer to a Probe lacks its flag");
  }
  if (asked.probe) {
    if (ack.probe_opaque != asked.opaque) {
      report.deviation("WIRE 2.6", "the answer to a Probe has the opaque value " +
                                       hex(ack.probe_opaque) + ", the Probe " + hex(asked.opaque));
    }
    if (ack.next_hdr != wire::NextHdr::None) {
      report.deviation("PDS-104", "the ACK of a control packet carries a SES header");
    }
    return;
  }
  if (ack.cack_psn > asked.newest) {
    report.deviation("PDS-83", "CACK_PSN is " + number(ack.cack_psn - asked.newest) +
                                   " beyond the last PSN that was sent");
  }
  if (ack.ack_psn() != asked.psn) {
    report.deviation("PDS-93", "ACK_PSN is " + number(ack.ack_psn() - asked.psn) +
                                   " away from the packet that asked for an ACK");
  }
  if (asked.retx && ack.retx != *asked.retx) {
    report.deviation("PDS-106", ack.retx ? "the ACK has RETX, the packet that it answers has not"
                                         : "the ACK does not repeat the RETX of its packet");
  }
  if (ack.type != wire::PdsType::Ack && ack.mpr == 0) {
    report.note("PDS-43", "the ACK states mpr 0, which peers take for different things");
  }
  if (ack.type != wire::PdsType::Ack && ack.sack_bitmap != 0) {
    int highest = 63;
    while ((ack.sack_bitmap >> highest & 1) == 0) --highest;
    if (ack.sack_base() + highest > asked.newest) {
      report.deviation("PDS-88", "the SACK bitmap reports a PSN that was never sent");
    }
  }
  if (asked.control) {
    if (ack.next_hdr != wire::NextHdr::None) {
      report.deviation("PDS-104", "the ACK of a control packet carries a SES header");
    }
    return;
  }
  if (!answer.response) {
    // Said already where a header is announced and broken.
    if (ack.next_hdr != wire::NextHdr::None) return;
    return report.deviation(asked.retx.value_or(true) ? "PDS-204" : "WIRE 3.12",
                            "the ACK has no SES response, so that an initiator that waits for one "
                            "never completes the message");
  }
  judge_response(*answer.response, asked, report);
  const bool guaranteed = answer.response->opcode == ResponseOpcode::Response ||
                          answer.response->opcode == ResponseOpcode::ResponseWData;
  const bool asks = ack.req == wire::AckRequestCode::Clear;
  const bool held = ack.cack_psn < asked.psn;
  if (answer.response->opcode == ResponseOpcode::DefaultResponse && asks) {
    report.deviation("PDS-105", "a DEFAULT_RESPONSE, which is not guaranteed, asks for a CLEAR");
  }
  if (guaranteed && held && !asks) {
    report.deviation("PDS-105",
                     "CACK_PSN is held below a guaranteed response, and no CLEAR is asked for");
  }
  if (answer.response->opcode == ResponseOpcode::DefaultResponse && held &&
      asked.psn == asked.newest) {
    report.deviation("PDS-85", "CACK_PSN stays " + number(asked.psn - ack.cack_psn) +
                                   " below a packet that needs no CLEAR");
  }
}

void judge_nack(const wire::NackHeader& nack, const Asked& asked,
                std::optional<wire::NackCode> expected, Report& report) {
  const std::string name(wire::name_of(nack.nack_code));
  if (is_reserved(nack.nack_code)) {
    report.deviation("WIRE 2.5",
                     "NACK code " + hex(static_cast<unsigned>(nack.nack_code)) + " is reserved");
  } else if (expected && nack.nack_code != *expected) {
    report.deviation("PDS-157",
                     "NACK " + name + " instead of " + std::string(wire::name_of(*expected)));
  }
  if (nack.nt) report.deviation("PDS-212", "a NACK to a packet of a PDC has the type bit of RUDI");
  if (nack.nack_psn != asked.psn) {
    report.deviation("PDS-212", "the NACK names PSN " + hex(nack.nack_psn.value) +
                                    ", the packet had " + hex(asked.psn.value));
  }
  if (asked.retx && nack.retx != *asked.retx) {
    report.deviation("PDS-212", "the NACK does not repeat the RETX of its packet");
  }
  if (is_fatal_before_a_pdc(nack.nack_code) && nack.spdcid.value != 0) {
    report.deviation("WIRE 2.5", "NACK " + name + " has SPDCID " + hex(nack.spdcid.value) +
                                     ", and there is no PDC that it could name");
  }
}

void judge_read_data(const Answer& answer, const Asked& asked, std::span<const std::byte> wanted,
                     Report& report) {
  const wire::SesResponseHeader& response = *answer.response;
  if (answer.data) {
    const wire::RequestHeader& data = *answer.data;
    check_peer_id(data.spdcid, asked, report);
    if (data.psn < asked.start) {
      report.deviation("PDS-32", "the first PSN of the return direction lies before Start_PSN");
    }
    if (data.clear_psn_offset > 0) {
      report.deviation("PDS-34", "clear_psn_offset is positive");
    }
  }
  if (response.opcode != ResponseOpcode::ResponseWData) {
    return report.deviation(
        "SES-82", "the answer to a READ is " + std::string(wire::name_of(response.opcode)));
  }
  if (response.next_hdr == wire::NextHdr::ResponseData) {
    if (response.read_request_message_id != asked.message_id) {
      report.deviation("SES-83", "read_request_message_id is " +
                                     number(response.read_request_message_id.value) +
                                     ", the READ has " + number(asked.message_id.value));
    }
    if (response.response_message_id != asked.message_id) {
      report.deviation("WIRE 3.10",
                       "response_message_id is " + number(response.response_message_id.value) +
                           ", not the id of the READ, " + number(asked.message_id.value));
    }
    if (response.modified_length != asked.length) {
      report.deviation("WIRE 3.10", "modified_length is " + number(response.modified_length) +
                                        " of a READ of " + number(asked.length));
    }
  } else if (response.original_request_psn != asked.psn) {
    report.deviation("SES-83", "original_request_psn is not the PSN of the READ");
  }
  if (response.job_id != asked.job) {
    report.deviation("SES-106", "the response has JobID " + hex(response.job_id.value) +
                                    ", the request " + hex(asked.job.value));
  }
  if (response.message_offset != 0 || answer.payload.size() != asked.length) {
    return report.deviation("SES-82", "a READ of one packet of " + number(asked.length) +
                                          " bytes brings " +
                                          number(static_cast<std::int64_t>(answer.payload.size())) +
                                          " at offset " + number(response.message_offset));
  }
  if (!wanted.empty() &&
      !std::equal(wanted.begin(), wanted.end(), answer.payload.begin(), answer.payload.end())) {
    report.deviation("SES-78", "the READ brings other bytes than the WRITE before it has sent");
  }
}

std::string in_words(const Answer& answer) {
  std::string text;
  if (answer.ack) text = wire::name_of(answer.ack->type);
  if (answer.nack) text = "NACK " + std::string(wire::name_of(answer.nack->nack_code));
  if (answer.control)
    text = "control packet " + std::string(wire::name_of(answer.control->ctl_type));
  if (answer.data) text = wire::name_of(answer.data->type);
  if (!answer.response) return text;
  text += " with " + std::string(wire::name_of(answer.response->opcode)) + " " +
          std::string(wire::name_of(answer.response->return_code));
  if (answer.response->list == wire::List::Overflow) text += ", overflow list";
  if (!answer.payload.empty()) text += ", " + std::to_string(answer.payload.size()) + " bytes";
  return text;
}

}  // namespace uet::probe
