// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which of the three request headers an operation gets (SES-3 to SES-8), and how it is written into
// a packet. Functions of the operation alone: they know no table, no PDC and no peer.
#pragma once

#include <cstdint>

#include "ses/message.h"
#include "uet/base/packet.h"
#include "uet/wire/ses.h"

namespace uet::ses {

// Sets medium or small in the operation's header if the operation fits there; otherwise the
// standard header stays. For a peer that takes the short headers (SES-5).
void choose_header(TxMessage& message, std::uint32_t payload_mtu);

// Appends the header of the packet that carries, or asks for, `length` bytes from
// `message.offset` on. `eom`: the packet is the last one.
void append_piece_header(Packet& packet, TxMessage& message, std::uint32_t length, bool eom);
// Appends the header of a packet without payload that ends the message at `message.offset`:
// MSG_ERROR gives it up (SES-113), its own opcode ends its eager part (SES-69).
void append_end_header(Packet& packet, const TxMessage& message, wire::SesOpcode opcode);
// Appends the header of a packet that carries nothing and changes nothing at the target, which
// answers it (SES-165).
void append_no_op_header(Packet& packet, const TxMessage& message);
// Appends the header of the one packet of an atomic (SES-90).
void append_atomic_header(Packet& packet, TxMessage& message);

}  // namespace uet::ses
