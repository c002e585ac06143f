// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Answers of a Fep that a peer of another implementation needs, and requests of such a peer that a
// Fep must take, packet by packet.
#include <algorithm>
#include <set>

#include "ses/initiator.h"
#include "sim/foreign_peer.h"

namespace uet::sim {
namespace {

using std::chrono::milliseconds;
using wire::AckRequestCode;
using wire::CpType;
using wire::NextHdr;
using wire::PdsType;
using wire::ResponseOpcode;
using wire::ReturnCode;
using wire::SesOpcode;

constexpr auto kMtu = ForeignPeer::kMtu;
constexpr auto kStart = ForeignPeer::kStart;

// The answer's response is OK for the message `id`.
void expect_response(const Answer& answer, std::uint16_t id, const char* what,
                     ResponseOpcode opcode = ResponseOpcode::DefaultResponse) {
  const auto response = answer.ses_response();
  ASSERT_TRUE(response.has_value()) << what;
  EXPECT_EQ(response->opcode, opcode) << what;
  EXPECT_EQ(response->return_code, ReturnCode::Ok) << what;
  EXPECT_EQ(response->message_id, MsgId{id}) << what;
  EXPECT_EQ(response->job_id, ForeignPeer::kJob) << what;
}

class LostAcks : public ::testing::Test {
 protected:
  LostAcks() { first_write(peer, 10); }  // message 1, request 0

  // The write of message `id` as request `index`, with everything answered before cleared.
  wire::RequestHeader write(std::uint32_t index, std::uint16_t id, bool ar = true,
                            bool retx = false, PdsType type = PdsType::RudReq) {
    auto ses = peer.to_context(SesOpcode::Write, id);
    ses.match_bits = peer.key.value;
    ses.request_length = 10;
    auto header = peer.request(index);
    header.type = type;
    header.ar = ar;
    header.retx = retx;
    peer.say(header, ses, pattern(10));
    return header;
  }
  void ask_for_ack(std::uint32_t index, std::uint16_t id) {
    wire::ControlHeader asked;
    asked.ctl_type = CpType::AckRequest;
    asked.psn = kStart + static_cast<std::int32_t>(index);
    asked.spdcid = ForeignPeer::kPdc;
    asked.dpdcid = peer.tpdcid;
    asked.payload = id;
    peer.say(asked);
  }
  // Its value is a guaranteed response, which holds CACK until it is cleared.
  void fetch(std::uint32_t index, std::uint16_t id) {
    auto atomic = peer.to_context(SesOpcode::FetchingAtomic, id);
    atomic.match_bits = peer.key.value;
    atomic.request_length = 8;
    atomic.atomic = {.op = wire::AmoOp::Sum, .datatype = wire::AmoDatatype::Uint64};
    auto header = peer.request(index);
    header.ar = true;
    peer.say(header, atomic, pattern(8));
    EXPECT_EQ(peer.hear().ack().value().req, AckRequestCode::Clear);
  }

