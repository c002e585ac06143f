// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A Fep and a peer of another implementation: the exchanges of the consortium's reference provider
// that docs/spec describes, packet by packet, the peer as initiator and as target.
#include "sim/foreign_peer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace uet::sim {
namespace {

using std::chrono::milliseconds;
using wire::AckRequestCode;
using wire::CpType;
using wire::NackCode;
using wire::NextHdr;
using wire::PdsType;
using wire::ResponseOpcode;
using wire::ReturnCode;
using wire::SesOpcode;

constexpr auto kMtu = ForeignPeer::kMtu;
constexpr auto kStart = ForeignPeer::kStart;

// ---- the peer as initiator ---------------------------------------------------------------------

// WIRE 1.1, PDS-50, PDS-59, PDS-94: three packets with SYN before the first answer.
TEST(ForeignInitiator, FirstMessage_AckedPerPacketAndPlaced) {
  ForeignPeer peer;
  const auto data = pattern(2 * kMtu + 100);
  auto write = peer.to_context(SesOpcode::Write, 1);
  write.match_bits = peer.key.value;
  write.buffer_offset = 512;
  PdcId id{};
  for (const std::uint32_t i : {0U, 1U, 2U}) {
    peer.say(peer.request(i), packet_of(write, data.size(), i), piece(data, i));
    const Psn psn = kStart + static_cast<std::int32_t>(i);
    const auto ack = expect_ack(peer, peer.hear(), psn, psn);
    EXPECT_EQ(ack.req, AckRequestCode::None);
    EXPECT_TRUE(i == 0 || ack.spdcid == id);
    id = ack.spdcid;
  }
  EXPECT_TRUE(std::equal(data.begin(), data.end(), peer.memory.begin() + 512));
  peer.wait(milliseconds(100));
  EXPECT_TRUE(peer.silent());
  EXPECT_EQ(peer.fep().stats().pds.pdcs_accepted, 1U);
}

// PDS-60: then with the PDC id instead of SYN. PDS-97: the first two are not acknowledged yet.
TEST(ForeignInitiator, LaterPacketsAreCoalescedUntilTheOneWithAr) {
  ForeignPeer peer;
  first_write(peer, 10);
  const auto data = pattern(2 * kMtu + 1, 3);
  auto write = peer.to_context(SesOpcode::Write, 2);
  write.match_bits = peer.key.value;
  for (const std::uint32_t i : {0U, 1U, 2U}) {
    auto header = peer.request(1 + i);
    header.clear_psn_offset = static_cast<std::int16_t>(-1 - static_cast<int>(i));
    header.ar = i == 2;
    peer.say(header, packet_of(write, data.size(), i), piece(data, i));
    EXPECT_EQ(peer.silent(), i < 2);
  }
  expect_ack(peer, peer.hear(), kStart + 3, kStart + 3);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), peer.memory.begin()));
}

// Adds `value` to the 64-bit word at `offset` by the second request of the peer's PDC.
Answer add(ForeignPeer& peer, SesOpcode opcode, std::uint64_t offset, std::uint8_t value,
           bool again) {
  auto atomic = peer.to_context(opcode, 2);
  atomic.match_bits = peer.key.value;
  atomic.buffer_offset = offset;
  atomic.request_length = 8;
  atomic.atomic = {.op = wire::AmoOp::Sum, .datatype = wire::AmoDatatype::Uint64};
  std::vector<std::byte> operand(8);
  operand[7] = std::byte{value};  // big-endian, as the reference sends it (SES-96)
  auto header = peer.request(1);
  header.clear_psn_offset = -1;
  header.ar = true;
  header.retx = again;
  peer.say(header, atomic, operand);
  return peer.hear();
}

// The constant time-out of the reference sends what was only acknowledged slowly again.
// PDS-96, PDS-106, PDS-204: the same ACK with RETX; nothing is written twice. SES-96: big-endian.
TEST(ForeignInitiator, RetransmissionIsAcknowledgedAgain) {
  ForeignPeer peer;
  first_write(peer, 10);
  for (const bool again : {false, true}) {
    const Answer answer = add(peer, SesOpcode::Atomic, 1024, 5, again);
    const auto ack = expect_ack(peer, answer, kStart + 1, kStart + 1);
    EXPECT_EQ(ack.retx, again);
    EXPECT_TRUE(peer.silent());
  }
  std::uint64_t value = 0;
  std::memcpy(&value, peer.memory.data() + 1024, sizeof value);
  EXPECT_EQ(value, 5U);
}

