// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The switch over PDS types.
#include "wire/parse.h"

namespace uet::wire {

namespace {

template <class Header>
std::optional<ParsedPacket> parse_as(PdsType type, std::size_t header_bytes,
                                     std::span<const std::byte> bytes) {
  std::optional<ParsedPacket> packet(std::in_place);
  if (!Header::decode(bytes, packet->header.template emplace<Header>())) return std::nullopt;
  packet->type = type;
  packet->rest = bytes.subspan(header_bytes);
  return packet;
}

}  // namespace

std::optional<ParsedPacket> parse(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(PdsPrologue)) return std::nullopt;
  const auto type = static_cast<PdsType>(PdsPrologue::Type::get(load<PdsPrologue>(bytes)));
  const std::size_t header_bytes = pds_header_bytes(type);
  switch (type) {
    case PdsType::RudReq:
    case PdsType::RodReq:
    case PdsType::RudCcReq:
    case PdsType::RodCcReq:
      return parse_as<RequestHeader>(type, header_bytes, bytes);
    case PdsType::Ack:
    case PdsType::AckCc:
    case PdsType::AckCcx:
      return parse_as<AckHeader>(type, header_bytes, bytes);
    case PdsType::Nack:
    case PdsType::NackCcx:
      return parse_as<NackHeader>(type, header_bytes, bytes);
    case PdsType::Cp:
      return parse_as<ControlHeader>(type, header_bytes, bytes);
    case PdsType::RudiReq:
    case PdsType::RudiResp:
      return parse_as<RudiHeader>(type, header_bytes, bytes);
    case PdsType::UudReq:
      return parse_as<UudHeader>(type, header_bytes, bytes);
    case PdsType::Tss: {
      auto packet = parse_as<SecurityHeader>(type, sizeof(TssHeader), bytes);
      if (packet && packet->as<SecurityHeader>().sp) {
        packet->rest = bytes.subspan(sizeof(TssHeaderSsi));
      }
      return packet;
    }
    case PdsType::Reserved:
      break;
  }
  return std::nullopt;
}

}  // namespace uet::wire
