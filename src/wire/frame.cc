// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Frames outwards and inwards. Both directions read from and write to the same header structs.
#include "wire/frame.h"

#include <algorithm>
#include <cstring>

#include "uet/wire/be.h"

namespace uet::wire {

namespace {

constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
constexpr std::uint16_t kEtherTypeIpv6 = 0x86DD;
constexpr std::uint16_t kEtherTypeVlan = 0x8100;
constexpr int kMostVlanTags = 2;  // WIRE 1.1
constexpr std::uint8_t kProtocolUdp = 17;
constexpr std::uint16_t kDontFragment = 0x4000;
constexpr std::uint16_t kFragmentBits = 0x3FFF;  // "more fragments" and the offset

struct Ethernet {
  MacAddress destination;
  MacAddress source;
  be16 type;
};
struct VlanTag {
  be16 control;
  be16 type;
};
struct Ipv4 {
  std::uint8_t version_and_length;
  std::uint8_t tos;
  be16 total_length;
  be16 identification;
  be16 fragment;
  std::uint8_t time_to_live;
  std::uint8_t protocol;
  be16 checksum;
  std::array<std::uint8_t, 4> source;
  std::array<std::uint8_t, 4> destination;
};
struct Ipv6 {
  be32 version_class_flow;
  be16 payload_length;
  std::uint8_t next_header;
  std::uint8_t hop_limit;
  std::array<std::uint8_t, 16> source;
  std::array<std::uint8_t, 16> destination;
};
struct Udp {
  be16 source_port;
  be16 destination_port;
  be16 length;
  be16 checksum;
};
struct Entropy {
  be16 entropy;
  be16 reserved;
};
static_assert(sizeof(Ethernet) == 14 && sizeof(VlanTag) == 4 && sizeof(Ipv4) == 20);
static_assert(sizeof(Ipv6) == 40 && sizeof(Udp) == 8 && sizeof(Entropy) == 4);

// The Internet checksum (RFC 1071), over any number of pieces of any length. The sum of words in
// the host's order is the sum in network order with its bytes swapped, so that words need no turn.
class Checksum {
 public:
  void add(std::span<const std::byte> bytes) {
    if (odd_ && !bytes.empty()) {
      add_byte(bytes[0], true);
      bytes = bytes.subspan(1);
      odd_ = false;
    }
    for (; bytes.size() >= sizeof(std::uint64_t); bytes = bytes.subspan(sizeof(std::uint64_t))) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data(), sizeof word);
      sum_ += (word & 0xFFFFFFFF) + (word >> 32);
    }
    for (; bytes.size() >= sizeof(std::uint16_t); bytes = bytes.subspan(sizeof(std::uint16_t))) {
      std::uint16_t word = 0;
      std::memcpy(&word, bytes.data(), sizeof word);
      sum_ += word;
    }
    if (!bytes.empty()) {
      add_byte(bytes[0], false);
      odd_ = true;
    }
  }
  template <class Header>
  void add_header(const Header& header) {
    add(std::as_bytes(std::span(&header, 1)));
  }
  // The sum itself; a checksum field holds its complement.
  std::uint16_t sum() const {
    std::uint64_t folded = sum_;
    while (folded > 0xFFFF) folded = (folded & 0xFFFF) + (folded >> 16);
    const auto host = static_cast<std::uint16_t>(folded);
    return kLittle ? byteswap(host) : host;
  }
  std::uint16_t value() const { return static_cast<std::uint16_t>(~sum()); }

 private:
  static constexpr bool kLittle = std::endian::native == std::endian::little;
  void add_byte(std::byte byte, bool second) {
    sum_ += std::to_integer<std::uint64_t>(byte) << (second == kLittle ? 8 : 0);
  }
  std::uint64_t sum_ = 0;
  bool odd_ = false;
};

std::span<const std::byte> bytes_of(const Slice& slice) { return {slice.data, slice.length}; }

std::span<const std::byte> address_bytes(const FabricAddress& ip) {
  return std::as_bytes(std::span(ip.bytes)).first(ip.is_ipv6 ? 16 : 4);
}

// Addresses, length and protocol, which UDP's checksum covers beside its own header and payload.
Checksum pseudo_header(const FabricAddress& source, const FabricAddress& destination,
                       std::size_t udp_length) {
  Checksum sum;
  sum.add(address_bytes(source));
  sum.add(address_bytes(destination));
  sum.add_header(be32(static_cast<std::uint32_t>(udp_length)));
  sum.add_header(be32(kProtocolUdp));
  return sum;
}