// PDS-105, PDS-112, PDS-116: the reference clears at once by a Clear Command (PDS-115).
TEST(ForeignInitiator, FetchedValueIsGuaranteedUntilItsClear) {
  ForeignPeer peer;
  first_write(peer, 10);
  for (const bool again : {false, true}) {
    const Answer answer = add(peer, SesOpcode::FetchingAtomic, 2048, 9, again);
    const auto ack = expect_ack(peer, answer, kStart + 1, kStart);
    EXPECT_EQ(ack.req, AckRequestCode::Clear);
    const auto response = answer.ses_response();
    ASSERT_TRUE(response.has_value());
    EXPECT_EQ(response->opcode, ResponseOpcode::ResponseWData);
    EXPECT_EQ(response->return_code, ReturnCode::Ok);
    const std::vector<std::byte> value(response->payload.begin(), response->payload.end());
    EXPECT_EQ(value, std::vector<std::byte>(8)) << "the value before the only execution";
  }
  wire::ControlHeader clear;
  clear.ctl_type = CpType::Clear;
  clear.spdcid = ForeignPeer::kPdc;
  clear.dpdcid = peer.tpdcid;
  clear.payload = (kStart + 1).value;
  peer.say(clear);
  EXPECT_TRUE(peer.silent()) << "a Clear Command is not acknowledged";
  auto write = peer.to_context(SesOpcode::Write, 3);
  write.match_bits = peer.key.value;
  auto header = peer.request(2);
  header.clear_psn_offset = -1;
  header.ar = true;
  peer.say(header, write);
  expect_ack(peer, peer.hear(), kStart + 2, kStart + 2);
}

// SES-81, SES-82, PDS-195 to PDS-197, PDS-200: two request packets, two data packets in the return
// direction of the same PDC, whose PSNs begin at the same Start_PSN (PDS-32).
TEST(ForeignInitiator, ReadIsAnsweredInTheReturnDirection) {
  ForeignPeer peer;
  first_write(peer, 2 * kMtu);
  auto read = peer.to_context(SesOpcode::Read, 2);
  read.match_bits = peer.key.value;
  for (const std::uint32_t i : {0U, 1U}) {
    auto header = peer.request(2 + i);
    header.clear_psn_offset = static_cast<std::int16_t>(-1 - static_cast<int>(i));
    header.ar = true;
    peer.say(header, packet_of(read, 2 * kMtu, i));
  }
  std::vector<std::byte> data(2 * kMtu);
  std::uint32_t acks = 0;
  std::vector<Psn> returned;
  while (!peer.silent()) {
    const Answer answer = peer.hear();
    if (const auto ack = answer.ack()) {
      EXPECT_EQ(ack->req, AckRequestCode::None);
      EXPECT_EQ(ack->cack_psn, ack->ack_psn());
      ++acks;
      continue;
    }
    const auto request = answer.request();
    ASSERT_TRUE(request.has_value());
    EXPECT_EQ(request->type, PdsType::RudReq);
    EXPECT_EQ(request->next_hdr, NextHdr::ResponseData);
    EXPECT_FALSE(request->syn);
    EXPECT_EQ(request->spdcid, peer.tpdcid);
    EXPECT_EQ(request->dpdcid, ForeignPeer::kPdc);
    EXPECT_EQ(request->clear_psn(), kStart - 1);
    const auto response = answer.ses_response();
    ASSERT_TRUE(response.has_value());
    EXPECT_EQ(response->read_request_message_id, MsgId{2});
    EXPECT_EQ(response->modified_length, 2 * kMtu);
    ASSERT_LE(response->message_offset + response->payload.size(), data.size());
    std::ranges::copy(response->payload, data.begin() + response->message_offset);
    returned.push_back(request->psn);
  }
  EXPECT_EQ(acks, 2U);
  EXPECT_EQ(returned, (std::vector{kStart, kStart + 1}));
  EXPECT_EQ(data, pattern(2 * kMtu));
  peer.say(peer.ack_of(kStart + 1, peer.tpdcid));
  peer.wait(milliseconds(200));
  EXPECT_TRUE(peer.silent()) << "what the peer has acknowledged is not sent again";
}

