// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Properties of the SES headers and the payload length rules of WIRE 3.8; the bytes themselves are
// checked by vectors_test.cc.
#include "uet/wire/ses.h"

#include <gtest/gtest.h>

#include "unit/wire/random_bytes.h"
#include "unit/wire/vectors.h"

namespace uet::wire {
namespace {

// `request` as bytes, followed by `left` bytes of payload.
Bytes packet_of(const SesRequest& request, std::size_t left) {
  Bytes bytes(kMaxSesHeaderBytes);
  bytes.resize(request.encode(bytes.data()));
  EXPECT_EQ(bytes.size(), request.encoded_bytes());
  bytes.resize(bytes.size() + left, std::byte{0x5A});
  return bytes;
}

// Payload bytes that decode finds with `left` bytes behind the header; -1 = refused.
int payload_found(const SesRequest& sent, std::size_t left) {
  const Bytes bytes = packet_of(sent, left);
  SesRequest received;
  if (!SesRequest::decode(sent.next_hdr, bytes, received)) return -1;
  EXPECT_EQ(received.header_bytes, bytes.size() - left);
  EXPECT_EQ(received.payload.data(), bytes.data() + received.header_bytes);
  return static_cast<int>(received.payload.size());
}

SesRequest standard(SesOpcode opcode, std::uint32_t request_length, bool som = true) {
  SesRequest r;
  r.opcode = opcode;
  r.request_length = request_length;
  r.som = som;
  return r;
}

SesRequest one_packet(NextHdr form, SesOpcode opcode, std::uint32_t request_length) {
  SesRequest r = standard(opcode, request_length);
  r.next_hdr = form;
  return r;
}

void fill_standard(SesRequest& r, Rng& rng) {
  r.message_id = MsgId{random_bits<std::uint16_t>(rng, 16)};
  r.som = random_bool(rng);
  r.eom = random_bool(rng);
  r.hd = random_bool(rng);
  r.buffer_offset = rng.next();
  r.initiator = InitiatorId{random_bits<std::uint32_t>(rng, 32)};
  r.match_bits = rng.next();
  r.request_length = random_bits<std::uint32_t>(rng, 32);
  if (r.som) {
    r.header_data = rng.next();
  } else {
    r.payload_length = random_bits<std::uint32_t>(rng, 6);
    r.message_offset = random_bits<std::uint32_t>(rng, 32);
  }
}

SesRequest random_request(NextHdr form, Rng& rng) {
  SesRequest r;
  r.next_hdr = form;
  r.opcode = random_bits<SesOpcode>(rng, 6);
  r.version = random_bits<std::uint8_t>(rng, 2);
  r.dc = random_bool(rng);
  r.ie = random_bool(rng);
  r.rel = random_bool(rng);
  r.ri_generation = RiGeneration{random_bits<std::uint8_t>(rng, 8)};
  r.job_id = JobId{random_bits<std::uint32_t>(rng, 24)};
  r.pid_on_fep = PidOnFep{random_bits<std::uint16_t>(rng, 12)};
  r.resource_index = ResourceIndex{random_bits<std::uint16_t>(rng, 12)};
  if (form == NextHdr::RequestStd) {
    fill_standard(r, rng);
  } else {
    r.request_length = random_bits<std::uint32_t>(rng, 6);
    r.hd = form == NextHdr::RequestMedium && random_bool(rng);
    (r.hd ? r.header_data : r.buffer_offset) = rng.next();
    if (form == NextHdr::RequestMedium) {
      r.initiator = InitiatorId{random_bits<std::uint32_t>(rng, 32)};
      r.match_bits = rng.next();
    }
  }
  if (has_atomic_extension(r.opcode)) {
    r.atomic.op = random_bits<AmoOp>(rng, 5);
    r.atomic.datatype = random_bits<AmoDatatype>(rng, 8);
    r.atomic.semantic_control = random_bits<std::uint8_t>(rng, 8);
    if (is_compare_swap(r.atomic.op)) {
      r.atomic.compare_value = {rng.next(), rng.next()};
      r.atomic.swap_value = {rng.next(), rng.next()};
    }
  }
  if (has_rendezvous_extension(r.opcode)) {
    r.rendezvous = {.eager_length = random_bits<std::uint32_t>(rng, 6),
                    .read_ri_generation = {random_bits<std::uint8_t>(rng, 8)},
                    .read_pid_on_fep = {random_bits<std::uint16_t>(rng, 12)},
                    .read_resource_index = {random_bits<std::uint16_t>(rng, 12)},
                    .read_offset = rng.next(),
                    .read_memory_key = {rng.next()}};
  }
  return r;
}

void expect_equal(const SesRequest& a, const SesRequest& b) {
  EXPECT_EQ(a.opcode, b.opcode);
  EXPECT_EQ(a.version, b.version);
  EXPECT_EQ(a.dc, b.dc);
  EXPECT_EQ(a.ie, b.ie);
  EXPECT_EQ(a.rel, b.rel);
  EXPECT_EQ(a.hd, b.hd);
  EXPECT_EQ(a.som, b.som);
  EXPECT_EQ(a.eom, b.eom);
  EXPECT_EQ(a.message_id, b.message_id);
  EXPECT_EQ(a.ri_generation, b.ri_generation);
  EXPECT_EQ(a.job_id, b.job_id);
  EXPECT_EQ(a.pid_on_fep, b.pid_on_fep);
  EXPECT_EQ(a.resource_index, b.resource_index);
  EXPECT_EQ(a.buffer_offset, b.buffer_offset);
  EXPECT_EQ(a.initiator, b.initiator);
  EXPECT_EQ(a.match_bits, b.match_bits);
  EXPECT_EQ(a.header_data, b.header_data);
  EXPECT_EQ(a.message_offset, b.message_offset);
  EXPECT_EQ(a.request_length, b.request_length);
  EXPECT_EQ(a.atomic, b.atomic);
  EXPECT_EQ(a.rendezvous, b.rendezvous);
}

TEST(SesRequest, RandomFieldsComeBackInEveryForm) {
  Rng rng(9);
  for (int i = 0; i < 3000; ++i) {
    for (NextHdr form : {NextHdr::RequestSmall, NextHdr::RequestMedium, NextHdr::RequestStd}) {
      const SesRequest sent = random_request(form, rng);
      const Bytes bytes = packet_of(sent, 64);
      SesRequest received;
      ASSERT_TRUE(SesRequest::decode(form, bytes, received));
      expect_equal(received, sent);
      const bool field_on_wire = form == NextHdr::RequestStd && !sent.som;
      EXPECT_EQ(received.payload_length,
                field_on_wire ? sent.payload_length : received.payload.size());
    }
  }
}

// The header that was set for whatever packet of the message.
TEST(LaterHeader, IsWhatEncodeWritesForALaterPacket) {
  Rng rng(19);
  for (int i = 0; i < 3000; ++i) {
    SesRequest request = random_request(NextHdr::RequestStd, rng);
    if (has_rendezvous_extension(request.opcode) || has_atomic_extension(request.opcode)) continue;
    LaterHeader later;
    later.set(request);
    for (const bool eom : {false, true}) {
      request.som = request.hd = false;
      request.eom = eom;
      request.payload_length = random_bits<std::uint32_t>(rng, 14);
      request.message_offset = random_bits<std::uint32_t>(rng, 32);
      Bytes bytes(sizeof(SesStandard));
      EXPECT_EQ(later.encode(bytes.data(), eom, request.payload_length, request.message_offset),
                sizeof(SesStandard));
      EXPECT_EQ(bytes, packet_of(request, 0));
    }
  }
}

TEST(SesRequest, HeaderOrExtensionCutShort_IsRefused) {
  Rng rng(10);
  for (int i = 0; i < 300; ++i) {
    for (NextHdr form : {NextHdr::RequestSmall, NextHdr::RequestMedium, NextHdr::RequestStd}) {
      const Bytes whole = packet_of(random_request(form, rng), 0);
      for (std::size_t length = 0; length < whole.size(); ++length) {
        const Bytes bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
        SesRequest received;
        ASSERT_FALSE(SesRequest::decode(form, bytes, received)) << length;
      }
    }
  }
}

TEST(SesRequest, NoRequestFormIsRefused) {
  const Bytes bytes(200);
  SesRequest request;
  for (NextHdr next_hdr : {NextHdr::None, NextHdr::Response, NextHdr::ResponseData,
                           NextHdr::ResponseDataSmall, static_cast<NextHdr>(7)}) {
    EXPECT_FALSE(SesRequest::decode(next_hdr, bytes, request));
  }
}

// SES-25: the first row of WIRE 3.8.
TEST(SesRequest, Wire38_FirstPacket_LesserOfMessageAndRest) {
  EXPECT_EQ(payload_found(standard(SesOpcode::Send, 100), 60), 60);
  EXPECT_EQ(payload_found(standard(SesOpcode::Send, 60), 60), 60);
  EXPECT_EQ(payload_found(standard(SesOpcode::Write, 60), 64), 60);
  EXPECT_EQ(payload_found(standard(SesOpcode::Send, 0), 0), 0);
}

TEST(SesRequest, Wire38_Rendezvous_FirstPacketWithinEager) {
  SesRequest r = standard(SesOpcode::RendezvousSend, 1U << 20);
  r.rendezvous.eager_length = 16;
  EXPECT_EQ(payload_found(r, 20), 16);
  EXPECT_EQ(payload_found(r, 10), 10);
  r.rendezvous.eager_length = 0;
  EXPECT_EQ(payload_found(r, 20), 0);
}

TEST(SesRequest, Wire38_LaterPacketHasItsPayloadLength) {
  SesRequest r = standard(SesOpcode::Send, 100, false);
  r.payload_length = 40;
  EXPECT_EQ(payload_found(r, 40), 40);
  EXPECT_EQ(payload_found(r, 44), 40);
  EXPECT_EQ(payload_found(r, 39), -1);
}

TEST(SesRequest, Wire38_MediumAndSmallHaveTheirRequestLength) {
  for (NextHdr form : {NextHdr::RequestMedium, NextHdr::RequestSmall}) {
    EXPECT_EQ(payload_found(one_packet(form, SesOpcode::Write, 8), 8), 8);
    EXPECT_EQ(payload_found(one_packet(form, SesOpcode::Write, 8), 12), 8);
    EXPECT_EQ(payload_found(one_packet(form, SesOpcode::Write, 8), 7), -1);
    EXPECT_EQ(payload_found(one_packet(form, SesOpcode::Read, 5000), 0), 0);
  }
}

TEST(SesRequest, Wire38_Read_NoPayloadButItsPiece) {
  EXPECT_EQ(payload_found(standard(SesOpcode::Read, 100), 50), 0);
  SesRequest piece = standard(SesOpcode::Read, 100000, false);
  piece.payload_length = 1024;
  piece.message_offset = 2048;
  EXPECT_EQ(payload_found(piece, 0), 0);
  SesRequest received;
  ASSERT_TRUE(SesRequest::decode(NextHdr::RequestStd, packet_of(piece, 0), received));
  EXPECT_EQ(received.payload_length, 1024U);
  EXPECT_EQ(received.message_offset, 2048U);
}

TEST(SesRequest, Wire38_CompareSwapHasNoPayload) {
  for (AmoOp op : {AmoOp::Cswap, AmoOp::CswapGt, AmoOp::Mswap}) {
    SesRequest r = standard(SesOpcode::FetchingAtomic, 32);
    r.atomic.op = op;
    EXPECT_EQ(r.encoded_bytes(), sizeof(SesStandard) + sizeof(SesCompareSwap));
    EXPECT_EQ(payload_found(r, 32), 0);
  }
  SesRequest sum = standard(SesOpcode::FetchingAtomic, 8);
  sum.atomic.op = AmoOp::Sum;
  EXPECT_EQ(sum.encoded_bytes(), sizeof(SesStandard) + sizeof(SesAtomic));
  EXPECT_EQ(payload_found(sum, 8), 8);
}

TEST(SesRequest, Wire38_MessageErrorHasNoPayload) {
  EXPECT_EQ(payload_found(standard(SesOpcode::MsgError, 56, false), 0), 0);
}

TEST(SesRequest, ReadyToRestartAndNoOpHaveNoPayload) {
  EXPECT_EQ(payload_found(standard(SesOpcode::DeferrableRtr, 16), 16), 0);
  EXPECT_EQ(payload_found(standard(SesOpcode::NoOp, 16), 16), 0);
}

// SES-4
TEST(SesRequest, Ses4_MediumOrSmallOfSeveralPacketsIsRefused) {
  for (NextHdr form : {NextHdr::RequestMedium, NextHdr::RequestSmall}) {
    SesRequest no_som = one_packet(form, SesOpcode::Write, 8);
    no_som.som = false;
    EXPECT_EQ(payload_found(no_som, 8), -1);
    SesRequest no_eom = one_packet(form, SesOpcode::Write, 8);
    no_eom.eom = false;
    EXPECT_EQ(payload_found(no_eom, 8), -1);
  }
}

// WIRE 3.4: the bit of HD is reserved in the small form.
TEST(SesRequest, Wire34_SmallNeverHasHeaderData) {
  SesRequest sent = one_packet(NextHdr::RequestSmall, SesOpcode::Write, 8);
  sent.hd = true;
  Bytes bytes = packet_of(sent, 8);
  EXPECT_EQ(std::to_integer<int>(bytes[1]) & 0x04, 0);
  bytes[1] |= std::byte{0x04};
  SesRequest received;
  ASSERT_TRUE(SesRequest::decode(NextHdr::RequestSmall, bytes, received));
  EXPECT_FALSE(received.hd);
}

// WIRE 3.6
TEST(SesRequest, Wire36_RestartTokensLieWhereTheOpcodePutsThem) {
  SesRequest send = standard(SesOpcode::DeferrableTsend, 16);
  send.match_bits = 77;
  send.set_restart_tokens(1, 2);
  EXPECT_EQ(send.buffer_offset, 0x0000000100000002U);
  EXPECT_EQ(send.match_bits, 77U);
  SesRequest restart = standard(SesOpcode::DeferrableRtr, 0);
  restart.buffer_offset = 88;
  restart.set_restart_tokens(3, 4);
  EXPECT_EQ(restart.match_bits, 0x0000000300000004U);
  EXPECT_EQ(restart.buffer_offset, 88U);
  EXPECT_EQ(restart.initiator_restart_token(), 3U);
  EXPECT_EQ(restart.target_restart_token(), 4U);
}

SesResponseHeader random_response(NextHdr form, Rng& rng) {
  SesResponseHeader r;
  r.next_hdr = form;
  r.list = random_bits<List>(rng, 2);
  r.opcode = random_bits<ResponseOpcode>(rng, 6);
  r.version = random_bits<std::uint8_t>(rng, 2);
  r.return_code = random_bits<ReturnCode>(rng, 6);
  r.job_id = JobId{random_bits<std::uint32_t>(rng, 24)};
  if (form == NextHdr::Response) {
    r.message_id = MsgId{random_bits<std::uint16_t>(rng, 16)};
    r.ri_generation = RiGeneration{random_bits<std::uint8_t>(rng, 8)};
  } else {
    r.payload_length = random_bits<std::uint32_t>(rng, 6);
  }
  if (form == NextHdr::ResponseData) {
    r.response_message_id = MsgId{random_bits<std::uint16_t>(rng, 16)};
    r.read_request_message_id = MsgId{random_bits<std::uint16_t>(rng, 16)};
    r.message_offset = random_bits<std::uint32_t>(rng, 32);
  }
  if (form == NextHdr::ResponseDataSmall) {
    r.original_request_psn = Psn{random_bits<std::uint32_t>(rng, 32)};
  } else {
    r.modified_length = random_bits<std::uint32_t>(rng, 32);
  }
  return r;
}

void expect_equal(const SesResponseHeader& a, const SesResponseHeader& b) {
  EXPECT_EQ(a.list, b.list);
  EXPECT_EQ(a.opcode, b.opcode);
  EXPECT_EQ(a.version, b.version);
  EXPECT_EQ(a.return_code, b.return_code);
  EXPECT_EQ(a.job_id, b.job_id);
  EXPECT_EQ(a.message_id, b.message_id);
  EXPECT_EQ(a.ri_generation, b.ri_generation);
  EXPECT_EQ(a.response_message_id, b.response_message_id);
  EXPECT_EQ(a.read_request_message_id, b.read_request_message_id);
  EXPECT_EQ(a.payload_length, b.payload_length);
  EXPECT_EQ(a.modified_length, b.modified_length);
  EXPECT_EQ(a.message_offset, b.message_offset);
  EXPECT_EQ(a.original_request_psn, b.original_request_psn);
}

TEST(SesResponseHeader, RandomFields_ComeBackShorterRefused) {
  Rng rng(11);
  for (int i = 0; i < 500; ++i) {
    for (NextHdr form : {NextHdr::Response, NextHdr::ResponseData, NextHdr::ResponseDataSmall}) {
      const SesResponseHeader sent = random_response(form, rng);
      Bytes bytes(kMaxSesHeaderBytes);
      const std::size_t header_bytes = sent.encode(bytes.data());
      ASSERT_EQ(header_bytes, ses_header_bytes(form));
      bytes.resize(header_bytes + sent.payload_length);
      SesResponseHeader received;
      ASSERT_TRUE(SesResponseHeader::decode(form, bytes, received));
      expect_equal(received, sent);
      EXPECT_EQ(received.header_bytes, header_bytes);
      EXPECT_EQ(received.payload.size(), sent.payload_length);
      for (std::size_t length = 0; length < bytes.size(); ++length) {
        const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
        ASSERT_FALSE(SesResponseHeader::decode(form, cut, received));
      }
    }
  }
}

TEST(SesResponseHeader, BytesBehindThePayloadAreIgnored) {
  Bytes bytes = from_hex("02010008000123450001000f30313233343536370badcafe");
  SesResponseHeader received;
  ASSERT_TRUE(SesResponseHeader::decode(NextHdr::ResponseDataSmall, bytes, received));
  EXPECT_EQ(to_hex(received.payload), "3031323334353637");
}

TEST(SesResponseHeader, NoResponseFormIsRefused) {
  const Bytes bytes(200);
  SesResponseHeader response;
  for (NextHdr next_hdr : {NextHdr::None, NextHdr::RequestSmall, NextHdr::RequestMedium,
                           NextHdr::RequestStd, static_cast<NextHdr>(7)}) {
    EXPECT_FALSE(SesResponseHeader::decode(next_hdr, bytes, response));
  }
}

// WIRE 6.1: which of the variants is ours where the sources differ.
TEST(SesRequest, Wire61_ChoicesOfLengthsAndPlaces) {
  SesRequest later = standard(SesOpcode::Write, 0x10000000, false);
  later.payload_length = 0x3FFF;
  later.message_offset = 0x01020304;
  ASSERT_EQ(later.encoded_bytes(), 44U) << "as long as the first one";
  Bytes bytes(44);
  later.encode(bytes.data());
  EXPECT_EQ(to_hex(std::span(bytes).subspan(32, 8)), "00003fff01020304") << "length, then offset";

  EXPECT_EQ(standard(SesOpcode::RendezvousSend, 0).encoded_bytes(), 44U + 24U);
  SesRequest swap = standard(SesOpcode::FetchingAtomic, 0);
  swap.atomic.op = AmoOp::Mswap;
  EXPECT_EQ(swap.encoded_bytes(), 44U + 36U) << "the compare field holds the mask";

  SesRequest rendezvous = standard(SesOpcode::RendezvousSend, 0);
  rendezvous.rendezvous.read_ri_generation = RiGeneration{0x11};
  rendezvous.rendezvous.read_pid_on_fep = PidOnFep{0x222};
  rendezvous.rendezvous.read_resource_index = ResourceIndex{0x333};
  bytes.resize(rendezvous.encoded_bytes());
  rendezvous.encode(bytes.data());
  EXPECT_EQ(to_hex(std::span(bytes).subspan(44 + 4, 4)), "11222333") << "8, 12 and 12 bits";
}

}  // namespace
}  // namespace uet::wire