std::uint16_t length_field(std::size_t length) {
  return static_cast<std::uint16_t>(std::min<std::size_t>(length, UINT16_MAX));
}

std::uint8_t traffic_class(const FrameFields& fields) {
  return static_cast<std::uint8_t>(fields.dscp << 2 | static_cast<std::uint8_t>(fields.ecn));
}

std::byte* write_ethernet(std::byte* out, const FrameFields& fields) {
  const std::uint16_t type = fields.source.is_ipv6 ? kEtherTypeIpv6 : kEtherTypeIpv4;
  const std::uint16_t outer = fields.vlan ? kEtherTypeVlan : type;
  out += store(out, Ethernet{fields.destination_mac, fields.source_mac, outer});
  if (fields.vlan) out += store(out, VlanTag{*fields.vlan, type});
  return out;
}

std::byte* write_ip(std::byte* out, const FrameFields& fields, std::uint8_t protocol,
                    std::size_t length) {
  if (fields.source.is_ipv6) {
    Ipv6 ip{};
    ip.version_class_flow = 6U << 28 | static_cast<std::uint32_t>(traffic_class(fields)) << 20;
    ip.payload_length = length_field(length);
    ip.next_header = protocol;
    ip.hop_limit = fields.hop_limit;
    ip.source = fields.source.bytes;
    ip.destination = fields.destination.bytes;
    return out + store(out, ip);
  }
  Ipv4 ip{};
  ip.version_and_length = 0x45;
  ip.tos = traffic_class(fields);
  ip.total_length = length_field(sizeof ip + length);
  ip.fragment = kDontFragment;
  ip.time_to_live = fields.hop_limit;
  ip.protocol = protocol;
  std::copy_n(fields.source.bytes.begin(), ip.source.size(), ip.source.begin());
  std::copy_n(fields.destination.bytes.begin(), ip.destination.size(), ip.destination.begin());
  Checksum sum;
  sum.add_header(ip);
  ip.checksum = sum.value();
  return out + store(out, ip);
}

std::byte* write_udp(std::byte* out, const FrameFormat& format, const FrameFields& fields,
                     std::size_t length, std::span<const Slice> pieces) {
  Udp udp{fields.entropy, fields.port, length_field(length), {}};
  if (format.udp_checksum && !format.crc) {
    Checksum sum = pseudo_header(fields.source, fields.destination, length_field(length));
    sum.add_header(udp);
    for (const Slice& piece : pieces) sum.add(bytes_of(piece));
    // 0 would say that there is none.
    udp.checksum = sum.value() == 0 ? std::uint16_t{0xFFFF} : sum.value();
  }
  return out + store(out, udp);
}

}  // namespace

// ---- outwards -----------------------------------------------------------------------------------

std::size_t write_frame_headers(std::byte* out, const FrameFormat& format,
                                const FrameFields& fields, std::span<const Slice> pieces) {
  std::size_t length = format.crc ? kCrcTrailerBytes : 0;
  for (const Slice& piece : pieces) length += piece.length;
  std::byte* end = write_ethernet(out, fields);
  if (format.encapsulation == Encapsulation::Udp) {
    length += sizeof(Udp);
    end = write_ip(end, fields, kProtocolUdp, length);
    end = write_udp(end, format, fields, length, pieces);
  } else {
    end = write_ip(end, fields, format.native_protocol, length + sizeof(Entropy));
    end += store(end, Entropy{fields.entropy, {}});
  }
  return static_cast<std::size_t>(end - out);
}

std::array<std::byte, kCrcTrailerBytes> frame_trailer(std::span<const std::byte> headers,
                                                      std::span<const Slice> pieces) {
  const bool vlan = load<Ethernet>(headers).type == kEtherTypeVlan;
  const std::size_t ip_at = sizeof(Ethernet) + (vlan ? sizeof(VlanTag) : 0);
  const bool is_ipv6 = std::to_integer<unsigned>(headers[ip_at]) >> 4 == 6;
  const std::size_t covered_at =
      ip_at + (is_ipv6 ? offsetof(Ipv6, source) : offsetof(Ipv4, source));
  std::uint32_t crc = crc32c(headers.subspan(covered_at));
  for (const Slice& piece : pieces) crc = crc32c(bytes_of(piece), crc);
  return crc_trailer(crc);
}

std::uint32_t udp_packet_crc(const FepAddress& source, const FepAddress& destination,
                             std::span<const Slice> pieces) {
  std::size_t length = sizeof(Udp) + kCrcTrailerBytes;
  for (const Slice& piece : pieces) length += piece.length;
  const Udp udp{source.port, destination.port, length_field(length), {}};
  std::uint32_t crc = crc32c(address_bytes(source.ip));
  crc = crc32c(address_bytes(destination.ip), crc);
  crc = crc32c(std::as_bytes(std::span(&udp, 1)), crc);
  for (const Slice& piece : pieces) crc = crc32c(bytes_of(piece), crc);
  return crc;
}