// SES-1, SES-104: the reference's SYNC_WRITE. WIRE 3.12: refused by a positive ACK of PDS.
TEST(ForeignInitiator, PrivateOpcodeIsRefusedBySesAndThePdcLives) {
  ForeignPeer peer;
  first_write(peer, 10);
  const auto sync = peer.to_context(static_cast<SesOpcode>(0x10), 2);
  auto header = peer.request(1);
  header.clear_psn_offset = -1;
  header.ar = true;
  peer.say(header, sync);
  const Answer answer = peer.hear();
  EXPECT_EQ(expect_ack(peer, answer, kStart + 1, kStart).req, AckRequestCode::Clear);
  const auto response = answer.ses_response();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->opcode, ResponseOpcode::Response);
  EXPECT_EQ(response->return_code, ReturnCode::UnsupportedOp);
}

// SES-75: of 8,192 bytes or more the reference sends deferrable; with a receive posted that
// is an ordinary send.
TEST(ForeignInitiator, DeferrableSendIsReceived) {
  ForeignPeer peer;
  const auto data = pattern(9 * kMtu);
  std::vector<std::byte> room(9 * kMtu);
  const ses::IoSlice slice{room.data(), room.size()};
  ses::ReceiveOp receive;
  receive.local = {&slice, 1};
  ASSERT_TRUE(peer.fep().ses().receive(peer.context(), receive, peer.now()).ok());
  auto send = peer.to_context(SesOpcode::DeferrableSend, 1);
  send.set_restart_tokens(77, 0);
  for (std::uint32_t i = 0; i < 9; ++i) {
    peer.say(peer.request(i), packet_of(send, data.size(), i), piece(data, i));
    const Psn psn = kStart + static_cast<std::int32_t>(i);
    expect_ack(peer, peer.hear(), psn, psn);
  }
  ASSERT_EQ(peer.sink.completions.size(), 1U);
  EXPECT_EQ(peer.sink.completions[0].status, ses::Status::Ok);
  EXPECT_EQ(peer.sink.completions[0].source_initiator, ForeignPeer::kInitiator);
  EXPECT_EQ(room, data);
}

// WIRE 3.8: the reference ends its packets with a CRC trailer; of a message of one packet it is not
// taken for payload.
TEST(ForeignInitiator, TrailerBehindAMessageOfOnePacketIsIgnored) {
  ForeignPeer peer;
  auto write = peer.to_context(SesOpcode::Write, 1);
  write.match_bits = peer.key.value;
  write.request_length = 8;
  auto bytes = pattern(8);
  bytes.insert(bytes.end(), 4, std::byte{0xEE});
  peer.say(peer.request(0), write, bytes);
  expect_ack(peer, peer.hear(), kStart, kStart);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + 8, peer.memory.begin()));
  EXPECT_EQ(peer.memory[8], std::byte{0});
}

