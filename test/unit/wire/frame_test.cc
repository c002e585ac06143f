// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Whole frames (WIRE 1.1 to 1.4), byte for byte against the vectors, and everything that can be
// wrong with one.
#include "wire/frame.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "vectors.h"
#include "wire/parse.h"

namespace uet::wire {
namespace {

constexpr std::size_t kIpAt = 14;
constexpr TrimMarks kNoMarks{};
constexpr TrimMarks kMarks{.trimmed = 12, .trimmed_last_hop = 16};

constexpr FrameFormat kUdp{};
constexpr FrameFormat kUdpCrc{.crc = true};
constexpr FrameFormat kNative{.encapsulation = Encapsulation::NativeIp};
constexpr FrameFormat kNativeCrc{.encapsulation = Encapsulation::NativeIp, .crc = true};
constexpr FrameFormat kFormats[] = {kUdp, kUdpCrc, kNative, kNativeCrc};

FrameFields fields_of(bool is_ipv6) {
  FrameFields fields;
  fields.source_mac = {2, 0, 0, 0, 0, 1};
  fields.destination_mac = {2, 0, 0, 0, 0, 2};
  fields.entropy = 0x4242;
  fields.ecn = Ecn::Ect0;
  fields.source.is_ipv6 = fields.destination.is_ipv6 = is_ipv6;
  if (is_ipv6) {
    fields.source.bytes = {0xFD, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 1};
    fields.destination.bytes = {0xFD, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 2};
  } else {
    fields.source.bytes = {10, 0, 0, 1};
    fields.destination.bytes = {10, 0, 0, 2};
  }
  return fields;
}

// The packet goes in as two pieces of odd length, as a head and user memory do.
Bytes make(const FrameFormat& format, const FrameFields& fields, const Bytes& packet) {
  const std::size_t cut = packet.size() > 12 ? 13 : packet.size();
  const std::array<Slice, 2> pieces = {
      Slice{packet.data(), static_cast<std::uint32_t>(cut)},
      Slice{packet.data() + cut, static_cast<std::uint32_t>(packet.size() - cut)}};
  Bytes frame(kMaxFrameHeaderBytes);
  frame.resize(write_frame_headers(frame.data(), format, fields, pieces));
  const Bytes headers = frame;
  frame.insert(frame.end(), packet.begin(), packet.end());
  if (format.crc) {
    const auto trailer = frame_trailer(headers, pieces);
    frame.insert(frame.end(), trailer.begin(), trailer.end());
  }
  return frame;
}

FrameVerdict verdict(const Bytes& frame, const FrameFormat& format,
                     const TrimMarks& marks = kNoMarks) {
  ParsedFrame out;
  return parse_frame(frame, format, marks, out);
}

Bytes vector_frame(const std::string& name) {
  for (const auto& frame : read_vectors("uet-frame-vectors.json")) {
    if (frame["name"] == name) return from_hex(frame["hex"].get<std::string>());
  }
  throw std::out_of_range(name);
}

std::uint16_t word(const Bytes& bytes, std::size_t at) {
  return load<be16>(std::span(bytes).subspan(at));
}

void put_word(Bytes& bytes, std::size_t at, std::size_t value) {
  store(bytes.data() + at, be16(static_cast<std::uint16_t>(value)));
}

// After a change of the IPv4 header that is meant to be right.
void repair_ipv4_checksum(Bytes& frame) {
  put_word(frame, kIpAt + 10, 0);
  const std::size_t words = (std::to_integer<std::size_t>(frame[kIpAt]) & 0xF) * 2;
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < words; ++i) sum += word(frame, kIpAt + 2 * i);
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  put_word(frame, kIpAt + 10, ~sum & 0xFFFF);
}

// ---- against the vectors (WIRE 5.2) -------------------------------------------------------------

TEST(Frame, UdpIsTheVectorByteForByte) {
  FrameFields fields = fields_of(false);
  const Bytes packet = vector_bytes("rud_syn_write_first");
  const Bytes made = make(kUdp, fields, packet);
  EXPECT_EQ(to_hex(made), to_hex(vector_frame("frame_udp_ipv4_write_first")));
  ParsedFrame parsed;
  ASSERT_EQ(parse_frame(made, kUdp, kNoMarks, parsed), FrameVerdict::Ok);
  EXPECT_EQ(to_hex(parsed.packet), to_hex(packet));
  EXPECT_EQ(parsed.fields.port, kUetUdpPort);
  EXPECT_TRUE(parse(parsed.packet).has_value());
}

TEST(Frame, NativeWithCrcIsTheVectorByteForByte) {
  const Bytes packet = vector_bytes("rud_write_last");
  const Bytes made = make(kNativeCrc, fields_of(false), packet);
  EXPECT_EQ(to_hex(made), to_hex(vector_frame("frame_native_ipv4_write_last_crc")));
  ParsedFrame parsed;
  ASSERT_EQ(parse_frame(made, kNativeCrc, kNoMarks, parsed), FrameVerdict::Ok);
  EXPECT_EQ(to_hex(parsed.packet), to_hex(packet));
  EXPECT_EQ(parsed.fields.entropy, 0x4242);
}

// ---- both ways ----------------------------------------------------------------------------------

// WIRE 1.1, WIRE 1.2, WIRE 1.3; CMS-400: the entropy value is the source port or in its header.
TEST(Frame, EveryFieldSurvivesInEveryForm) {
  for (const bool is_ipv6 : {false, true}) {
    for (const FrameFormat& format : kFormats) {
      FrameFields fields = fields_of(is_ipv6);
      fields.vlan = 0x6123;
      fields.port = 5000;
      fields.dscp = 46;
      fields.ecn = Ecn::Ce;
      fields.hop_limit = 9;
      const Bytes packet = vector_bytes("rud_write_last");
      const Bytes frame = make(format, fields, packet);
      ParsedFrame out;
      ASSERT_EQ(parse_frame(frame, format, kNoMarks, out), FrameVerdict::Ok);
      EXPECT_EQ(out.fields.source_mac, fields.source_mac);
      EXPECT_EQ(out.fields.destination_mac, fields.destination_mac);
      EXPECT_EQ(out.fields.vlan, fields.vlan);
      EXPECT_EQ(out.fields.source, fields.source);
      EXPECT_EQ(out.fields.destination, fields.destination);
      EXPECT_EQ(out.fields.entropy, fields.entropy);
      EXPECT_EQ(out.fields.dscp, 46);
      EXPECT_EQ(out.fields.ecn, Ecn::Ce);
      EXPECT_EQ(out.fields.hop_limit, 9);
      EXPECT_EQ(to_hex(out.packet), to_hex(packet));
      EXPECT_EQ(out.fields.port, format.encapsulation == Encapsulation::Udp ? 5000 : kUetUdpPort);
    }
  }
}

TEST(Frame, OverheadIsThatOfTheTable) {  // WIRE 1.5
  const Bytes packet(100);
  EXPECT_EQ(make(kUdp, fields_of(false), packet).size(), 14U + 20 + 8 + 100);
  EXPECT_EQ(make(kNative, fields_of(false), packet).size(), 14U + 20 + 4 + 100);
  EXPECT_EQ(make(kUdpCrc, fields_of(true), packet).size(), 14U + 40 + 8 + 100 + 4);
  EXPECT_EQ(make(kNativeCrc, fields_of(true), packet).size(), 14U + 40 + 4 + 100 + 4);
}

TEST(Frame, LengthsCountTheTrailer) {  // WIRE 1.4
  const Bytes packet(100);
  const Bytes ipv4 = make(kUdpCrc, fields_of(false), packet);
  EXPECT_EQ(word(ipv4, kIpAt + 2), 20 + 8 + 100 + 4);
  EXPECT_EQ(word(ipv4, kIpAt + 20 + 4), 8 + 100 + 4);
  const Bytes ipv6 = make(kNativeCrc, fields_of(true), packet);
  EXPECT_EQ(word(ipv6, kIpAt + 4), 4 + 100 + 4);
}

TEST(Frame, ProtocolNumberOfTheNativeFormIsConfigured) {
  FrameFormat format = kNative;
  format.native_protocol = 254;
  const Bytes frame = make(format, fields_of(false), Bytes(20));
  EXPECT_EQ(std::to_integer<int>(frame[kIpAt + 9]), 254);
  EXPECT_EQ(verdict(frame, format), FrameVerdict::Ok);
  EXPECT_EQ(verdict(frame, kNative), FrameVerdict::NotUet);
  EXPECT_EQ(verdict(frame, kUdp), FrameVerdict::NotUet);
}

// A sum of 0 is sent as 0xFFFF (RFC 768): 0 would say that there is no checksum.
TEST(Frame, UdpChecksumIsNeverZeroByAccident) {
  Bytes packet(16);
  const Bytes first = make(kUdp, fields_of(false), packet);
  put_word(packet, 4, word(first, kIpAt + 20 + 6));
  const Bytes second = make(kUdp, fields_of(false), packet);
  EXPECT_EQ(word(second, kIpAt + 20 + 6), 0xFFFF);
  EXPECT_EQ(verdict(second, kUdp), FrameVerdict::Ok);
}

TEST(Frame, UdpChecksumMayBeLeftOut) {
  FrameFormat format = kUdp;
  format.udp_checksum = false;
  for (const bool is_ipv6 : {false, true}) {
    const Bytes frame = make(format, fields_of(is_ipv6), Bytes(30));
    EXPECT_EQ(word(frame, kIpAt + (is_ipv6 ? 40 : 20) + 6), 0);
    EXPECT_EQ(verdict(frame, kUdp), FrameVerdict::Ok);
  }
  Bytes unfinished = make(kUdp, fields_of(false), Bytes(30));
  unfinished[kIpAt + 20 + 6] ^= std::byte{1};
  EXPECT_EQ(verdict(unfinished, kUdp), FrameVerdict::BadChecksum);
  EXPECT_EQ(verdict(unfinished, format), FrameVerdict::Ok);
}

TEST(Frame, IpChecksumOf0MayBeTakenForUnfinished) {
  Bytes frame = make(kUdp, fields_of(false), Bytes(30));
  const std::size_t checksum = kIpAt + 10;
  frame[checksum] = frame[checksum + 1] = std::byte{0};
  FrameFormat captured = kUdp;
  captured.ip_checksum_may_be_0 = true;
  EXPECT_EQ(verdict(frame, kUdp), FrameVerdict::BadChecksum);
  EXPECT_EQ(verdict(frame, captured), FrameVerdict::Ok);
  frame[checksum] = std::byte{1};
  EXPECT_EQ(verdict(frame, captured), FrameVerdict::BadChecksum);
}

// The CRC that a back end computes without seeing the headers is that of the frame (WIRE 1.4).
// RFC 1071 leaves the grouping open; the pieces here have every remainder of 8 and of 2.
TEST(Frame, UdpChecksumDoesNotDependOnHowThePacketIsCut) {
  Rng rng(5);
  Bytes packet(257);
  for (std::byte& byte : packet) byte = static_cast<std::byte>(rng.below(256));
  const Slice whole{packet.data(), static_cast<std::uint32_t>(packet.size())};
  Bytes expected(kMaxFrameHeaderBytes);
  write_frame_headers(expected.data(), kUdp, fields_of(false), std::span(&whole, 1));
  for (std::uint32_t cut = 0; cut <= packet.size(); ++cut) {
    const std::array<Slice, 2> pieces = {Slice{packet.data(), cut},
                                         Slice{packet.data() + cut, whole.length - cut}};
    Bytes headers(kMaxFrameHeaderBytes);
    write_frame_headers(headers.data(), kUdp, fields_of(false), pieces);
    EXPECT_EQ(headers, expected) << "cut at " << cut;
  }
}

TEST(Frame, CrcOfAUdpPacketNeedsNoHeaders) {
  for (const bool is_ipv6 : {false, true}) {
    const FrameFields fields = fields_of(is_ipv6);
    const Bytes packet = vector_bytes("rud_write_last");
    const Slice piece{packet.data(), static_cast<std::uint32_t>(packet.size())};
    const std::uint32_t crc = udp_packet_crc(
        {fields.source, fields.entropy}, {fields.destination, fields.port}, std::span(&piece, 1));
    const Bytes frame = make(kUdpCrc, fields, packet);
    const auto trailer = crc_trailer(crc);
    EXPECT_TRUE(std::equal(trailer.begin(), trailer.end(), frame.end() - 4)) << is_ipv6;
    EXPECT_TRUE(crc_trailer_matches(std::span(frame).subspan(kIpAt + (is_ipv6 ? 8 : 12))));
  }
}

// ---- what others may send -----------------------------------------------------------------------

TEST(Frame, TwoVlanTagsAreAccepted) {  // WIRE 1.1
  FrameFields fields = fields_of(false);
  fields.vlan = 7;
  Bytes frame = make(kUdp, fields, Bytes(20));
  const Bytes outer = from_hex("81000064");
  frame.insert(frame.begin() + 12, outer.begin(), outer.end());
  ParsedFrame out;
  ASSERT_EQ(parse_frame(frame, kUdp, kNoMarks, out), FrameVerdict::Ok);
  EXPECT_EQ(out.fields.vlan, 0x64);
  frame.insert(frame.begin() + 12, outer.begin(), outer.end());
  EXPECT_EQ(verdict(frame, kUdp), FrameVerdict::NotUet);
}

TEST(Frame, PaddingBehindTheIpPacketIsCutOff) {
  const Bytes packet(6, std::byte{9});
  for (const FrameFormat& format : kFormats) {
    Bytes frame = make(format, fields_of(false), packet);
    frame.resize(60);
    ParsedFrame out;
    ASSERT_EQ(parse_frame(frame, format, kNoMarks, out), FrameVerdict::Ok);
    EXPECT_EQ(to_hex(out.packet), to_hex(packet));
  }
}

TEST(Frame, Ipv4OptionsAreSkipped) {
  Bytes frame = make(kUdp, fields_of(false), Bytes(20, std::byte{7}));
  frame.insert(frame.begin() + kIpAt + 20, 4, std::byte{1});  // no-operations
  frame[kIpAt] = std::byte{0x46};
  put_word(frame, kIpAt + 2, frame.size() - kIpAt);
  repair_ipv4_checksum(frame);
  ParsedFrame out;
  ASSERT_EQ(parse_frame(frame, kUdp, kNoMarks, out), FrameVerdict::Ok);
  EXPECT_EQ(out.packet.size(), 20U);
}

TEST(Frame, FragmentsAreNotUet) {
  for (const std::size_t bits : {0x2000, 0x0001, 0x1FFF}) {
    Bytes frame = make(kUdp, fields_of(false), Bytes(20));
    put_word(frame, kIpAt + 6, bits);
    repair_ipv4_checksum(frame);
    EXPECT_EQ(verdict(frame, kUdp), FrameVerdict::NotUet) << bits;
  }
}

TEST(Frame, Ipv6HeadersBeforeOursAreSkipped) {  // WIRE 1.1
  const Bytes packet(20, std::byte{7});
  for (const int kind : {0, 43, 60, 135}) {
    Bytes frame = make(kNative, fields_of(true), packet);
    Bytes header(16);
    header[0] = frame[kIpAt + 6];
    header[1] = std::byte{1};  // eight bytes more than the first eight
    frame[kIpAt + 6] = static_cast<std::byte>(kind);
    frame.insert(frame.begin() + kIpAt + 40, header.begin(), header.end());
    put_word(frame, kIpAt + 4, frame.size() - kIpAt - 40);
    ParsedFrame out;
    ASSERT_EQ(parse_frame(frame, kNative, kNoMarks, out), FrameVerdict::Ok) << kind;
    EXPECT_EQ(to_hex(out.packet), to_hex(packet));
    frame[kIpAt + 41] = std::byte{200};
    EXPECT_EQ(verdict(frame, kNative), FrameVerdict::Malformed);
  }
  Bytes fragment = make(kNative, fields_of(true), packet);
  fragment[kIpAt + 6] = std::byte{44};
  EXPECT_EQ(verdict(fragment, kNative), FrameVerdict::NotUet);
}

// ---- damage -------------------------------------------------------------------------------------

// From the IP source address on the CRC covers every bit (WIRE 1.4).
TEST(Frame, EveryFlippedBitThatTheCrcCoversIsFound) {
  for (const bool is_ipv6 : {false, true}) {
    for (const FrameFormat& format : {kUdpCrc, kNativeCrc}) {
      const Bytes good = make(format, fields_of(is_ipv6), vector_bytes("rud_write_last"));
      const std::size_t covered_at = kIpAt + (is_ipv6 ? 8 : 12);
      const std::size_t checksum_at = kIpAt + (is_ipv6 ? 40 : 20) + 6;
      for (std::size_t bit = covered_at * 8; bit < good.size() * 8; ++bit) {
        const bool udp_checksum = format.encapsulation == Encapsulation::Udp &&
                                  (bit / 8 == checksum_at || bit / 8 == checksum_at + 1);
        Bytes bad = good;
        bad[bit / 8] ^= static_cast<std::byte>(0x80 >> bit % 8);
        // A checksum that is not 0 is checked as such.
        if (!is_ipv6 && bit / 8 < kIpAt + 20) repair_ipv4_checksum(bad);
        const FrameVerdict found = verdict(bad, format);
        EXPECT_NE(found, FrameVerdict::Ok) << bit;
        EXPECT_TRUE(!udp_checksum || found == FrameVerdict::BadChecksum) << bit;
      }
    }
  }
}

TEST(Frame, EveryFlippedBit_FoundByUdpChecksum) {
  for (const bool is_ipv6 : {false, true}) {
    const Bytes good = make(kUdp, fields_of(is_ipv6), vector_bytes("rud_write_last"));
    for (std::size_t bit = (kIpAt + (is_ipv6 ? 40 : 20) + 8) * 8; bit < good.size() * 8; ++bit) {
      Bytes bad = good;
      bad[bit / 8] ^= static_cast<std::byte>(0x80 >> bit % 8);
      EXPECT_EQ(verdict(bad, kUdp), FrameVerdict::BadChecksum) << bit;
    }
  }
}

TEST(Frame, EveryFlippedBitOfAnIpv4HeaderIsFound) {
  const Bytes good = make(kNative, fields_of(false), Bytes(20));
  for (std::size_t bit = kIpAt * 8 + 8; bit < (kIpAt + 20) * 8; ++bit) {
    Bytes bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(0x80 >> bit % 8);
    EXPECT_EQ(verdict(bad, kNative), FrameVerdict::BadChecksum) << bit;
  }
}

TEST(Frame, LengthsThatContradictEachOtherAreRefused) {
  const Bytes good = make(kUdp, fields_of(false), Bytes(40));
  Bytes ip_too_long = good;
  put_word(ip_too_long, kIpAt + 2, 20 + 8 + 41);
  repair_ipv4_checksum(ip_too_long);
  EXPECT_EQ(verdict(ip_too_long, kUdp), FrameVerdict::Malformed);
  Bytes udp_too_long = good;
  put_word(udp_too_long, kIpAt + 24, 8 + 41);
  EXPECT_EQ(verdict(udp_too_long, kUdp), FrameVerdict::Malformed);
  Bytes udp_too_short = good;
  put_word(udp_too_short, kIpAt + 24, 7);
  EXPECT_EQ(verdict(udp_too_short, kUdp), FrameVerdict::Malformed);
  Bytes ipv6_too_long = make(kNative, fields_of(true), Bytes(40));
  put_word(ipv6_too_long, kIpAt + 4, 45);
  EXPECT_EQ(verdict(ipv6_too_long, kNative), FrameVerdict::Malformed);
}

TEST(Frame, NoPrefixOfAFrameIsTakenOrReadBeyond) {
  for (const bool is_ipv6 : {false, true}) {
    for (const FrameFormat& format : kFormats) {
      const Bytes whole = make(format, fields_of(is_ipv6), vector_bytes("rud_write_last"));
      for (std::size_t length = 0; length < whole.size(); ++length) {
        const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
        EXPECT_EQ(verdict(cut, format), FrameVerdict::Malformed) << length;
      }
    }
  }
}

TEST(Frame, RandomBytesBehindAnEthernetHeaderAreHarmless) {
  Rng rng(11);
  for (int round = 0; round < 20'000; ++round) {
    Bytes frame(rng.below(120));
    for (std::byte& b : frame) b = static_cast<std::byte>(rng.next());
    if (frame.size() > kIpAt) {
      const bool is_ipv6 = rng.chance(0.5);
      put_word(frame, 12, is_ipv6 ? 0x86DD : 0x0800);
      frame[kIpAt] = static_cast<std::byte>(is_ipv6 ? 0x60 : 0x45);
    }
    ParsedFrame out;
    for (const FrameFormat& format : kFormats) {
      parse_frame(frame, format, rng.chance(0.5) ? kMarks : kNoMarks, out);
    }
  }
}

// ---- trimmed packets (WIRE 1.3) -----------------------------------------------------------------

// A switch cuts, changes the DSCP and leaves or repairs everything else.
TEST(Frame, TrimmedPacket_AnyLengthOrChecksum_IsTaken) {
  const Bytes packet = vector_bytes("rud_write_last");
  for (const bool is_ipv6 : {false, true}) {
    for (const FrameFormat& format : kFormats) {
      for (const std::uint8_t dscp : {*kMarks.trimmed, *kMarks.trimmed_last_hop}) {
        FrameFields fields = fields_of(is_ipv6);
        fields.dscp = dscp;
        Bytes frame = make(format, fields, packet);
        const std::size_t kept = kIpAt + (is_ipv6 ? 40U : 20U) + 24;
        frame.resize(kept);
        frame[kIpAt + (is_ipv6 ? 1U : 11U)] ^= std::byte{1};  // flow label or header checksum
        ParsedFrame out;
        ASSERT_EQ(parse_frame(frame, format, kMarks, out), FrameVerdict::Ok);
        EXPECT_EQ(out.fields.dscp, dscp);
        const std::size_t above = format.encapsulation == Encapsulation::Udp ? 8 : 4;
        EXPECT_EQ(to_hex(out.packet), to_hex(std::span(packet).first(24 - above)));
        EXPECT_EQ(out.missing, packet.size() - out.packet.size());
        EXPECT_NE(verdict(frame, format), FrameVerdict::Ok) << "without marks it is damaged";
      }
    }
  }
}

TEST(Frame, TrimmedPacketsWithRepairedLengthsAreTaken) {
  FrameFields fields = fields_of(false);
  fields.dscp = *kMarks.trimmed;
  Bytes frame = make(kUdp, fields, vector_bytes("rud_write_last"));
  frame.resize(60);  // padded
  put_word(frame, kIpAt + 2, 20 + 24);
  put_word(frame, kIpAt + 24, 24);
  repair_ipv4_checksum(frame);
  ParsedFrame out;
  ASSERT_EQ(parse_frame(frame, kUdp, kMarks, out), FrameVerdict::Ok);
  EXPECT_EQ(out.packet.size(), 16U);
}

}  // namespace
}  // namespace uet::wire
