// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Properties of the PDS headers; their bytes are checked by vectors_test.cc.
#include "uet/wire/pds.h"

#include <gtest/gtest.h>

#include <limits>

#include "uet/base/address.h"
#include "unit/wire/random_bytes.h"
#include "unit/wire/vectors.h"
#include "wire/frame.h"

namespace uet::wire {
namespace {

constexpr int kRounds = 500;

template <class Header>
void expect_round_trip(const Header& sent, std::size_t header_bytes) {
  Bytes bytes(kMaxPdsHeaderBytes, std::byte{0xAA});
  ASSERT_EQ(sent.encode(bytes.data()), header_bytes);
  Header received;
  ASSERT_TRUE(Header::decode(std::span(bytes).first(header_bytes), received));
  EXPECT_EQ(received, sent);
  EXPECT_FALSE(Header::decode(std::span(bytes).first(header_bytes - 1), received));
}

TEST(RequestHeader, RandomFieldsComeBack) {
  Rng rng(2);
  for (int i = 0; i < kRounds; ++i) {
    for (PdsType type : {PdsType::RudReq, PdsType::RodReq, PdsType::RudCcReq, PdsType::RodCcReq}) {
      RequestHeader h;
      h.type = type;
      h.next_hdr = random_bits<NextHdr>(rng, 4);
      h.retx = random_bool(rng);
      h.ar = random_bool(rng);
      h.syn = random_bool(rng);
      h.clear_psn_offset = random_bits<std::int16_t>(rng, 16);
      h.psn = Psn{random_bits<std::uint32_t>(rng, 32)};
      h.spdcid = PdcId{random_bits<std::uint16_t>(rng, 16)};
      if (h.syn) {
        h.pdc_info = random_bits<std::uint8_t>(rng, 4);
        h.psn_offset = random_bits<std::uint16_t>(rng, 12);
      } else {
        h.dpdcid = PdcId{random_bits<std::uint16_t>(rng, 16)};
      }
      if (type == PdsType::RudCcReq || type == PdsType::RodCcReq) {
        h.ccc_id = random_bits<std::uint8_t>(rng, 8);
        h.credit_target = random_bits<std::uint32_t>(rng, 24);
      }
      expect_round_trip(h, pds_header_bytes(type));
      Bytes bytes(kMaxPdsHeaderBytes);
      h.encode(bytes.data());
      h.next_hdr = random_bits<NextHdr>(rng, 4);
      set_next_hdr(bytes.data(), h.next_hdr);
      RequestHeader changed;
      ASSERT_TRUE(RequestHeader::decode(bytes, changed));
      EXPECT_EQ(changed, h);
    }
  }
}

TEST(RequestHeader, PsnArithmeticWraps) {
  RequestHeader h;
  h.psn = Psn{2};
  h.clear_psn_offset = -5;
  h.psn_offset = 4;
  EXPECT_EQ(h.clear_psn(), Psn{0xFFFFFFFD});
  EXPECT_EQ(h.start_psn(), Psn{0xFFFFFFFE});
}

TEST(RequestHeader, RodIsToldFromRud) {
  EXPECT_FALSE(RequestHeader{.type = PdsType::RudReq}.rod());
  EXPECT_FALSE(RequestHeader{.type = PdsType::RudCcReq}.rod());
  EXPECT_TRUE(RequestHeader{.type = PdsType::RodReq}.rod());
  EXPECT_TRUE(RequestHeader{.type = PdsType::RodCcReq}.rod());
}

// WIRE 2.2: pdc_info and psn_offset must not spill into each other.
TEST(RequestHeader, ValuesTooWideAreCut) {
  RequestHeader h;
  h.syn = true;
  h.pdc_info = 0xF1;
  h.psn_offset = 0xF002;
  Bytes bytes(12);
  h.encode(bytes.data());
  EXPECT_EQ(to_hex(std::span(bytes).last(2)), "1002");
}

void fill_cc(AckHeader& h, Rng& rng) {
  h.cc_flags = random_bits<std::uint8_t>(rng, 4);
  h.mpr = random_bits<std::uint8_t>(rng, 8);
  h.sack_psn_offset = random_bits<std::int16_t>(rng, 16);
  h.sack_bitmap = rng.next();
  h.cc_type = random_bits<CcType>(rng, h.type == PdsType::AckCc ? 2 : 4);
  const bool ccx = h.type == PdsType::AckCcx;
  if (!ccx && h.cc_type == CcType::Nscc) {
    h.service_time = random_bits<std::uint16_t>(rng, 16);
    h.rc = random_bool(rng);
    h.rcv_cwnd_pend = random_bits<std::uint8_t>(rng, 7);
    h.rcvd_bytes = random_bits<std::uint32_t>(rng, 24);
    h.ooo_count = random_bits<std::uint16_t>(rng, 16);
  } else if (!ccx && h.cc_type == CcType::Credit) {
    h.credit = random_bits<std::uint32_t>(rng, 24);
    h.ooo_count = random_bits<std::uint16_t>(rng, 16);
  } else {
    for (std::size_t i = 0; i < (ccx ? 16 : 8); ++i) {
      h.ccx_state[i] = random_bits<std::uint8_t>(rng, 8);
    }
  }
}

TEST(AckHeader, RandomFieldsComeBack) {
  Rng rng(3);
  for (int i = 0; i < kRounds; ++i) {
    for (PdsType type : {PdsType::Ack, PdsType::AckCc, PdsType::AckCcx}) {
      AckHeader h;
      h.type = type;
      h.next_hdr = random_bits<NextHdr>(rng, 4);
      h.expected = random_bool(rng);  // PDS-78
      h.ce = random_bool(rng);
      h.retx = random_bool(rng);
      h.p = random_bool(rng);
      h.req = random_bits<AckRequestCode>(rng, 2);
      (h.p ? h.probe_opaque : reinterpret_cast<std::uint16_t&>(h.ack_psn_offset)) =
          random_bits<std::uint16_t>(rng, 16);
      h.cack_psn = Psn{random_bits<std::uint32_t>(rng, 32)};
      h.spdcid = PdcId{random_bits<std::uint16_t>(rng, 16)};
      h.dpdcid = PdcId{random_bits<std::uint16_t>(rng, 16)};
      if (type != PdsType::Ack) fill_cc(h, rng);
      expect_round_trip(h, pds_header_bytes(type));
    }
  }
}

// WIRE 2.3, 2.4: both offsets are signed.
TEST(AckHeader, OffsetsAreSigned) {
  AckHeader h;
  h.cack_psn = Psn{10};
  h.ack_psn_offset = -11;
  h.sack_psn_offset = std::numeric_limits<std::int16_t>::min();
  EXPECT_EQ(h.ack_psn(), Psn{0xFFFFFFFF});
  EXPECT_EQ(h.sack_base(), Psn{10} - 32768);
}

TEST(NackHeader, RandomFieldsComeBack) {
  Rng rng(4);
  for (int i = 0; i < kRounds; ++i) {
    for (PdsType type : {PdsType::Nack, PdsType::NackCcx}) {
      NackHeader h;
      h.type = type;
      h.ce = random_bool(rng);
      h.retx = random_bool(rng);
      h.nt = random_bool(rng);
      h.nack_code = random_bits<NackCode>(rng, 8);
      h.vendor_code = random_bits<std::uint8_t>(rng, 8);
      h.nack_psn = Psn{random_bits<std::uint32_t>(rng, 32)};
      h.spdcid = PdcId{random_bits<std::uint16_t>(rng, 16)};
      h.dpdcid = PdcId{random_bits<std::uint16_t>(rng, 16)};
      h.payload = random_bits<std::uint32_t>(rng, 32);
      if (type == PdsType::NackCcx) {
        h.nccx_type = random_bits<std::uint8_t>(rng, 4);
        h.nccx_state1 = random_bits<std::uint64_t>(rng, 60);
        h.nccx_state2 = rng.next();
      }
      expect_round_trip(h, pds_header_bytes(type));
    }
  }
}

TEST(Negotiation, Pds215_BytesAreThoseOfTheReference) {
  Negotiation asked;
  asked.features = Negotiation::kSynRetxTransfer;
  Bytes bytes(sizeof(PdsNegotiation));
  EXPECT_EQ(asked.encode(bytes.data()), 8U);
  EXPECT_EQ(bytes, from_hex("0102000000000001"));
  Negotiation back;
  ASSERT_TRUE(Negotiation::decode(bytes, back));
  EXPECT_EQ(back, asked);
  ASSERT_TRUE(Negotiation::decode(from_hex("0703ffff80000002"), back));
  EXPECT_EQ(back, (Negotiation{.type = 7, .length_words = 3, .features = 0x8000'0002}));
  EXPECT_FALSE(Negotiation::decode(std::span(bytes).first(7), back));
}

TEST(Negotiation, Pds215_PayloadOfTheHeaderIsItsFirstWord) {
  const Bytes packet = from_hex("5c88000000000001001100220102000000000001");
  ControlHeader header;
  ASSERT_TRUE(ControlHeader::decode(packet, header));
  EXPECT_EQ(header.ctl_type, CpType::Negotiation);
  EXPECT_EQ(header.payload, 0x0102'0000U);
  Negotiation asked;
  ASSERT_TRUE(Negotiation::decode(std::span(packet).subspan(Negotiation::kOffset), asked));
  EXPECT_EQ(asked.features, Negotiation::kSynRetxTransfer);
}

TEST(ControlHeader, RandomFieldsComeBack) {
  Rng rng(5);
  for (int i = 0; i < kRounds; ++i) {
    ControlHeader h;
    h.ctl_type = random_bits<CpType>(rng, 4);
    h.isrod = random_bool(rng);
    h.retx = random_bool(rng);
    h.ar = random_bool(rng);
    h.syn = random_bool(rng);
    h.probe_opaque = random_bits<std::uint16_t>(rng, 16);
    h.psn = Psn{random_bits<std::uint32_t>(rng, 32)};
    h.spdcid = PdcId{random_bits<std::uint16_t>(rng, 16)};
    if (h.syn) {
      h.pdc_info = random_bits<std::uint8_t>(rng, 4);
      h.psn_offset = random_bits<std::uint16_t>(rng, 12);
    } else {
      h.dpdcid = PdcId{random_bits<std::uint16_t>(rng, 16)};
    }
    h.payload = random_bits<std::uint32_t>(rng, 32);
    expect_round_trip(h, sizeof(PdsControl));
  }
}

TEST(RudiHeader, RandomFieldsComeBack) {
  Rng rng(6);
  for (int i = 0; i < kRounds; ++i) {
    for (PdsType type : {PdsType::RudiReq, PdsType::RudiResp}) {
      expect_round_trip(RudiHeader{.type = type,
                                   .next_hdr = random_bits<NextHdr>(rng, 4),
                                   .ce = type == PdsType::RudiResp && random_bool(rng),
                                   .retx = random_bool(rng),
                                   .pkt_id = random_bits<std::uint32_t>(rng, 32)},
                        sizeof(PdsRudi));
    }
  }
}

// WIRE 2.7: M belongs to the response only.
TEST(RudiHeader, MOfARequestIsIgnored) {
  const Bytes bytes = from_hex("21a000000000cafe");
  RudiHeader h;
  ASSERT_TRUE(RudiHeader::decode(bytes, h));
  EXPECT_FALSE(h.ce);
}

TEST(UudHeader, EveryNextHdrComesBack) {
  for (std::uint8_t next_hdr = 0; next_hdr < 16; ++next_hdr) {
    expect_round_trip(UudHeader{.next_hdr = static_cast<NextHdr>(next_hdr)}, sizeof(PdsUud));
  }
}

TEST(SecurityHeader, RandomFieldsComeBack) {
  Rng rng(7);
  for (int i = 0; i < kRounds; ++i) {
    SecurityHeader h;
    h.sp = random_bool(rng);
    h.an = random_bool(rng);
    h.sdi = random_bits<std::uint32_t>(rng, 24);
    h.ssi = h.sp ? random_bits<std::uint32_t>(rng, 32) : 0;
    h.epoch = random_bits<std::uint16_t>(rng, 16);
    h.counter = random_bits<std::uint64_t>(rng, 48);
    expect_round_trip(h, h.sp ? sizeof(TssHeaderSsi) : sizeof(TssHeader));
  }
}

// WIRE 0: reserved bits are ignored on receipt and sent as 0.
TEST(PdsHeaders, ReservedBitsAreIgnoredAndSentAsZero) {
  const std::string clean = "1188ffff0001000300110022";
  Bytes bytes = from_hex(clean);
  bytes[1] |= std::byte{0x63};
  RequestHeader h;
  ASSERT_TRUE(RequestHeader::decode(bytes, h));
  Bytes out(12);
  h.encode(out.data());
  EXPECT_EQ(to_hex(out), clean);
}

TEST(PdsHeaders, DecodeRefusesAnotherType) {
  const Bytes request = vector_bytes("rud_write_last");
  AckHeader ack;
  NackHeader nack;
  ControlHeader control;
  RudiHeader rudi;
  UudHeader uud;
  SecurityHeader security;
  EXPECT_FALSE(AckHeader::decode(request, ack));
  EXPECT_FALSE(NackHeader::decode(request, nack));
  EXPECT_FALSE(ControlHeader::decode(request, control));
  EXPECT_FALSE(RudiHeader::decode(request, rudi));
  EXPECT_FALSE(UudHeader::decode(request, uud));
  EXPECT_FALSE(SecurityHeader::decode(request, security));
  RequestHeader header;
  EXPECT_FALSE(RequestHeader::decode(vector_bytes("ack_deferred"), header));
}

// WIRE 6.1: which of the variants is ours where the sources differ.
TEST(PdsHeaders, Wire61_ChoicesOfNumbersAndLengths) {
  EXPECT_EQ(kUetUdpPort, 4793);
  EXPECT_EQ(kExperimentalProtocol, 253);
  EXPECT_EQ(pds_header_bytes(PdsType::AckCcx), 40U);
  EXPECT_EQ(pds_header_bytes(PdsType::NackCcx), 32U);
  EXPECT_EQ(pds_header_bytes(PdsType::RudiReq), 8U);
  EXPECT_EQ(pds_header_bytes(PdsType::RudiResp), 8U);
  EXPECT_EQ(pds_header_bytes(PdsType::UudReq), 4U);
  EXPECT_EQ(static_cast<int>(NackCode::TrimmedAck), 0x03);
  EXPECT_EQ(static_cast<int>(NackCode::RodOoo), 0x0D) << "0x0C is reserved";
  EXPECT_EQ(static_cast<int>(CpType::Negotiation), 9);
  EXPECT_EQ(kMprUnitPsns, 128U);
  EXPECT_EQ(kCcByteUnit, 256U);
  EXPECT_EQ(kReservedPool, 1) << "sent in the lowest bit";
  EXPECT_TRUE(wants_reserved_pool(1) && wants_reserved_pool(8)) << "understood in either";
}

TEST(PdsHeaders, Wire61_ChoicesOfFields) {
  EXPECT_EQ((RequestHeader{.clear_psn_offset = -1, .psn = Psn{336}}.clear_psn()), Psn{335});

  Bytes bytes(kMaxPdsHeaderBytes);
  ControlHeader noop;
  noop.syn = noop.isrod = true;
  noop.encode(bytes.data());
  EXPECT_NE(std::to_integer<int>(bytes[1]) & 0x20, 0) << "ISROD";
  AckHeader ack;
  ack.req = AckRequestCode::Clear;
  ack.encode(bytes.data());
  EXPECT_EQ(std::to_integer<int>(bytes[1]) & 0x40, 0) << "EPSN is said by secured PDCs alone";
  AckHeader received;
  bytes[1] |= std::byte{0x40};
  ASSERT_TRUE(AckHeader::decode(bytes, received));
  ack.expected = true;
  EXPECT_EQ(received, ack);

  AckHeader credit;
  credit.type = PdsType::AckCc;
  credit.cc_type = CcType::Credit;
  credit.credit = 0x010203;
  credit.ooo_count = 0x0A0B;
  credit.encode(bytes.data());
  EXPECT_EQ(to_hex(std::span(bytes).subspan(24, 8)), "0102030000000a0b");
}

}  // namespace
}  // namespace uet::wire