// PDS-57, PDS-104, PDS-158: opened by a NOOP that says ROD; requests follow in order.
TEST(ForeignInitiator, NoopOpensARodPdc) {
  ForeignPeer peer(DeliveryMode::Rod);
  wire::ControlHeader noop;
  noop.ctl_type = CpType::Noop;
  noop.isrod = noop.ar = noop.syn = true;
  noop.psn = kStart;
  noop.spdcid = ForeignPeer::kPdc;
  peer.say(noop);
  const Answer answer = peer.hear();
  const auto ack = expect_ack(peer, answer, kStart, kStart);
  EXPECT_EQ(ack.next_hdr, NextHdr::None);
  peer.tpdcid = ack.spdcid;
  auto write = peer.to_context(SesOpcode::Write, 1);
  write.match_bits = peer.key.value;
  for (const std::uint32_t i : {2U, 1U}) {
    auto header = peer.request(i);
    header.type = PdsType::RodReq;
    header.clear_psn_offset = static_cast<std::int16_t>(-static_cast<int>(i));
    header.ar = true;
    peer.say(header, write);
  }
  // The early one is kept, which SACK tells, and the gap is told by ROD_OOO (PDS-163 to 165).
  const auto early = expect_ack(peer, peer.hear(), kStart, kStart);
  EXPECT_EQ(early.sack_base(), kStart + 1);
  EXPECT_EQ(early.sack_bitmap, 0b10U);
  const auto nack = peer.hear().nack();
  ASSERT_TRUE(nack.has_value());
  EXPECT_EQ(nack->nack_code, NackCode::RodOoo);
  Psn cack = kStart;
  while (!peer.silent()) cack = peer.hear().ack().value().cack_psn;
  EXPECT_EQ(cack, kStart + 2);
  auto rud = peer.request(3);
  peer.say(rud, write);  // PDS-5: RUD on a ROD PDC
  EXPECT_EQ(peer.hear().nack().value().nack_code, NackCode::PdcModeMismatch);
}

