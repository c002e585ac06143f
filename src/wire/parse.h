// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From the bytes of a packet to its PDS header: the one place that looks at the type and checks the
// length. Must not know what the header means, nor look at SES.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <variant>

#include "uet/wire/pds.h"

namespace uet::wire {

// A packet whose PDS header (or TSS header) is whole.
struct ParsedPacket {
  PdsType type = PdsType::Reserved;
  std::variant<RequestHeader, AckHeader, NackHeader, ControlHeader, RudiHeader, UudHeader,
               SecurityHeader>
      header;
  std::span<const std::byte> rest;  // what follows the header: a view of the parsed bytes

  // The header as a T, which must be the one of `type`.
  template <class T>
  const T& as() const {
    return *std::get_if<T>(&header);
  }
};

// `bytes`: from the PDS prologue to the end of the packet. nullopt when the type is reserved or the
// header is cut short; never reads outside `bytes`. Reserved values of next_hdr, ctl_type,
// nack_code and the like are passed on for the protocol to judge.
std::optional<ParsedPacket> parse(std::span<const std::byte> bytes);

}  // namespace uet::wire