  ForeignPeer peer;
};

TEST_F(LostAcks, Pds204_RepeatedRequestGetsItsOwnResponse) {
  write(1, 2);
  expect_response(peer.hear(), 2, "the ACK that got lost");
  for (const std::uint32_t index : {1U, 0U}) {  // at CACK, and below it
    write(index, static_cast<std::uint16_t>(index + 1), true, true);
    const Answer again = peer.hear();
    expect_ack(peer, again, kStart + static_cast<std::int32_t>(index), kStart + 1);
    expect_response(again, static_cast<std::uint16_t>(index + 1), "repeated");
  }
  EXPECT_TRUE(peer.silent());
}

TEST_F(LostAcks, Pds204_RepeatBehindGap_GetsItsResponse) {
  write(2, 3);
  expect_response(peer.hear(), 3, "behind the gap");
  while (!peer.silent()) peer.hear();
  write(2, 3, true, true);
  const Answer again = peer.hear();
  EXPECT_EQ(again.ack().value().ack_psn(), kStart + 2);
  expect_response(again, 3, "repeated behind the gap");
}

TEST_F(LostAcks, Pds156_AckRequestIsAnsweredWithTheResponse) {
  write(1, 2);
  write(3, 4);
  while (!peer.silent()) peer.hear();
  ask_for_ack(1, 0);
  expect_response(peer.hear(), 2, "at CACK: remembered");
  ask_for_ack(0, 1);
  const Answer below = peer.hear();
  EXPECT_EQ(below.ack().value().ack_psn(), kStart);
  expect_response(below, 1, "below CACK: the peer says the id");
  ask_for_ack(3, 0);
  const Answer above = peer.hear();
  EXPECT_EQ(above.ack().value().ack_psn(), kStart + 3);
  expect_response(above, 4, "above CACK: remembered");
}

// The cumulative ACK tells that it has come; an ACK of its own would name it without a response.
TEST_F(LostAcks, Pds156_UnknownIdIsLeftToTheCumulativeAck) {
  write(1, 2);
  peer.hear();
  ask_for_ack(0, 0);
  const Answer answer = peer.hear();
  expect_ack(peer, answer, kStart + 1, kStart + 1);
  expect_response(answer, 2, "of CACK");
}

TEST_F(LostAcks, AcksOfWhatCackCannotCoverHaveTheirResponses) {
  fetch(1, 2);
  write(2, 3, false);
  write(3, 4, false);
  while (!peer.silent()) peer.hear();
  write(4, 5);
  std::vector<std::uint16_t> ids;
  while (!peer.silent()) {
    const Answer answer = peer.hear();
    const auto index = static_cast<std::uint16_t>(answer.ack().value().ack_psn() - kStart);
    expect_response(answer, index + 1, "behind a response that is not cleared");
    ids.push_back(index);
  }
  EXPECT_EQ(ids, (std::vector<std::uint16_t>{2, 3, 4}));
}

// PDS-98: the CLEAR moves CACK over what was asked about before.
TEST_F(LostAcks, AckAfterAClearHasTheResponseOfCack) {
  fetch(1, 2);
  write(2, 3);
  while (!peer.silent()) peer.hear();
  wire::ControlHeader clear;
  clear.ctl_type = CpType::Clear;
  clear.spdcid = ForeignPeer::kPdc;
  clear.dpdcid = peer.tpdcid;
  clear.payload = (kStart + 1).value;
  peer.say(clear);
  const Answer answer = peer.hear();
  EXPECT_EQ(answer.ack().value().cack_psn, kStart + 2);
  EXPECT_EQ(answer.ack().value().ack_psn(), kStart + 2);
  expect_response(answer, 3, "of CACK");
}

TEST(LostRodAcks, AckOfAnEarlyPacketHasTheResponseOfCack) {
  ForeignPeer peer(DeliveryMode::Rod);
  auto write = peer.to_context(SesOpcode::Write, 1);
  write.match_bits = peer.key.value;
  for (const std::uint32_t index : {0U, 2U}) {
    auto header = peer.request(index);
    header.type = PdsType::RodReq;
    header.ar = true;
    write.message_id = MsgId{static_cast<std::uint16_t>(index + 1)};
    peer.say(header, write);
    const Answer answer = peer.hear();
    peer.tpdcid = expect_ack(peer, answer, kStart, kStart).spdcid;
    expect_response(answer, 1, index == 0 ? "the first one" : "its gap is told");
  }
}

// PDS-104: a control packet has no response, repeated or not.
TEST_F(LostAcks, Pds104_RepeatedNoop_AckedWithoutResponse) {
  wire::ControlHeader noop;
  noop.ctl_type = CpType::Noop;
  noop.ar = true;
  noop.psn = kStart + 1;
  noop.spdcid = ForeignPeer::kPdc;
  noop.dpdcid = peer.tpdcid;
  for (const bool again : {false, true}) {
    noop.retx = again;
    peer.say(noop);
    const Answer answer = peer.hear();
    EXPECT_EQ(expect_ack(peer, answer, kStart + 1, kStart + 1).next_hdr, NextHdr::None);
  }
}

// ---- modified_length (WIRE 3.9) ----------------------------------------------------------------

class ModifiedLength : public ::testing::Test {
 protected:
  void post_receive(std::size_t bytes) {
    room.resize(bytes);
    const ses::IoSlice slice{room.data(), room.size()};
    ses::ReceiveOp receive;
    receive.local = {&slice, 1};
    ASSERT_TRUE(peer.fep().ses().receive(peer.context(), receive, peer.now()).ok());
  }
  // Every packet of a message of `length` bytes is answered with `expected`.
  void expect_in_all(wire::SesRequest request, std::size_t length, std::uint32_t expected) {
    const auto data = pattern(length);
    for (std::uint32_t i = 0; i * kMtu < length; ++i) {
      auto header = peer.request(i);
      header.ar = true;
      peer.say(header, packet_of(request, length, i), piece(data, i));
      const auto response = peer.hear().ses_response();
      ASSERT_TRUE(response.has_value());
      EXPECT_EQ(response->return_code, ReturnCode::Ok);
      EXPECT_EQ(response->modified_length, expected) << "packet " << i;
    }
  }
  // A RUDI access of two packets; `payload` is empty for a READ.
  void expect_in_all_rudi(SesOpcode opcode, std::size_t length,
                          const std::vector<std::byte>& payload, NextHdr expected) {
    auto request = rma(opcode);
    ri::MemoryRegion region;
    region.base = peer.memory.data();
    region.length = peer.memory.size();
    region.access = ri::kRemoteRead | ri::kRemoteWrite;
    request.match_bits = std::uint64_t{1} << 63 | 0x1234;  // IDEMPOTENT_SAFE
    ASSERT_TRUE(peer.fep().regions().add_with_key(region, Rkey{request.match_bits}));
    for (std::uint32_t i = 0; i < 2; ++i) {
      wire::RudiHeader header;
      header.next_hdr = NextHdr::RequestStd;
      header.pkt_id = 7 + i;
      std::vector<std::byte> bytes(wire::kMaxPdsHeaderBytes + wire::kMaxSesHeaderBytes);
      std::size_t end = header.encode(bytes.data());
      end += packet_of(request, length, i).encode(bytes.data() + end);
      bytes.resize(end);
      if (!payload.empty()) {
        const auto part = piece(payload, i);
        bytes.insert(bytes.end(), part.begin(), part.end());
      }
      peer.say(bytes);
      const Answer answer = peer.hear();
      ASSERT_TRUE(answer.rudi().has_value());
      EXPECT_EQ(answer.rudi()->next_hdr, expected);
      const auto response = answer.ses_response();
      ASSERT_TRUE(response.has_value());
      EXPECT_EQ(response->return_code, ReturnCode::Ok);
      EXPECT_EQ(response->modified_length, length) << "packet " << i;
    }
  }
  wire::SesRequest rma(SesOpcode opcode) {
    auto request = peer.to_context(opcode, 1);
    request.match_bits = peer.key.value;
    return request;
  }

