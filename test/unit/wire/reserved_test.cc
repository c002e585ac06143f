// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reserved bits (WIRE 0): of every header exactly those are ignored on receipt and sent as 0 that
// the tables of WIRE 2 and WIRE 3 call so.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "uet/wire/ses.h"
#include "unit/wire/vectors.h"
#include "wire/parse.h"

namespace uet::wire {
namespace {

using Bits = std::set<std::size_t>;  // 0 is the most significant bit of the first byte

// Adds the bits [at, at + count), `at` given as in the tables: byte and bit of it.
void add(Bits& bits, std::size_t byte, std::size_t bit, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) bits.insert(8 * byte + bit + i);
}

// The reserved bits of a PDS header. The type of the packet says which form it has.
Bits reserved_in_pds(const ParsedPacket& packet) {
  Bits bits;
  switch (packet.type) {
    case PdsType::RudReq:
    case PdsType::RodReq:
    case PdsType::RudCcReq:
    case PdsType::RodCcReq:
      add(bits, 1, 1, 2);  // 0x60
      add(bits, 1, 6, 2);  // 0x03
      break;
    case PdsType::Ack:
    case PdsType::AckCc:
    case PdsType::AckCcx:
      add(bits, 1, 7, 1);  // 0x01
      if (packet.type == PdsType::AckCc && packet.as<AckHeader>().cc_type == CcType::Credit) {
        add(bits, 27, 0, 24);
      }
      break;
    case PdsType::Nack:
    case PdsType::NackCcx:
      add(bits, 0, 5, 4);  // next_hdr, always 0
      add(bits, 1, 1, 1);  // 0x40
      add(bits, 1, 5, 3);  // 0x07
      break;
    case PdsType::Cp:
      add(bits, 1, 1, 1);  // 0x40
      add(bits, 1, 6, 2);  // 0x03
      break;
    case PdsType::RudiReq:
      add(bits, 1, 2, 1);  // 0x20 is M in a response only
      [[fallthrough]];
    case PdsType::RudiResp:
      add(bits, 1, 1, 1);  // 0x40
      add(bits, 1, 4, 4);  // 0x0F
      add(bits, 2, 0, 16);
      break;
    case PdsType::UudReq:
      add(bits, 1, 1, 7);
      add(bits, 2, 0, 16);
      break;
    case PdsType::Tss:
      add(bits, 0, 6, 1);
      break;
    case PdsType::Reserved:
      break;
  }
  return bits;
}

// Of a SES header and its extension.
Bits reserved_in_ses(NextHdr next_hdr, std::span<const std::byte> header) {
  Bits bits;
  if (next_hdr == NextHdr::ResponseData) {
    add(bits, 4, 0, 8);
    add(bits, 10, 0, 2);
  } else if (next_hdr == NextHdr::ResponseDataSmall) {
    add(bits, 2, 0, 2);
    add(bits, 4, 0, 8);
  }
  if (!is_request(next_hdr)) return bits;
  SesRequest request;
  EXPECT_TRUE(SesRequest::decode(next_hdr, header, request));
  add(bits, 0, 0, 2);
  add(bits, 8, 0, 4);
  add(bits, 10, 0, 4);
  if (next_hdr == NextHdr::RequestSmall) add(bits, 1, 5, 1);  // HD
  if (next_hdr != NextHdr::RequestStd) add(bits, 2, 0, 2);
  if (next_hdr == NextHdr::RequestStd && !request.som) add(bits, 32, 0, 18);
  if (has_atomic_extension(request.opcode)) add(bits, ses_header_bytes(next_hdr) + 3, 0, 8);
  return bits;
}

template <class Header>
Bytes encoded(const Header& header) {
  Bytes bytes(kMaxSesHeaderBytes);
  bytes.resize(header.encode(bytes.data()));
  return bytes;
}

// Decodes the bytes and encodes the result; returns nothing if decode refuses them.
Bytes read_and_write_pds(const Bytes& bytes) {
  const auto packet = parse(bytes);
  if (!packet) return {};
  return std::visit([](const auto& header) { return encoded(header); }, packet->header);
}

template <class Header>
Bytes read_and_write(NextHdr next_hdr, const Bytes& bytes) {
  Header header;
  return Header::decode(next_hdr, bytes, header) ? encoded(header) : Bytes{};
}

// Each of the first `count` bits, inverted: what is written is as before if and only if the bit is
// in `reserved`. `tail` follows the header.
void expect_ignored(const Bytes& header, const Bytes& tail, std::size_t from_bit,
                    const Bits& reserved, const std::function<Bytes(const Bytes&)>& write) {
  const auto with_tail = [&](Bytes bytes) {
    bytes.insert(bytes.end(), tail.begin(), tail.end());
    return bytes;
  };
  ASSERT_EQ(to_hex(write(with_tail(header))), to_hex(header));
  for (std::size_t bit = from_bit; bit < 8 * header.size(); ++bit) {
    Bytes changed = header;
    changed[bit / 8] ^= static_cast<std::byte>(0x80 >> bit % 8);
    EXPECT_EQ(write(with_tail(changed)) == header, reserved.contains(bit))
        << "byte " << bit / 8 << " bit " << bit % 8;
  }
}

// WIRE 2.1, WIRE 2.2, WIRE 2.3, WIRE 2.4, WIRE 2.5, WIRE 2.6, WIRE 2.7, WIRE 2.8, WIRE 2.9,
// WIRE 3.2, WIRE 3.3, WIRE 3.4, WIRE 3.5, WIRE 3.9, WIRE 3.10, WIRE 3.11.
TEST(Reserved, BitsOfEveryHeaderAreIgnoredAndNoOthers) {
  constexpr std::size_t kTypeBits = 5;
  for (const auto& vector : wire_vectors()) {
    SCOPED_TRACE(vector["name"].get<std::string>());
    const Bytes all = from_hex(vector["hex"].get<std::string>());
    const auto packet = parse(all);
    ASSERT_TRUE(packet.has_value());
    const std::size_t pds_bytes = all.size() - packet->rest.size();
    const Bytes pds(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(pds_bytes));
    expect_ignored(pds, {}, kTypeBits, reserved_in_pds(*packet), read_and_write_pds);
    if (packet->type == PdsType::Tss) continue;
    const auto next_hdr = field<NextHdr>(vector["fields"]["pds"], "next_hdr");
    const Bytes rest(packet->rest.begin(), packet->rest.end());
    const bool request = is_request(next_hdr);
    if (!request && !is_response(next_hdr)) continue;
    const Bytes ses = request ? read_and_write<SesRequest>(next_hdr, rest)
                              : read_and_write<SesResponseHeader>(next_hdr, rest);
    const Bytes payload(rest.begin() + static_cast<std::ptrdiff_t>(ses.size()), rest.end());
    expect_ignored(ses, payload, 0, reserved_in_ses(next_hdr, rest), [&](const Bytes& bytes) {
      return request ? read_and_write<SesRequest>(next_hdr, bytes)
                     : read_and_write<SesResponseHeader>(next_hdr, bytes);
    });
  }
}

}  // namespace
}  // namespace uet::wire