// ---- inwards ------------------------------------------------------------------------------------

namespace {

// The fields of the IP header that describe its payload.
struct IpPacket {
  std::uint8_t protocol = 0;
  bool trimmed = false;
  std::size_t missing = 0;
  std::span<const std::byte> payload;
};

FrameVerdict parse_ipv4(std::span<const std::byte> bytes, const FrameFormat& format,
                        const TrimMarks& marks, FrameFields& fields, IpPacket& out) {
  if (bytes.size() < sizeof(Ipv4)) return FrameVerdict::Malformed;
  const auto ip = load<Ipv4>(bytes);
  const std::size_t header_bytes = std::size_t{ip.version_and_length & 0xFU} * 4;
  if (header_bytes < sizeof ip || bytes.size() < header_bytes) return FrameVerdict::Malformed;
  Checksum sum;
  sum.add(bytes.first(header_bytes));
  const bool unfinished = format.ip_checksum_may_be_0 && ip.checksum == 0;
  if (sum.value() != 0 && !unfinished && !marks.on(ip.tos >> 2)) return FrameVerdict::BadChecksum;
  std::copy(ip.source.begin(), ip.source.end(), fields.source.bytes.begin());
  std::copy(ip.destination.begin(), ip.destination.end(), fields.destination.bytes.begin());
  fields.dscp = ip.tos >> 2;
  fields.ecn = static_cast<Ecn>(ip.tos & 3);
  fields.hop_limit = ip.time_to_live;
  out.protocol = ip.protocol;
  out.trimmed = marks.on(fields.dscp);
  if ((ip.fragment & kFragmentBits) != 0) return FrameVerdict::NotUet;
  std::size_t length = ip.total_length;
  if (out.trimmed) {
    out.missing = std::max(length, bytes.size()) - bytes.size();
    length = std::min(std::max(length, header_bytes), bytes.size());
  }
  if (length < header_bytes || length > bytes.size()) return FrameVerdict::Malformed;
  out.payload = bytes.subspan(header_bytes, length - header_bytes);
  return FrameVerdict::Ok;
}

// Hop-by-hop options, routing, destination options, mobility (WIRE 1.1).
bool is_skipped(std::uint8_t next_header) {
  return next_header == 0 || next_header == 43 || next_header == 60 || next_header == 135;
}

FrameVerdict parse_ipv6(std::span<const std::byte> bytes, const TrimMarks& marks,
                        FrameFields& fields, IpPacket& out) {
  if (bytes.size() < sizeof(Ipv6)) return FrameVerdict::Malformed;
  const auto ip = load<Ipv6>(bytes);
  fields.source = {.bytes = ip.source, .is_ipv6 = true};
  fields.destination = {.bytes = ip.destination, .is_ipv6 = true};
  const std::uint32_t first_word = ip.version_class_flow;
  fields.dscp = static_cast<std::uint8_t>(first_word >> 22 & 0x3F);
  fields.ecn = static_cast<Ecn>(first_word >> 20 & 3);
  fields.hop_limit = ip.hop_limit;
  out.protocol = ip.next_header;
  out.trimmed = marks.on(fields.dscp);
  out.payload = bytes.subspan(sizeof ip);
  std::size_t length = ip.payload_length;
  if (out.trimmed) {
    out.missing = std::max(length, out.payload.size()) - out.payload.size();
    length = std::min(length, out.payload.size());
  }
  if (length > out.payload.size()) return FrameVerdict::Malformed;
  out.payload = out.payload.first(length);
  while (is_skipped(out.protocol)) {
    if (out.payload.size() < 8) return FrameVerdict::Malformed;
    const std::size_t skipped = 8 * (1 + std::to_integer<std::size_t>(out.payload[1]));
    if (out.payload.size() < skipped) return FrameVerdict::Malformed;
    out.protocol = std::to_integer<std::uint8_t>(out.payload[0]);
    out.payload = out.payload.subspan(skipped);
  }
  return FrameVerdict::Ok;
}

FrameVerdict parse_udp(const IpPacket& ip, const FrameFormat& format, FrameFields& fields,
                       std::span<const std::byte>& packet) {
  if (ip.payload.size() < sizeof(Udp)) return FrameVerdict::Malformed;
  const auto udp = load<Udp>(ip.payload);
  fields.entropy = udp.source_port;
  fields.port = udp.destination_port;
  std::size_t length = udp.length;
  if (ip.trimmed) length = ip.payload.size();
  if (length < sizeof udp || length > ip.payload.size()) return FrameVerdict::Malformed;
  packet = ip.payload.subspan(sizeof udp, length - sizeof udp);
  if (!format.udp_checksum || ip.trimmed || udp.checksum == 0) return FrameVerdict::Ok;
  Checksum sum = pseudo_header(fields.source, fields.destination, length);
  sum.add(ip.payload.first(length));
  return sum.value() == 0 ? FrameVerdict::Ok : FrameVerdict::BadChecksum;
}

// The bytes that the CRC covers lie in one piece here. The UDP checksum among them counts as 0.
bool crc_is_right(const FrameFormat& format, const FrameFields& fields, const IpPacket& ip,
                  std::span<const std::byte> packet) {
  const auto body = packet.first(packet.size() - kCrcTrailerBytes);
  const Slice piece{body.data(), static_cast<std::uint32_t>(body.size())};
  std::uint32_t crc = 0;
  if (format.encapsulation == Encapsulation::Udp) {
    crc = udp_packet_crc({fields.source, fields.entropy}, {fields.destination, fields.port},
                         std::span(&piece, 1));
  } else {
    crc = crc32c(address_bytes(fields.source));
    crc = crc32c(address_bytes(fields.destination), crc);
    crc = crc32c(ip.payload.first(ip.payload.size() - kCrcTrailerBytes), crc);
  }
  const auto trailer = crc_trailer(crc);
  return std::memcmp(trailer.data(), packet.data() + body.size(), trailer.size()) == 0;
}

}  // namespace