  ForeignPeer peer;
  std::vector<std::byte> room;
};

TEST_F(ModifiedLength, SendSaysTheWholeMessageInEachResponse) {
  post_receive(5000);
  expect_in_all(peer.to_context(SesOpcode::Send, 1), 5000, 5000);
}

TEST_F(ModifiedLength, SendSaysTheReceiveLengthIfSmaller) {
  post_receive(1500);
  expect_in_all(peer.to_context(SesOpcode::Send, 1), 5000, 1500);
}

TEST_F(ModifiedLength, UnexpectedSendSaysTheWholeMessage) {
  expect_in_all(peer.to_context(SesOpcode::Send, 1), 5000, 5000);
}

TEST_F(ModifiedLength, WriteSaysTheWholeMessageInEachResponse) {
  expect_in_all(rma(SesOpcode::Write), 5000, 5000);
}

TEST_F(ModifiedLength, ReadSaysTheWholeMessageInEachResponse) {
  const auto read = rma(SesOpcode::Read);
  auto opening = peer.request(0);  // else the data wait until the address has proved to be ours
  opening.ar = true;
  peer.say(opening, packet_of(rma(SesOpcode::Write), 8, 0), pattern(8));
  peer.tpdcid = expect_ack(peer, peer.hear(), kStart, kStart).spdcid;
  for (std::uint32_t i = 0; i < 3; ++i) {
    auto header = peer.request(1 + i);
    header.ar = true;
    peer.say(header, packet_of(read, 2 * kMtu + 100, i));
  }
  std::size_t acks = 0;
  std::size_t data = 0;
  while (!peer.silent()) {
    const Answer answer = peer.hear();
    const auto response = answer.ses_response();
    ASSERT_TRUE(response.has_value());
    EXPECT_EQ(response->modified_length, 2 * kMtu + 100);
    ++(answer.ack() ? acks : data);
  }
  EXPECT_EQ(acks, 3U);
  EXPECT_EQ(data, 3U);
}

TEST_F(ModifiedLength, RudiWriteSaysTheWholeMessage) {
  const auto data = pattern(kMtu + 100);
  expect_in_all_rudi(SesOpcode::Write, data.size(), data, NextHdr::Response);
}

TEST_F(ModifiedLength, RudiReadSaysTheWholeMessage) {
  expect_in_all_rudi(SesOpcode::Read, kMtu + 100, {}, NextHdr::ResponseData);
}

TEST_F(ModifiedLength, FetchingAtomicSaysItsOperand) {
  auto atomic = rma(SesOpcode::FetchingAtomic);
  atomic.request_length = 8;
  atomic.atomic = {.op = wire::AmoOp::Sum, .datatype = wire::AmoDatatype::Uint64};
  auto header = peer.request(0);
  header.ar = true;
  peer.say(header, atomic, pattern(8));
  const Answer answer = peer.hear();
  const auto response = answer.ses_response();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->opcode, ResponseOpcode::ResponseWData);
  EXPECT_EQ(response->modified_length, 8U);
}

// ---- requests in the forms of other implementations (WIRE 3.12) --------------------------------

TEST(ForeignRead, DataAreFoundByTheIdOfTheRead) {
  ForeignPeer peer;
  first_write(peer, kMtu);
  for (const std::uint16_t id : {700, 300}) {
    auto read = peer.to_context(SesOpcode::Read, id);
    read.match_bits = peer.key.value;
    auto header = peer.request(id == 700 ? 1 : 2);
    header.ar = true;
    peer.say(header, packet_of(read, kMtu, 0));
    bool answered = false;
    while (!peer.silent()) {
      const Answer answer = peer.hear();
      const auto response = answer.ses_response();
      if (!answer.request()) continue;
      answered = true;
      ASSERT_TRUE(response.has_value());
      EXPECT_EQ(response->response_message_id, MsgId{id});
      EXPECT_EQ(response->read_request_message_id, MsgId{id});
    }
    EXPECT_TRUE(answered);
  }
}

TEST(ForeignRead, OnePacketWithoutEomIsWhole) {
  ForeignPeer peer;
  first_write(peer, kMtu);
  std::uint32_t index = 1;
  for (const std::uint32_t length : {8U, kMtu}) {
    auto read = peer.to_context(SesOpcode::Read, static_cast<std::uint16_t>(index + 1));
    read.match_bits = peer.key.value;
    read = packet_of(read, length, 0);
    read.eom = false;
    auto header = peer.request(index);
    header.ar = true;
    peer.say(header, read);
    std::vector<std::byte> data;
    while (!peer.silent()) {
      const auto heard = peer.hear();  // the response is a view of it
      const auto response = heard.ses_response();
      ASSERT_TRUE(response.has_value());
      EXPECT_EQ(response->return_code, ReturnCode::Ok);
      data.insert(data.end(), response->payload.begin(), response->payload.end());
    }
    EXPECT_EQ(data, std::vector(peer.memory.begin(), peer.memory.begin() + length));
    ++index;
  }
}

TEST(ForeignRead, SeveralPacketsWithoutEomAreNotWhole) {
  ForeignPeer peer;
  auto read = peer.to_context(SesOpcode::Read, 1);
  read.match_bits = peer.key.value;
  read = packet_of(read, kMtu + 1, 0);
  EXPECT_FALSE(read.eom);
  peer.say(peer.request(0), read);
  EXPECT_EQ(peer.hear().ses_response()->return_code, ReturnCode::Ok);
  EXPECT_EQ(peer.fep().ses().counters().errors_answered, 0U);
}

TEST_F(ForeignTarget, ReadDataAreAcknowledgedWithAResponse) {
  establish();
  std::vector<std::byte> room(100);
  const auto [read, data_packet] = ask_for(room);
  peer.say(data_packet);
  const Answer answer = peer.hear();
  const auto response = answer.ses_response();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->opcode, ResponseOpcode::DefaultResponse);
  EXPECT_EQ(response->return_code, ReturnCode::Ok);
  EXPECT_EQ(response->message_id, read_id) << "by which it keeps the data";
  EXPECT_EQ(response->job_id, ForeignPeer::kJob);
}

