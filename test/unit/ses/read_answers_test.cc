// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/read_answers.h"

#include <utility>

#include "unit/ses/operation_harness.h"

namespace uet::ses::test {
namespace {

class ReadAnswersTest : public OperationTest {
 protected:
  ReadAnswersTest() : answers(of_four(parameters), pieces, staging, nullptr) {
    answers.attach(delivery);
  }
  static const Parameters& of_four(Parameters& parameters) {
    parameters.return_messages = 4;
    return parameters;
  }
  void TearDown() override {
    while (ReadAnswer* answer = answers.any()) answers.done(*answer);
    EXPECT_TRUE(answers.idle());
    EXPECT_EQ(buffers.in_use(), 0u);
    OperationTest::TearDown();
  }
  static pds::RequestView from(std::uint8_t node, DeliveryMode mode = DeliveryMode::Rud) {
    pds::RequestView view;
    view.pdc = kPdc;
    view.source = address_of(node);
    view.mode = mode;
    view.psn = Psn{9};
    return view;
  }
  static SesRequest read_of(std::uint32_t length) {
    SesRequest request;
    request.opcode = SesOpcode::Read;
    request.message_id = MsgId{33};
    request.som = request.eom = true;
    request.request_length = length;
    return request;
  }
  static ReadPiece all_of(const SesRequest& request) { return {.length = request.request_length}; }
  std::byte* answer(const pds::RequestView& view, std::uint32_t length) {
    const SesRequest request = read_of(length);
    response = default_response(request, length);
    return answers.open(view, request, all_of(request), response, kNow);
  }
  ReadAnswer& queued() { return static_cast<ReadAnswer&>(*delivery.backlog.front()); }

  BufferPool buffers{kMtu, 16};
  PieceStore pieces{buffers};
  Staging staging{parameters, counters};
  ReadAnswers answers;
  pds::Response response;
};

TEST_F(ReadAnswersTest, Pds194_FewBytesRideInTheAck) {
  std::byte* data = answer(from(1), 16);
  ASSERT_NE(data, nullptr);
  EXPECT_TRUE(response.guaranteed);
  EXPECT_EQ(response.next_hdr, NextHdr::ResponseData);
  EXPECT_EQ(data + 16, response.bytes.data() + response.length);
  EXPECT_TRUE(answers.idle());
}

TEST_F(ReadAnswersTest, Pds195_OthersFollowInTheReturnDirection) {
  std::byte* data = answer(from(1), kMtu);
  ASSERT_NE(data, nullptr);
  EXPECT_FALSE(response.guaranteed) << "it only accepts the request";
  Packet packet;
  packet.reset();
  pds::PreparedPacket prepared;
  EXPECT_EQ(ReadAnswers::next_packet(queued(), packet, prepared), pds::PacketPlan::Last);
  EXPECT_EQ(prepared.next_hdr, NextHdr::ResponseData);
  EXPECT_EQ(packet.payload[0].data, data);
  EXPECT_EQ(packet.payload[0].length, kMtu);
  Bytes bytes(packet.head().begin(), packet.head().end());
  bytes.insert(bytes.end(), data, data + kMtu);
  wire::SesResponseHeader header;
  ASSERT_TRUE(wire::SesResponseHeader::decode(prepared.next_hdr, bytes, header));
  EXPECT_EQ(header.read_request_message_id, MsgId{33});
}

TEST_F(ReadAnswersTest, Pds189_RudiIsAnsweredInItsResponse) {
  ASSERT_NE(answer(from(1, DeliveryMode::Rudi), 16), nullptr);
  EXPECT_EQ(delivery.responses.size(), 1u);
  EXPECT_TRUE(delivery.backlog.empty());
}

TEST_F(ReadAnswersTest, OneHostHasThreeQuartersAtMost) {
  int opened = 0;
  while (answer(from(1), kMtu) != nullptr) ++opened;
  EXPECT_EQ(opened, 3);
  EXPECT_NE(answer(from(2), kMtu), nullptr);
}

TEST_F(ReadAnswersTest, WithoutPdcNothingIsLeftBehind) {
  delivery.pdc_gone = true;
  EXPECT_EQ(answer(from(1), kMtu), nullptr);
  EXPECT_TRUE(answers.idle());
  EXPECT_EQ(buffers.in_use(), 0u);
}

class AnswerFromRegion : public ReadAnswersTest {
 protected:
  // A read of all of the region is answered; its packet is made.
  void answer_read() {
    const SesRequest request = read_of(kMtu);
    ASSERT_TRUE(
        answers.answer_from(memory.data(), kRegion, from(1), request, all_of(request), kNow));
    ReadAnswers::next_packet(queued(), packet, prepared);
    delivery.on_edit = [this](const pds::Message& edited, pds::PacketEditor& editor) {
      EXPECT_EQ(&edited, &queued());
      EXPECT_TRUE(editor.edit(packet, prepared));
      ++edits;
    };
  }
  wire::SesResponseHeader header_of(const Packet& sent) const {
    wire::SesResponseHeader header;
    Bytes bytes(sent.head().begin(), sent.head().end());
    const Slice& payload = sent.payload[0];
    bytes.insert(bytes.end(), payload.data, payload.data + payload.length);
    EXPECT_TRUE(wire::SesResponseHeader::decode(prepared.next_hdr, bytes, header));
    return header;
  }

