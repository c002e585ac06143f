// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A packet on its way from the demultiplexer to the PDC that takes it.
#pragma once

#include <cstdint>
#include <optional>

#include "pds/packet_meta.h"
#include "uet/base/packet.h"
#include "uet/pds/api.h"

namespace uet::pds {

// PDS-149: the NACK code for a packet that a switch has trimmed.
inline NackCode trim_code(const RxPacket& packet) {
  return packet.trimmed_last_hop ? NackCode::TrimmedLastHop : NackCode::Trimmed;
}

// A request or PSN-consuming control packet, taken apart.
struct Incoming {
  Incoming() {}  // member by member, as SesRequest

  PacketMeta meta;
  // For SES: its `bytes` are the SES header and payload. The PDC that delivers it fills in the
  // rest.
  RequestView view;
  std::optional<Psn> clear_psn;  // control packets carry none
  bool syn = false;
  bool reserved_pool = false;  // of a SYN: its PDC may take a slot of the reserved pool
  std::optional<wire::CpType> ctl_type;
  std::uint32_t nominal_bytes = 0;  // CMS-6
  std::optional<NackCode> trimmed;  // how its trimming is reported; empty if it is whole
  bool early = false;               // waited in the reorder buffer, its bytes are counted
};

}  // namespace uet::pds