// In an ACK; RUDI is in reference_peer_test.cc.
TEST_F(ForeignTarget, EmptyReadEndsByAnEmptyPieceOfData) {
  establish();
  std::vector<std::byte> room;
  const auto [read, data_packet] = ask_for(room);
  auto answer = ack(read);
  answer.next_hdr = NextHdr::ResponseData;
  auto data = response(ResponseOpcode::ResponseWData, ReturnCode::Ok);
  data.next_hdr = NextHdr::ResponseData;
  data.response_message_id = data.read_request_message_id = read_id;
  peer.say(answer, &data);
  ASSERT_EQ(peer.sink.completions.size(), 1U);
  EXPECT_EQ(peer.sink.completions[0].status, ses::Status::Ok);
}

// ---- limits of other implementations -----------------------------------------------------------

// PDS-220: the peer's plain ACKs hold no mpr. It takes 128 PSNs at once; the first one is missing.
TEST_F(ForeignTarget, Pds220_WindowThatIsNotToldIsFoundByOneRefusal) {
  const auto plain_ack = [this](const wire::RequestHeader& request) {
    auto plain = ack(request);
    plain.type = PdsType::Ack;
    peer.say(plain);
  };
  const auto burst = [this] {
    std::vector<wire::RequestHeader> sent;
    peer.wait(milliseconds(5));
    while (!peer.silent()) sent.push_back(peer.hear().request().value());
    return sent;
  };
  send(first);
  const auto opened = peer.hear().request().value();
  plain_ack(opened);
  const auto longer = pattern(500 * kMtu);
  send(longer);
  auto sent = burst();
  ASSERT_EQ(sent.size(), 500U);
  Psn cack = opened.psn;
  for (const auto& request : sent) {
    if (request.psn - cack > 128) peer.say(nack(request, wire::NackCode::PsnOorWindow, kTheirs));
  }
  std::size_t repeated = 0;
  for (int round = 0; round < 20 && peer.sink.completions.size() < 2; ++round) {
    for (const auto& request : burst()) {
      ASSERT_LE(request.psn - cack, 128) << "beyond the window of the peer";
      ++repeated;
    }
    const Psn last = sent.back().psn;
    cack = std::min(cack + 128, last);
    auto request = opened;
    request.psn = cack;
    plain_ack(request);
  }
  ASSERT_EQ(peer.sink.completions.size(), 2U);
  EXPECT_EQ(peer.sink.completions[1].status, ses::Status::Ok);
  EXPECT_LE(repeated, 500U) << "no packet more than once, but the oldest";

  // Another PDC to this peer begins so.
  auto close = ack(sent.back());
  close.type = PdsType::Ack;
  close.req = AckRequestCode::Close;
  peer.say(close);
  peer.wait(milliseconds(5));
  auto last = sent.back();
  last.psn = peer.hear().control().value().psn;
  plain_ack(last);
  EXPECT_TRUE(peer.fep().closed());
  send(longer);
  EXPECT_EQ(burst().size(), 128U);
}

