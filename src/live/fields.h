// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The numbers of a peer in a live page, by name and meaning: every program that shows peers takes
// them from this table.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "live/page.h"

namespace uet::live {

struct PeerField {
  const char* name;     // "rtt_ns"; the unit ends the name
  const char* meaning;  // a few words, for people
  bool counts;          // only grows; else a gauge
  std::uint64_t PeerRecord::*value;
};

// All fields but the NACKs, in the order in which they are shown.
std::span<const PeerField> peer_fields();

// The name of the NackCode with this value, "trimmed" or "no_resource" for example; "other" for
// codes without a name.
std::string nack_name(std::size_t code);

// "192.0.2.1:4793" or "[2001:db8::1]:4793", and "/SDI" behind it if the SDI is not 0.
std::string peer_name(const PeerRecord& peer);

}  // namespace uet::live
