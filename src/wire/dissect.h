// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One line of text for a packet or a number on the wire: for logs, traces, the demo and tests. Not
// for the data path (it allocates).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "uet/wire/pds.h"
#include "uet/wire/ses.h"

namespace uet::wire {

// `bytes`: from the PDS prologue (or TSS header) to the end of the packet. Any bytes give a line,
// malformed ones say so. `missing`: bytes that followed and are known to be cut off, if they are.
// Where payload is missing, by that or by the lengths in the SES header, the line says how much.
std::string dissect(std::span<const std::byte> bytes, std::size_t missing = 0);

// The specification's name of a number ("RUD_REQ", "RESPONSE_DATA", ...); "reserved" if it has
// none.
std::string_view name_of(PdsType type);
std::string_view name_of(NextHdr next_hdr);
std::string_view name_of(CpType type);
std::string_view name_of(NackCode code);
std::string_view name_of(SesOpcode opcode);
std::string_view name_of(ResponseOpcode opcode);
std::string_view name_of(ReturnCode code);
std::string_view name_of(AmoOp op);
std::string_view name_of(AmoDatatype datatype);

}  // namespace uet::wire