// PDS-221: it refuses a NOOP that asks whether it lives. The read goes on, the PSN is used again,
// and an ACK Request asks instead.
TEST_F(ForeignTarget, Pds221_RefusedNoopEndsNothingAndIsNotRepeated) {
  establish();
  std::vector<std::byte> room(100);
  const auto [read, data_packet] = ask_for(room);
  peer.say(ack(read));
  wire::ControlHeader noop;
  for (int i = 0; i < 1000 && peer.silent(); ++i) peer.wait(milliseconds(10));
  noop = peer.hear().control().value();
  EXPECT_EQ(noop.ctl_type, CpType::Noop);
  EXPECT_EQ(noop.psn, read.psn + 1);
  auto refused = read;
  refused.psn = noop.psn;
  peer.say(nack(refused, wire::NackCode::UnexpEvent, kTheirs));
  EXPECT_TRUE(peer.sink.completions.empty());
  std::size_t asked = 0;
  for (int i = 0; i < 100; ++i) {
    peer.wait(milliseconds(100));
    while (!peer.silent()) {
      const auto control = peer.hear().control().value();
      EXPECT_EQ(control.ctl_type, CpType::AckRequest);
      EXPECT_EQ(control.psn, read.psn);
      peer.say(ack(read));
      ++asked;
    }
  }
  EXPECT_GT(asked, 1U);
  peer.say(data_packet);
  ASSERT_EQ(peer.sink.completions.size(), 1U);
  EXPECT_EQ(peer.sink.completions[0].status, ses::Status::Ok);
  while (!peer.silent()) peer.hear();
  send(first);
  EXPECT_EQ(peer.hear().request().value().psn, noop.psn);
}

