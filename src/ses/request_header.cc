// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/request_header.h"

#include <algorithm>

#include "ses/return_code.h"

namespace uet::ses {
namespace {

static_assert(wire::kMaxSesHeaderBytes <= Packet::kHeadSize - Packet::kHeadroom);

void append(Packet& packet, const wire::SesRequest& header) {
  packet.append_with(wire::kMaxSesHeaderBytes, [&](std::byte* at) { return header.encode(at); });
}

void append_header(Packet& packet, const wire::SesRequest& header) {
  if (header.opcode == wire::SesOpcode::DatagramSend) {
    wire::SesRequest datagram = header;
    datagram.message_id = {};  // SES-27; the id is for our own use
    return append(packet, datagram);
  }
  if (header.next_hdr == wire::NextHdr::RequestSmall) {  // carries the key there (WIRE 3.4)
    wire::SesRequest small = header;
    small.resource_index = {static_cast<std::uint16_t>(header.match_bits & kMaxResourceIndex)};
    return append(packet, small);
  }
  append(packet, header);
}

// SES-162: header_data of a write without immediate data, which only the standard header carries.
bool states_part(const TxMessage& message) {
  return !message.has_data && message.header.header_data != 0;
}

}  // namespace

// Messages of one packet that need neither message id nor both of header_data and buffer_offset
// (SES-3). An operation that returns data keeps its id, which the data name in the return direction
// (SES-6).
void choose_header(TxMessage& message, std::uint32_t payload_mtu) {
  wire::SesRequest& header = message.header;
  if (message.length > std::min(payload_mtu, wire::kMaxShortLength)) return;  // SES-4
  const bool send =
      header.opcode == wire::SesOpcode::Send || header.opcode == wire::SesOpcode::TaggedSend;
  if (!send && (header.opcode != wire::SesOpcode::Write || states_part(message))) return;
  if (!send && is_optimized(Rkey{header.match_bits}) && !message.has_data) {
    header.next_hdr = wire::NextHdr::RequestSmall;
  } else if (send || header.buffer_offset == 0 || !message.has_data) {
    header.next_hdr = wire::NextHdr::RequestMedium;
  }
}

void append_piece_header(Packet& packet, TxMessage& message, std::uint32_t length, bool eom) {
  wire::SesRequest& header = message.header;
  const auto offset = static_cast<std::uint32_t>(message.offset);
  const bool copied = !wire::has_rendezvous_extension(header.opcode);
  if (copied && offset > 0) {
    return packet.append_with(wire::kMaxSesHeaderBytes, [&](std::byte* at) {
      return message.later_header.encode(at, eom, length, offset);
    });
  }
  header.som = offset == 0;
  header.eom = eom;
  header.hd = header.som && message.has_data;
  header.payload_length = length;
  header.message_offset = offset;
  append_header(packet, header);
  if (copied && !eom) message.later_header.set(header);
}

void append_end_header(Packet& packet, const TxMessage& message, wire::SesOpcode opcode) {
  wire::SesRequest header = message.header;
  header.opcode = opcode;
  header.som = false;
  header.eom = true;
  header.hd = false;
  header.payload_length = 0;
  header.message_offset = static_cast<std::uint32_t>(message.offset);
  append_header(packet, header);
}

void append_no_op_header(Packet& packet, const TxMessage& message) {
  wire::SesRequest header;
  header.opcode = wire::SesOpcode::NoOp;
  header.som = true;
  header.eom = true;
  header.rel = message.header.rel;
  header.message_id = message.header.message_id;
  header.ri_generation = message.header.ri_generation;
  header.job_id = message.header.job_id;
  header.pid_on_fep = message.header.pid_on_fep;
  header.resource_index = message.header.resource_index;
  header.initiator = message.header.initiator;
  append(packet, header);
}

void append_atomic_header(Packet& packet, TxMessage& message) {
  message.header.som = true;
  message.header.eom = true;
  message.header.encode(packet.append(message.header.encoded_bytes()));
}

}  // namespace uet::ses
