// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Any bytes as a packet: the parser, the SES decoders and the dissector stay inside them, and what
// was decoded encodes to something that decodes to the same.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <variant>

#include "uet/wire/ses.h"
#include "wire/dissect.h"
#include "wire/frame.h"
#include "wire/parse.h"

namespace {

using uet::wire::NextHdr;
using Bytes = std::span<const std::byte>;

void require(bool condition) {
  if (!condition) std::abort();
}

void require_inside(Bytes part, Bytes whole) {
  require(part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

template <class Header>
void check_pds_round_trip(const Header& header) {
  std::array<std::byte, uet::wire::kMaxPdsHeaderBytes> again{};
  const std::size_t length = header.encode(again.data());
  Header decoded;
  require(Header::decode(Bytes(again).first(length), decoded));
  require(decoded == header);
}

// The SES header in every form, whatever next_hdr says.
template <class Header>
void check_ses(Bytes bytes) {
  for (std::uint8_t form = 0; form < 16; ++form) {
    Header header;
    if (!Header::decode(static_cast<NextHdr>(form), bytes, header)) continue;
    require_inside(header.payload, bytes);
    std::array<std::byte, uet::wire::kMaxSesHeaderBytes> again{};
    require(header.encode(again.data()) == header.header_bytes);
  }
}

// The same bytes as a frame, with whatever comes out of it inside them.
void check_frame(Bytes bytes) {
  using uet::wire::Encapsulation;
  for (const auto encapsulation : {Encapsulation::Udp, Encapsulation::NativeIp}) {
    for (const bool crc : {false, true}) {
      uet::wire::ParsedFrame frame;
      const uet::wire::FrameFormat format{.encapsulation = encapsulation, .crc = crc};
      const auto verdict =
          uet::wire::parse_frame(bytes, format, {.trimmed = 12, .trimmed_last_hop = 16}, frame);
      if (verdict == uet::wire::FrameVerdict::Ok) require_inside(frame.packet, bytes);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes = std::as_bytes(std::span(data, size));
  require(!uet::wire::dissect(bytes).empty());
  check_frame(bytes);
  const auto packet = uet::wire::parse(bytes);
  if (!packet) return 0;
  require_inside(packet->rest, bytes);
  std::visit([](const auto& header) { check_pds_round_trip(header); }, packet->header);
  check_ses<uet::wire::SesRequest>(packet->rest);
  check_ses<uet::wire::SesResponseHeader>(packet->rest);
  return 0;
}