// It refuses NOOPs and falls silent: noticed as with NOOPs.
TEST_F(ForeignTarget, Pds221_SilentPeerWithoutNoopIsGivenUp) {
  establish();
  std::vector<std::byte> room(100);
  const auto [read, data_packet] = ask_for(room);
  peer.say(ack(read));
  for (int i = 0; i < 1000 && peer.silent(); ++i) peer.wait(milliseconds(10));
  auto refused = read;
  refused.psn = peer.hear().control().value().psn;
  peer.say(nack(refused, wire::NackCode::UnexpEvent, kTheirs));
  peer.wait(std::chrono::seconds(25));
  ASSERT_EQ(peer.sink.completions.size(), 1U);
  EXPECT_NE(peer.sink.completions[0].status, ses::Status::Ok);
}

// WIRE 3.12: it states a profile whose opcode it does not know, and answers UNSUPPORTED_OP.
class UnknownOpcode : public ForeignTarget {
 protected:
  struct Heard {
    wire::RequestHeader pds;
    SesOpcode opcode{};
    std::vector<std::byte> payload;
    MsgId id;
    std::uint64_t tag = 0;
  };
  // A send to a peer with these profiles; its tag if it has one.
  void send_to(const std::vector<std::byte>& data, bool hpc, bool ai_full,
               std::optional<std::uint64_t> tag = std::nullopt) {
    const ses::IoSlice slice{const_cast<std::byte*>(data.data()), data.size()};
    ses::Peer to = peer.as_peer();
    to.hpc = hpc;
    to.ai_full = ai_full;
    ses::SendOp op;
    op.peer = &to;
    op.local = {&slice, 1};
    op.tag = tag;
    ASSERT_TRUE(peer.fep().ses().initiator().post(peer.context(), op, peer.now()).ok());
    peer.push();
  }
  std::vector<Heard> hear_all() {
    std::vector<Heard> heard;
    peer.wait(milliseconds(3));
    while (!peer.silent()) {
      const Answer answer = peer.hear();
      const auto ses = answer.ses_request();
      if (!ses) continue;  // a CLEAR
      heard.push_back({answer.request().value(),
                       ses->opcode,
                       {ses->payload.begin(), ses->payload.end()},
                       ses->message_id,
                       ses->match_bits});
    }
    return heard;
  }
  void answer(const Heard& request, ReturnCode code) {
    auto header = ack(request.pds);
    header.next_hdr = NextHdr::Response;
    const auto opcode =
        code == ReturnCode::Ok ? ResponseOpcode::DefaultResponse : ResponseOpcode::Response;
    const auto said = response(opcode, code);
    peer.say(header, &said);
  }
  // Every request is refused, until a `plain` comes: its packets, not answered.
  std::vector<Heard> refuse_all_but(SesOpcode plain, SesOpcode unknown) {
    std::size_t refused = 0;
    for (int round = 0; round < 10; ++round) {
      const auto heard = hear_all();
      if (!heard.empty() && heard[0].opcode == plain) {
        EXPECT_GT(refused, 0U);
        return heard;
      }
      for (const Heard& request : heard) {
        EXPECT_TRUE(request.opcode == unknown || request.opcode == SesOpcode::MsgError);
        answer(request, ReturnCode::UnsupportedOp);
        ++refused;
      }
    }
    return {};
  }
  void expect_plain_instead_of(SesOpcode unknown, bool hpc, bool ai_full,
                               std::optional<std::uint64_t> tag = std::nullopt) {
    const SesOpcode plain = tag ? SesOpcode::TaggedSend : SesOpcode::Send;
    establish();
    const auto data = pattern(12 * kMtu);
    send_to(data, hpc, ai_full, tag);
    auto sends = refuse_all_but(plain, unknown);
    ASSERT_EQ(sends.size(), 12U);
    EXPECT_EQ(sends[0].tag, tag.value_or(0));
    std::vector<std::byte> came;
    for (const Heard& packet : sends) {
      EXPECT_EQ(packet.opcode, plain);
      came.insert(came.end(), packet.payload.begin(), packet.payload.end());
      answer(packet, ReturnCode::Ok);
    }
    EXPECT_EQ(came, data);
    ASSERT_EQ(peer.sink.completions.size(), 1U);
    EXPECT_EQ(peer.sink.completions[0].status, ses::Status::Ok);
    // The peer is remembered.
    send_to(data, hpc, ai_full, tag);
    sends = hear_all();
    ASSERT_EQ(sends.size(), 12U);
    for (const Heard& packet : sends) {
      EXPECT_EQ(packet.opcode, plain);
      answer(packet, ReturnCode::Ok);
    }
    EXPECT_EQ(peer.sink.completions.size(), 2U);
  }
};

