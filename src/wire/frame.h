// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Whole frames (WIRE 1.1 to 1.4): Ethernet, IP, UDP or the entropy header of the native form in
// front of a packet, the CRC trailer behind it. For captures and for back ends that own the IP
// header. Must not know what is in the packet, nor which addresses belong to whom.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "uet/base/address.h"
#include "uet/base/packet.h"
#include "uet/base/types.h"
#include "wire/crc.h"

namespace uet::wire {

using MacAddress = std::array<std::uint8_t, 6>;

enum class Encapsulation : std::uint8_t { Udp, NativeIp };

// No number is assigned to the native form; this one is for experiments (WIRE 1.1).
inline constexpr std::uint8_t kExperimentalProtocol = 253;

// The properties common to all frames between two ends, by configuration of both.
struct FrameFormat {
  Encapsulation encapsulation = Encapsulation::Udp;
  std::uint8_t native_protocol = kExperimentalProtocol;  // IP protocol number of the native form
  bool crc = false;  // the trailer of WIRE 1.4; the UDP checksum is then sent as 0
  // Sent: false = 0, which IPv6 receivers must be told to accept. Received: false = not looked at
  // (and 0 is always accepted). UET wants false (WIRE 1.1).
  bool udp_checksum = true;
  // Received: true = an IPv4 header checksum of 0 is not looked at. A capture on the sending host
  // may hold it before the NIC has filled it in.
  bool ip_checksum_may_be_0 = false;
};

inline constexpr std::uint16_t kVlanIdMask = 0x0FFF;  // of a tag

// The fields that differ from frame to frame.
struct FrameFields {
  MacAddress source_mac{};
  MacAddress destination_mac{};
  std::optional<std::uint16_t> vlan;  // 802.1Q: priority, DEI and VLAN id; the outer of two
  FabricAddress source;
  FabricAddress destination;         // of the same family
  std::uint16_t entropy = 0;         // UDP source port, or in the entropy header
  std::uint16_t port = kUetUdpPort;  // UDP destination port; the native form has none
  std::uint8_t dscp = 0;
  Ecn ecn = Ecn::NotEct;
  std::uint8_t hop_limit = 64;
};

inline constexpr std::size_t kMaxFrameHeaderBytes = 14 + 4 + 40 + 8;

// Writes the headers for a packet that consists of `pieces`, in this order, from the PDS prologue
// to the end of the payload. `out` has kMaxFrameHeaderBytes bytes. Returns their length. IPv4:
// no options, identification 0, "do not fragment".
// The packet must fit an IP packet; a longer one gets length fields that say 65535.
std::size_t write_frame_headers(std::byte* out, const FrameFormat& format,
                                const FrameFields& fields, std::span<const Slice> pieces);

// The trailer of that packet (format.crc). `headers`: what write_frame_headers wrote.
std::array<std::byte, kCrcTrailerBytes> frame_trailer(std::span<const std::byte> headers,
                                                      std::span<const Slice> pieces);

// The CRC of a packet over UDP whose headers another writes or has taken away. The UDP checksum
// counts as 0: it covers the trailer, so that the two cannot depend on each other.
std::uint32_t udp_packet_crc(const FepAddress& source, const FepAddress& destination,
                             std::span<const Slice> pieces);

enum class FrameVerdict : std::uint8_t {
  Ok,
  NotUet,       // another protocol, or a fragment: not for UET
  Malformed,    // cut short, or lengths that contradict each other
  BadChecksum,  // of IPv4 or UDP
  BadCrc,
};

struct ParsedFrame {
  FrameFields fields;
  std::span<const std::byte> packet;  // from the PDS prologue on, without trailer: a view
  std::size_t missing = 0;            // bytes of a trimmed one that the IP length promises
};

// Which DSCPs say that a switch has trimmed the packet (WIRE 1.3). Lengths and checksums of such a
// packet are not looked at, only what is there.
struct TrimMarks {
  std::optional<std::uint8_t> trimmed;
  std::optional<std::uint8_t> trimmed_last_hop;

  bool on(std::uint8_t dscp) const { return dscp == trimmed || dscp == trimmed_last_hop; }
};

// Seen in use (CMS-30); switches are configured to match.
inline constexpr TrimMarks kDefaultTrimMarks{.trimmed = 12, .trimmed_last_hop = 16};

// `bytes`: an Ethernet frame without its check sequence. `out` is filled as far as the frame could
// be read. Accepts up to two VLAN tags, IPv4 options and the IPv6 headers of WIRE 1.1; padding
// behind the IP packet is cut off. Whether addresses and port are ours is for the caller.
FrameVerdict parse_frame(std::span<const std::byte> bytes, const FrameFormat& format,
                         const TrimMarks& marks, ParsedFrame& out);
// The same from the IP header on.
FrameVerdict parse_ip(std::span<const std::byte> bytes, const FrameFormat& format,
                      const TrimMarks& marks, ParsedFrame& out);

}  // namespace uet::wire
