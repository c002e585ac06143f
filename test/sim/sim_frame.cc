// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sim/sim_frame.h"

#include <algorithm>
#include <array>
#include <span>

namespace uet::sim {
namespace {

constexpr std::size_t kEthernetBytes = 14;
constexpr std::size_t kIpv4Bytes = 20;
constexpr std::size_t kTrafficClassAt = kEthernetBytes + 1;  // in IPv4
constexpr std::size_t kUdpBytes = 8;
constexpr std::size_t kEntropyHeaderBytes = 4;
constexpr std::size_t kKeptBytes = 16;  // of the packet, when it is trimmed (PDS-148)

constexpr std::size_t header_bytes(const wire::FrameFormat& format) {
  const bool udp = format.encapsulation == wire::Encapsulation::Udp;
  return kEthernetBytes + kIpv4Bytes + (udp ? kUdpBytes : kEntropyHeaderBytes);
}

}  // namespace

std::vector<std::byte> frame_of(const SimPacket& packet, const wire::FrameFormat& format) {
  wire::FrameFields fields;
  fields.source = packet.source.ip;
  fields.destination = packet.destination.ip;
  fields.entropy = packet.entropy;
  fields.port = packet.destination.port;
  fields.dscp = packet.dscp;
  fields.ecn = packet.ecn;
  const Slice piece{packet.bytes.data(), static_cast<std::uint32_t>(packet.bytes.size())};
  const std::span pieces(&piece, 1);
  std::vector<std::byte> frame(wire::kMaxFrameHeaderBytes);
  frame.resize(wire::write_frame_headers(frame.data(), format, fields, pieces));
  const auto trailer = wire::frame_trailer(frame, pieces);
  frame.insert(frame.end(), packet.bytes.begin(), packet.bytes.end());
  if (format.crc) frame.insert(frame.end(), trailer.begin(), trailer.end());
  return frame;
}

// The Ethernet header has a check sequence of its own, which the NIC looks at.
void damage(std::vector<std::byte>& frame, const wire::FrameFormat& format, Rng& rng) {
  const std::uint64_t first = 8 * (kEthernetBytes + kIpv4Bytes);
  const auto at = first + rng.below(8 * frame.size() - first);
  // CRC-32C notices any three bits, the Internet checksum any one.
  const std::uint64_t bits = format.crc ? rng.between(1, 3) : 1;
  for (std::uint64_t bit = at; bit < std::min<std::uint64_t>(at + bits, 8 * frame.size()); ++bit) {
    frame[bit / 8] ^= static_cast<std::byte>(0x80 >> bit % 8);
  }
}

void trim(std::vector<std::byte>& frame, const wire::FrameFormat& format) {
  frame.resize(std::min(frame.size(), header_bytes(format) + kKeptBytes));
  const auto ecn = std::to_integer<unsigned>(frame[kTrafficClassAt]) & 3;
  frame[kTrafficClassAt] =
      static_cast<std::byte>(unsigned{*wire::kDefaultTrimMarks.trimmed} << 2 | ecn);
}

wire::FrameVerdict read_frame(const std::vector<std::byte>& frame, const wire::FrameFormat& format,
                              SimPacket& packet) {
  wire::ParsedFrame parsed;
  const auto verdict = wire::parse_frame(frame, format, wire::kDefaultTrimMarks, parsed);
  if (verdict != wire::FrameVerdict::Ok) return verdict;
  packet.bytes.assign(parsed.packet.begin(), parsed.packet.end());
  packet.source.ip = parsed.fields.source;
  packet.destination.ip = parsed.fields.destination;
  packet.entropy = parsed.fields.entropy;
  packet.ecn = parsed.fields.ecn;
  packet.dscp = parsed.fields.dscp;
  packet.trimmed = wire::kDefaultTrimMarks.on(parsed.fields.dscp);
  return verdict;
}

}  // namespace uet::sim