TEST_F(UnknownOpcode, RendezvousIsSentAgainAsSend) {
  expect_plain_instead_of(SesOpcode::RendezvousSend, true, false);
}

TEST_F(UnknownOpcode, TaggedRendezvousIsSentAgainAsTagged) {
  expect_plain_instead_of(SesOpcode::RendezvousTsend, true, false, 4711);
}

// Of a burst only what leaves before the first refusal comes is refused.
TEST_F(UnknownOpcode, Wire312_RestOfABurstIsSends) {
  establish();
  const auto data = pattern(12 * kMtu);
  constexpr std::size_t kMessages = 40;
  for (std::size_t i = 0; i < kMessages; ++i) send_to(data, true, false);
  std::vector<Heard> heard = hear_all();
  ASSERT_EQ(heard.size(), 128U);
  std::set<std::uint16_t> refused;
  for (int round = 0; round < 100 && peer.sink.completions.size() < kMessages; ++round) {
    for (const Heard& request : heard) {
      const bool known = request.opcode == SesOpcode::Send;
      if (request.opcode == SesOpcode::RendezvousSend) refused.insert(request.id.value);
      answer(request, known ? ReturnCode::Ok : ReturnCode::UnsupportedOp);
    }
    heard = hear_all();
  }
  ASSERT_EQ(peer.sink.completions.size(), kMessages);
  for (const auto& completion : peer.sink.completions) {
    EXPECT_EQ(completion.status, ses::Status::Ok);
  }
  EXPECT_LE(refused.size(), 128 / 12 + 1U) << "as many as were in the window";
}