FrameVerdict parse_ip(std::span<const std::byte> bytes, const FrameFormat& format,
                      const TrimMarks& marks, ParsedFrame& out) {
  if (bytes.empty()) return FrameVerdict::Malformed;
  IpPacket ip;
  const unsigned version = std::to_integer<unsigned>(bytes[0]) >> 4;
  if (version != 4 && version != 6) return FrameVerdict::NotUet;
  FrameVerdict verdict = version == 4 ? parse_ipv4(bytes, format, marks, out.fields, ip)
                                      : parse_ipv6(bytes, marks, out.fields, ip);
  if (verdict != FrameVerdict::Ok) return verdict;
  out.missing = format.crc ? std::max(ip.missing, kCrcTrailerBytes) - kCrcTrailerBytes : ip.missing;
  if (format.encapsulation == Encapsulation::Udp) {
    if (ip.protocol != kProtocolUdp) return FrameVerdict::NotUet;
    verdict = parse_udp(ip, format, out.fields, out.packet);
  } else {
    if (ip.protocol != format.native_protocol) return FrameVerdict::NotUet;
    if (ip.payload.size() < sizeof(Entropy)) return FrameVerdict::Malformed;
    out.fields.entropy = load<Entropy>(ip.payload).entropy;
    out.packet = ip.payload.subspan(sizeof(Entropy));
  }
  if (verdict != FrameVerdict::Ok || !format.crc || ip.trimmed) return verdict;
  if (out.packet.size() < kCrcTrailerBytes) return FrameVerdict::Malformed;
  if (!crc_is_right(format, out.fields, ip, out.packet)) return FrameVerdict::BadCrc;
  out.packet = out.packet.first(out.packet.size() - kCrcTrailerBytes);
  return FrameVerdict::Ok;
}

FrameVerdict parse_frame(std::span<const std::byte> bytes, const FrameFormat& format,
                         const TrimMarks& marks, ParsedFrame& out) {
  if (bytes.size() < sizeof(Ethernet)) return FrameVerdict::Malformed;
  const auto ethernet = load<Ethernet>(bytes);
  out.fields.source_mac = ethernet.source;
  out.fields.destination_mac = ethernet.destination;
  std::uint16_t type = ethernet.type;
  bytes = bytes.subspan(sizeof ethernet);
  for (int tags = 0; type == kEtherTypeVlan && tags < kMostVlanTags; ++tags) {
    if (bytes.size() < sizeof(VlanTag)) return FrameVerdict::Malformed;
    const auto tag = load<VlanTag>(bytes);
    if (!out.fields.vlan) out.fields.vlan = tag.control;
    type = tag.type;
    bytes = bytes.subspan(sizeof tag);
  }
  if (type != kEtherTypeIpv4 && type != kEtherTypeIpv6) return FrameVerdict::NotUet;
  return parse_ip(bytes, format, marks, out);
}

}  // namespace uet::wire