// PDS-169, PDS-104, PDS-175: the closing ACK got lost and the Close Command comes again; then a
// late copy of the first packet, which must not be executed again.
TEST(ForeignInitiator, Close_AckedTwice_LateSynOpensNothing) {
  ForeignPeer peer;
  first_write(peer, 10);
  wire::ControlHeader close;
  close.ctl_type = CpType::Close;
  close.ar = true;
  close.psn = kStart + 1;
  close.spdcid = ForeignPeer::kPdc;
  close.dpdcid = peer.tpdcid;
  for (const bool again : {false, true}) {
    close.retx = again;
    peer.say(close);
    const Answer answer = peer.hear();
    EXPECT_EQ(answer.ack().value().next_hdr, NextHdr::None);
    EXPECT_EQ(answer.ack().value().cack_psn, kStart + 1);
    EXPECT_EQ(answer.ack().value().ack_psn(), kStart + 1);
  }
  std::ranges::fill(peer.memory, std::byte{0});
  peer.tpdcid = {};
  auto write = peer.to_context(SesOpcode::Write, 1);
  write.match_bits = peer.key.value;
  write.request_length = 10;
  peer.say(peer.request(0), write, pattern(10));
  EXPECT_TRUE(std::ranges::all_of(peer.memory, [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_EQ(peer.fep().stats().pds.pdcs_accepted, 1U);
}

// PDS-172, PDS-173: we ask for the end of a silent PDC; the reference acknowledges the request
// before it closes.
TEST(ForeignInitiator, CloseRequestIsMetByAnAckAndAClose) {
  ForeignPeer peer;
  first_write(peer, 10);
  wire::ControlHeader clear;  // the first packet to our PDC id: it is no invented address
  clear.ctl_type = CpType::Clear;
  clear.payload = kStart.value;
  clear.spdcid = ForeignPeer::kPdc;
  clear.dpdcid = peer.tpdcid;
  peer.say(clear);
  peer.wait(std::chrono::seconds(61));
  const auto asked = peer.hear().control();
  ASSERT_TRUE(asked.has_value());
  EXPECT_EQ(asked->ctl_type, CpType::CloseRequest);
  EXPECT_TRUE(asked->ar);
  EXPECT_EQ(asked->psn, kStart) << "the first PSN of the return direction";
  while (!peer.silent()) peer.hear();  // repeated in the meantime
  auto ack = peer.ack_of(kStart, peer.tpdcid);
  ack.next_hdr = NextHdr::None;
  peer.say(ack);
  wire::ControlHeader close;
  close.ctl_type = CpType::Close;
  close.ar = true;
  close.psn = kStart + 1;
  close.spdcid = ForeignPeer::kPdc;
  close.dpdcid = peer.tpdcid;
  peer.say(close);
  EXPECT_EQ(peer.hear().ack().value().cack_psn, kStart + 1);
  EXPECT_TRUE(peer.fep().closed());
}

// ---- the peer as target ------------------------------------------------------------------------

// PDS-49 to PDS-51, PDS-101: SYN until the first ACK tells the id, then the id.
TEST_F(ForeignTarget, FirstAckTeachesThePdcId) {
  send(message);
  std::vector<wire::RequestHeader> sent;
  for (std::uint16_t i = 0; i < 3; ++i) {
    const Answer answer = peer.hear();
    EXPECT_EQ(answer.to, peer.as_peer().fep);
    EXPECT_EQ(answer.ecn, Ecn::Ect0);
    EXPECT_EQ(answer.dscp, 0);
    const auto request = answer.request().value();
    EXPECT_TRUE(request.syn);
    EXPECT_EQ(request.psn_offset, i);
    EXPECT_EQ(request.ar, i == 2);
    EXPECT_EQ(request.start_psn(), Psn{0x0200'0000});
    EXPECT_EQ(request.clear_psn(), request.start_psn() - 1);
    const auto ses = answer.ses_request().value();
    EXPECT_EQ(ses.resource_index, ForeignPeer::kIndex);
    EXPECT_EQ(ses.job_id, ForeignPeer::kJob);
    sent.push_back(request);
  }
  peer.say(ack(sent[1]));  // the second one answers for both
  peer.say(ack(sent[2]));
  ASSERT_EQ(peer.sink.completions.size(), 1U);
  EXPECT_EQ(peer.sink.completions[0].status, ses::Status::Ok);
  send(first);
  const auto next = peer.hear().request().value();
  EXPECT_FALSE(next.syn);
  EXPECT_EQ(next.dpdcid, kTheirs);
  EXPECT_EQ(next.psn, sent[2].psn + 1);
  EXPECT_EQ(next.clear_psn(), sent[2].psn);
}

// PDS-43: the reference means "no limit" by mpr 0; the limit that we know stays.
TEST_F(ForeignTarget, MprZeroKeepsTheWindow) {
  send(first);
  auto answer = ack(peer.hear().request().value());
  answer.mpr = 0;
  peer.say(answer);
  const auto longer = pattern(500 * kMtu);
  send(longer);
  peer.wait(milliseconds(5));
  std::size_t packets = 0;
  for (; !peer.silent(); ++packets) peer.hear();
  EXPECT_EQ(packets, 500U) << "within Default_MPR";
}

// PDS-39, PDS-40: mpr 1 of its first ACK allows 128 PSNs beyond CACK.
TEST_F(ForeignTarget, MprOneStopsAt128) {
  establish();
  const auto longer = pattern(200 * kMtu);
  send(longer);
  peer.wait(milliseconds(5));
  std::size_t packets = 0;
  wire::RequestHeader last;
  for (; !peer.silent(); ++packets) last = peer.hear().request().value();
  EXPECT_EQ(packets, 128U);
  peer.say(ack(last));
  peer.wait(milliseconds(5));
  for (; !peer.silent(); ++packets) peer.hear();
  EXPECT_EQ(packets, 200U);
}

// PDS-66, PDS-122: no PDC there (SPDCID 0); we come again with SYN and RETX.
TEST_F(ForeignTarget, NoPdcAvailableIsTriedAgain) {
  send(first);
  const auto request = peer.hear().request().value();
  peer.say(nack(request, NackCode::NoPdcAvail, PdcId{0}));
  peer.wait(milliseconds(5));
  const auto again = peer.hear().request().value();
  EXPECT_TRUE(again.syn);
  EXPECT_TRUE(again.retx);
  EXPECT_TRUE(again.ar);
  EXPECT_EQ(again.psn, request.psn);
  peer.say(ack(again));
  EXPECT_EQ(peer.sink.completions.size(), 1U);
}

// PDS-9, PDS-237: the peer has one PDC for us. A short message that was to go past a long one on
// another PDC follows it, once.
TEST_F(ForeignTarget, Pds237_APeerWithOnePdcGetsAllOnIt) {
  const auto only = establish();
  const auto longer = pattern(200 * kMtu);
  send(longer);
  peer.wait(milliseconds(5));
  wire::RequestHeader last;
  for (int i = 0; i < 128; ++i) last = peer.hear().request().value();
  const auto data = pattern(100, 5);
  send(data);
  const auto beside = peer.hear().request().value();
  EXPECT_TRUE(beside.syn);
  EXPECT_NE(beside.spdcid, only.spdcid);
  peer.say(nack(beside, NackCode::NoPdcAvail, PdcId{0}));
  EXPECT_EQ(peer.fep().stats().pds.additional_pdcs_refused, 1U);
  peer.wait(milliseconds(5));
  EXPECT_TRUE(peer.silent()) << "no PDC is asked for again";
  peer.say(ack(last));
  peer.wait(milliseconds(5));
  std::size_t packets = 0, copies = 0;
  for (; !peer.silent(); ++packets) {
    const Answer answer = peer.hear();
    last = answer.request().value();
    EXPECT_EQ(last.spdcid, only.spdcid);
    copies += std::ranges::equal(answer.ses_request()->payload, data) ? 1 : 0;
  }
  EXPECT_EQ(packets, 73U);
  EXPECT_EQ(copies, 1U);
  const std::size_t before = peer.sink.completions.size();
  peer.say(ack(last));
  ASSERT_EQ(peer.sink.completions.size(), before + 2);
  for (const auto& done : peer.sink.completions) EXPECT_EQ(done.status, ses::Status::Ok);
  send(data);
  EXPECT_EQ(peer.hear().request()->spdcid, only.spdcid);
}

// PDS-142: the peer was restarted and knows nothing of the PDC. The packets that it refuses go to a
// new PDC, unchanged except for their identifiers; no packet names the old PDC again.
TEST_F(ForeignTarget, Pds142_RestartedPeerIsMetWithANewPdc) {
  const auto old = establish();
  const auto data = pattern(100, 5);
  send(data);
  const Answer sent = peer.hear();
  const auto refused = sent.request().value();
  EXPECT_FALSE(refused.syn);
  peer.say(nack(refused, NackCode::InvDpdcid, PdcId{0}));
  const Answer again = peer.hear();
  const auto request = again.request().value();
  EXPECT_TRUE(request.syn);
  EXPECT_FALSE(request.retx);
  EXPECT_NE(request.spdcid, old.spdcid);
  EXPECT_EQ(request.psn_offset, 0);
  EXPECT_GT(std::abs(request.psn - refused.psn), 1 << 16);  // PDS-53
  EXPECT_TRUE(std::ranges::equal(again.ses_request()->payload, data));
  EXPECT_NE(again.ses_request()->message_id, sent.ses_request()->message_id);
  const std::size_t before = peer.sink.completions.size();
  const auto plain = response(ResponseOpcode::DefaultResponse, ReturnCode::Ok);
  peer.say(ack(request), &plain);
  ASSERT_EQ(peer.sink.completions.size(), before + 1);
  EXPECT_EQ(peer.sink.completions.back().status, ses::Status::Ok);
  EXPECT_TRUE(peer.silent());
}

// PDS-55, PDS-54: a NACK TRIMMED of a PDC that exists holds its id. PDS-146: the payload that
// another implementation puts into it changes nothing.
TEST_F(ForeignTarget, TrimmedTellsThePdcIdAndIsSentAgainWithoutSyn) {
  send(first);
  const auto request = peer.hear().request().value();
  auto refusal = nack(request, NackCode::Trimmed, kTheirs);
  refusal.payload = request.psn.value + 77;
  peer.say(refusal);
  peer.wait(milliseconds(5));
  const auto again = peer.hear().request().value();
  EXPECT_FALSE(again.syn);
  EXPECT_EQ(again.dpdcid, kTheirs);
  EXPECT_TRUE(again.retx);
  EXPECT_EQ(again.psn, request.psn);
  peer.say(ack(again));
  EXPECT_EQ(peer.sink.completions.size(), 1U);
}

// SES-115 step 3: the reference answers every bad address with UNDELIVERABLE, guaranteed: the send
// fails once, and the response is cleared.
TEST_F(ForeignTarget, UndeliverableFailsTheSendAndIsCleared) {
  establish();
  send(first);
  const auto request = peer.hear().request().value();
  auto answer = ack(request);
  answer.cack_psn = request.psn - 1;
  answer.ack_psn_offset = 1;
  answer.sack_psn_offset = 1;
  answer.req = AckRequestCode::Clear;
  answer.next_hdr = NextHdr::Response;
  const auto said = response(ResponseOpcode::Response, ReturnCode::Undeliverable);
  peer.say(answer, &said);
  ASSERT_EQ(peer.sink.completions.size(), 1U);
  EXPECT_EQ(peer.sink.completions[0].status, ses::Status::ReturnCode);
  EXPECT_EQ(peer.sink.completions[0].return_code, ReturnCode::Undeliverable);
  peer.wait(milliseconds(5));
  const auto clear = peer.hear().control();
  ASSERT_TRUE(clear.has_value());
  EXPECT_EQ(clear->ctl_type, CpType::Clear);
  EXPECT_EQ(clear->psn, Psn{0});
  EXPECT_FALSE(clear->ar);
  EXPECT_EQ(clear->payload, request.psn.value);
  EXPECT_TRUE(peer.silent());
}

// PDS-105, PDS-169: REQ_CLOSE in an ACK; we close in order.
TEST_F(ForeignTarget, RequestToCloseIsFollowed) {
  send(first);
  const auto request = peer.hear().request().value();
  auto answer = ack(request);
  answer.req = AckRequestCode::Close;
  peer.say(answer);
  peer.wait(milliseconds(5));
  const auto close = peer.hear().control();
  ASSERT_TRUE(close.has_value());
  EXPECT_EQ(close->ctl_type, CpType::Close);
  EXPECT_TRUE(close->ar);
  EXPECT_FALSE(close->syn);
  EXPECT_EQ(close->psn, request.psn + 1);
  EXPECT_EQ(close->dpdcid, kTheirs);
  auto last = ack(request);
  last.cack_psn = close->psn;
  peer.say(last);
  EXPECT_TRUE(peer.fep().closed());
  EXPECT_TRUE(peer.silent());
}

// PDS-172: the reference asks by a Close Request in its own PSN space: an ACK first, then the
// Close.
TEST_F(ForeignTarget, CloseRequestIsAcknowledgedFirst) {
  const auto request = establish();
  wire::ControlHeader asked;
  asked.ctl_type = CpType::CloseRequest;
  asked.ar = true;
  asked.psn = Psn{0x0200'0000};
  asked.spdcid = kTheirs;
  asked.dpdcid = request.spdcid;
  peer.say(asked);
  const auto answer = peer.hear().ack();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->ack_psn(), asked.psn);
  EXPECT_EQ(answer->next_hdr, NextHdr::None);
  EXPECT_EQ(answer->req, AckRequestCode::None);
  peer.wait(milliseconds(5));
  EXPECT_EQ(peer.hear().control().value().ctl_type, CpType::Close);
}

// PDS-198, PDS-199, SES-85: read data in the return direction come before the ACK of the request.
TEST_F(ForeignTarget, ReadDataMayComeBeforeTheAck) {
  establish();
  std::vector<std::byte> room(100);
  const auto [read, data_packet] = ask_for(room);
  peer.say(data_packet);
  const auto answer = peer.hear().ack();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->next_hdr, NextHdr::Response);
  EXPECT_EQ(answer->req, AckRequestCode::None);  // PDS-197
  EXPECT_EQ(answer->cack_psn, Psn{0x0200'0000});
  peer.say(ack(read));
  ASSERT_EQ(peer.sink.completions.size(), 1U);
  EXPECT_EQ(peer.sink.completions[0].kind, ses::Kind::Read);
  EXPECT_EQ(room, pattern(100, 7));
}

// PDS-214: a PDC answers what it has received before it sends anything new.
TEST_F(ForeignTarget, AnswersLeaveBeforeNewRequests) {
  establish();
  std::vector<std::byte> room(100);
  const auto [read, data_packet] = ask_for(room);
  post(message);
  EXPECT_TRUE(peer.silent());
  peer.say(data_packet);
  EXPECT_TRUE(peer.hear().ack().has_value());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(peer.hear().request().has_value());
  EXPECT_TRUE(peer.silent());
}

// SES-56, SES-57, PDS-10: of 8,192 bytes or more HPC peers send a rendezvous; the rest is read on a
// PDC that we open.
TEST_F(ForeignTarget, RendezvousRemainderIsReadOnANewPdc) {
  const auto data = pattern(12 * kMtu);
  std::vector<std::byte> room(data.size());
  const ses::IoSlice slice{room.data(), room.size()};
  ses::ReceiveOp receive;
  receive.local = {&slice, 1};
  ASSERT_TRUE(peer.fep().ses().receive(peer.context(), receive, peer.now()).ok());
  auto send = peer.to_context(SesOpcode::RendezvousSend, 1);
  send.rendezvous = {.eager_length = 8 * kMtu,
                     .read_ri_generation = {},
                     .read_pid_on_fep = ForeignPeer::kPid,
                     .read_resource_index = ForeignPeer::kIndex,
                     .read_offset = 0,
                     .read_memory_key = Rkey{0x77}};
  for (std::uint32_t i = 0; i < 8; ++i) {
    auto request = packet_of(send, data.size(), i);
    request.eom = i == 7;  // the last of the eager part (SES-59)
    peer.say(peer.request(i), request, piece(data, i));
  }
  std::vector<std::pair<wire::RequestHeader, wire::SesRequest>> reads;
  while (!peer.silent()) {
    const Answer answer = peer.hear();
    if (const auto eager = answer.ack()) {
      peer.tpdcid = eager->spdcid;
      continue;
    }
    if (const auto control = answer.control()) {  // nothing is read before the address is proved
      EXPECT_EQ(control->ctl_type, wire::CpType::AckRequest);
      EXPECT_TRUE(reads.empty());
      wire::AckHeader proof;
      proof.type = PdsType::Ack;
      proof.cack_psn = control->psn;
      proof.spdcid = control->dpdcid;
      proof.dpdcid = control->spdcid;
      peer.say(proof);
      continue;
    }
    ASSERT_TRUE(answer.request().has_value());
    EXPECT_TRUE(answer.request()->syn);
    EXPECT_NE(peer.tpdcid.value, 0);
    EXPECT_NE(answer.request()->spdcid, peer.tpdcid);
    reads.emplace_back(*answer.request(), answer.ses_request().value());
  }
  ASSERT_FALSE(reads.empty());
  std::uint32_t at = 0;
  Psn psn = reads.front().first.start_psn();
  while (at < reads.size() && peer.sink.completions.empty()) {
    const auto [pds, read] = reads[at++];
    EXPECT_EQ(read.opcode, SesOpcode::Read);
    EXPECT_EQ(read.match_bits, 0x77U);
    const std::size_t offset = read.buffer_offset + read.message_offset;
    const std::size_t length =
        std::min<std::size_t>(kMtu, read.request_length - read.message_offset);
    ASSERT_LE(offset + length, data.size());
    peer.say(ack(pds));
    wire::SesResponseHeader ses = response(ResponseOpcode::ResponseWData, ReturnCode::Ok);
    ses.next_hdr = NextHdr::ResponseData;
    ses.read_request_message_id = read.message_id;
    ses.message_offset = read.message_offset;
    ses.payload_length = static_cast<std::uint32_t>(length);
    ses.modified_length = read.request_length;
    wire::RequestHeader back;
    back.next_hdr = NextHdr::ResponseData;
    back.psn = psn;
    back.clear_psn_offset = -1;
    back.spdcid = kTheirs;
    back.dpdcid = pds.spdcid;
    back.ar = true;
    ++psn;
    std::vector<std::byte> bytes(100);
    std::size_t header = back.encode(bytes.data());
    header += ses.encode(bytes.data() + header);
    bytes.resize(header);
    bytes.insert(bytes.end(), data.begin() + static_cast<std::ptrdiff_t>(offset),
                 data.begin() + static_cast<std::ptrdiff_t>(offset + length));
    peer.say(bytes);
    while (!peer.silent()) {
      const Answer answer = peer.hear();
      if (answer.request() && answer.ses_request()) {
        reads.emplace_back(*answer.request(), *answer.ses_request());
      }
    }
  }
  ASSERT_EQ(peer.sink.completions.size(), 1U);
  EXPECT_EQ(peer.sink.completions[0].status, ses::Status::Ok);
  EXPECT_EQ(room, data);
}

}  // namespace
}  // namespace uet::sim