// It states the HPC profile and has no rendezvous: what it keeps whole needs none.
TEST_F(UnknownOpcode, Wire312_MessagesOneAfterAnotherAreSends) {
  establish();
  const auto data = pattern(ForeignPeer::kEager);
  for (std::size_t i = 1; i <= 3; ++i) {
    send_to(data, true, false);
    const auto sends = hear_all();
    ASSERT_EQ(sends.size(), 8U);
    for (const Heard& packet : sends) {
      EXPECT_EQ(packet.opcode, SesOpcode::Send);
      answer(packet, ReturnCode::Ok);
    }
    EXPECT_EQ(peer.sink.completions.size(), i);
  }
}

TEST_F(UnknownOpcode, DeferrableIsSentAgainAsSend) {
  expect_plain_instead_of(SesOpcode::DeferrableSend, false, true);
}

TEST_F(UnknownOpcode, TaggedDeferrableIsSentAgainAsTagged) {
  expect_plain_instead_of(SesOpcode::DeferrableTsend, false, true, 4711);
}

TEST_F(UnknownOpcode, SendThatIsRefusedAsWellFails) {
  establish();
  const auto data = pattern(12 * kMtu);
  send_to(data, true, false);
  for (const Heard& packet : refuse_all_but(SesOpcode::Send, SesOpcode::RendezvousSend)) {
    answer(packet, ReturnCode::UnsupportedOp);
  }
  for (const Heard& packet : hear_all()) answer(packet, ReturnCode::UnsupportedOp);
  ASSERT_EQ(peer.sink.completions.size(), 1U);
  EXPECT_EQ(peer.sink.completions[0].return_code, ReturnCode::UnsupportedOp);
}

TEST(ForeignDatagram, SendWithAMessageIdIsTaken) {
  ForeignPeer peer(DeliveryMode::Uud);
  std::vector<std::byte> room(100);
  const ses::IoSlice slice{room.data(), room.size()};
  ses::ReceiveOp receive;
  receive.local = {&slice, 1};
  ASSERT_TRUE(peer.fep().ses().receive(peer.context(), receive, peer.now()).ok());
  const auto request = packet_of(peer.to_context(SesOpcode::Send, 77), 100, 0);
  wire::UudHeader header;
  header.next_hdr = NextHdr::RequestStd;
  std::vector<std::byte> bytes(wire::kMaxPdsHeaderBytes + wire::kMaxSesHeaderBytes);
  std::size_t length = header.encode(bytes.data());
  length += request.encode(bytes.data() + length);
  bytes.resize(length);
  const auto data = pattern(100);
  bytes.insert(bytes.end(), data.begin(), data.end());
  peer.say(bytes);
  ASSERT_EQ(peer.sink.completions.size(), 1U);
  EXPECT_EQ(peer.sink.completions[0].status, ses::Status::Ok);
  EXPECT_EQ(room, data);
  EXPECT_TRUE(peer.silent());
}

}  // namespace
}  // namespace uet::sim