  static constexpr Rkey kRegion{0};  // an application may choose 0
  Bytes memory = pattern(kMtu);
  Packet packet;
  pds::PreparedPacket prepared;
  int edits = 0;
};

TEST_F(AnswerFromRegion, AnswerPointsIntoTheRegion) {
  answer_read();
  EXPECT_EQ(packet.payload[0].data, memory.data());
  EXPECT_EQ(packet.payload[0].length, kMtu);
  EXPECT_EQ(header_of(packet).read_request_message_id, MsgId{33});
  EXPECT_EQ(buffers.in_use(), 0u);
}

TEST_F(AnswerFromRegion, Pds194_FewBytesBelongIntoTheAck) {
  const SesRequest request = read_of(16);
  EXPECT_FALSE(
      answers.answer_from(memory.data(), kRegion, from(1), request, all_of(request), kNow));
  EXPECT_TRUE(answers.idle());
}

TEST_F(AnswerFromRegion, RegionGoes_AnswerBecomesCopy) {
  answer_read();
  answers.removing(Rkey{1});
  EXPECT_EQ(edits, 0) << "another region";
  answers.removing(kRegion);
  EXPECT_EQ(edits, 1);
  const Bytes before = std::exchange(memory, Bytes(kMtu));
  EXPECT_EQ(buffers.in_use(), 1u);
  Packet later;  // had it not been made before
  ReadAnswers::next_packet(queued(), later, prepared);
  for (const Packet* each : {&packet, &later}) {
    const Slice& sent = each->payload[0];
    EXPECT_EQ(Bytes(sent.data, sent.data + sent.length), before);
    EXPECT_EQ(header_of(*each).return_code, ReturnCode::Ok);
    EXPECT_EQ(header_of(*each).payload_length, kMtu);
  }
  answers.removing(kRegion);
  EXPECT_EQ(edits, 1) << "it is in no region any more";
}

TEST_F(AnswerFromRegion, Ses140_NoMemoryForCopy_AnswerBecomesRefusal) {
  answer_read();
  std::vector<Piece*> taken;
  while (Piece* piece = pieces.take(kMtu)) taken.push_back(piece);
  answers.removing(kRegion);
  for (Piece* piece : taken) pieces.give_back(piece);
  EXPECT_EQ(edits, 1);
  EXPECT_EQ(packet.payload_length(), 0u);
  EXPECT_EQ(header_of(packet).return_code, ReturnCode::BadMkey);
}

TEST_F(ReadAnswersTest, AnswerPointsIntoTheMemoryOfAMessage) {
  Bytes memory = pattern(4 * kMtu);
  TxMessage& source = open(memory.size());
  source.iov[0] = slice_of(memory);
  source.iov_count = 1;
  SesRequest request = read_of(kMtu);
  request.buffer_offset = kMtu;
  ASSERT_TRUE(answers.answer_from(source, from(2), request, all_of(request), kNow));
  EXPECT_EQ(queued().payload[0].data, memory.data() + kMtu);
  EXPECT_EQ(buffers.in_use(), 0u);
  EXPECT_FALSE(source.answers.empty());
  EXPECT_EQ(answers.done(queued()), &source);
  EXPECT_TRUE(source.answers.empty());
}

TEST_F(ReadAnswersTest, BytesInManyPartsAreCopied) {
  Bytes memory = pattern(kMtu);
  TxMessage& source = open(memory.size());
  for (std::size_t at = 0; at < memory.size(); at += kMtu / 4) {
    source.iov[source.iov_count++] = IoSlice{memory.data() + at, kMtu / 4};
  }
  const SesRequest request = read_of(kMtu);
  ASSERT_TRUE(answers.answer_from(source, from(2), request, all_of(request), kNow));
  const Slice& sent = queued().payload[0];
  EXPECT_EQ(Bytes(sent.data, sent.data + sent.length), memory);
  std::vector<Piece*> taken;
  while (Piece* piece = pieces.take(kMtu)) taken.push_back(piece);
  EXPECT_FALSE(answers.answer_from(source, from(2), request, all_of(request), kNow));
  for (Piece* piece : taken) pieces.give_back(piece);
}

TEST_F(ReadAnswersTest, Ses165_AnswerWhoseSourceClosesIsARefusal) {
  Bytes memory = pattern(3 * kMtu);
  TxMessage& source = open(memory.size());
  source.iov[0] = slice_of(memory);
  source.iov_count = 1;
  const SesRequest request = read_of(kMtu);
  ASSERT_TRUE(answers.answer_from(source, from(1), request, all_of(request), kNow));
  ReadAnswer& answer = queued();
  Packet packet;
  pds::PreparedPacket prepared;
  ReadAnswers::next_packet(answer, packet, prepared);
  ASSERT_EQ(packet.payload[0].data, memory.data());
  delivery.on_edit = [&](const pds::Message& edited, pds::PacketEditor& editor) {
    EXPECT_EQ(&edited, &answer);
    EXPECT_TRUE(editor.edit(packet, prepared));
  };
  ReadAnswers::refuse(answer, delivery);
  EXPECT_TRUE(source.answers.empty());
  Packet later;  // had it not been made before
  ReadAnswers::next_packet(answer, later, prepared);
  for (const Packet* each : {&packet, &later}) {
    EXPECT_EQ(each->payload_length(), 0u);
    wire::SesResponseHeader header;
    ASSERT_TRUE(wire::SesResponseHeader::decode(prepared.next_hdr, each->head(), header));
    EXPECT_EQ(header.return_code, ReturnCode::BadMkey);
    EXPECT_EQ(header.read_request_message_id, MsgId{33});
    EXPECT_EQ(header.payload_length, 0u);
  }
  EXPECT_EQ(answers.done(answer), nullptr) << "the message does not wait for it";
}

TEST_F(ReadAnswersTest, Ses165_CopyForAReaderStays) {
  Bytes memory = pattern(3);
  TxMessage& source = open(memory.size());
  source.iov_count = 3;
  for (std::size_t i = 0; i < 3; ++i) source.iov[i] = {&memory[i], 1};
  const SesRequest request = read_of(3);
  ASSERT_TRUE(answers.answer_from(source, from(1), request, all_of(request), kNow));
  delivery.on_edit = [](const pds::Message&, pds::PacketEditor&) { ADD_FAILURE(); };
  ReadAnswers::refuse(queued(), delivery);
  EXPECT_TRUE(source.answers.empty());
  Packet packet;
  pds::PreparedPacket prepared;
  ReadAnswers::next_packet(queued(), packet, prepared);
  EXPECT_EQ(packet.payload_length(), 3u);
  EXPECT_EQ(answers.done(queued()), nullptr);
}

}  // namespace
}  // namespace uet::ses::test
