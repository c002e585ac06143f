// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/request_packets.h"

#include "unit/ses/operation_harness.h"

namespace uet::ses::test {
namespace {

using pds::PacketPlan;

class RequestPacketsTest : public OperationTest {
 protected:
  RequestPacketsTest() { reads.attach(delivery); }
  TxMessage& send(std::size_t length) {
    memory = pattern(length);
    TxMessage& message = open(length);
    message.iov[0] = slice_of(memory);
    message.iov_count = 1;
    return message;
  }
  PacketPlan next(TxMessage& message) {
    packet.reset();
    prepared = {};
    return initiator.next_packet(message, packet, prepared);
  }
  SesRequest request() {
    const std::span<const std::byte> head = packet.head();
    SesRequest decoded;
    Bytes bytes(head.begin(), head.end());
    bytes.resize(head.size() + packet.payload[0].length + packet.payload[1].length);
    EXPECT_TRUE(SesRequest::decode(prepared.next_hdr, bytes, decoded));
    return decoded;
  }

  Bytes memory;
  Packet packet;
  pds::PreparedPacket prepared;
  Reads reads{parameters, counters};
  RequestPackets packets{kMtu, reads};
  BufferPool buffers{kMtu, 16};
  PieceStore pieces{buffers};
  Initiator initiator{parameters, pieces, counters};
};

TEST_F(RequestPacketsTest, Ses21_LastPacketEndsTheMessage) {
  TxMessage& message = send(kMtu + 1);
  EXPECT_EQ(next(message), PacketPlan::More);
  EXPECT_TRUE(request().som);
  EXPECT_FALSE(message.ended);
  EXPECT_EQ(next(message), PacketPlan::Last);
  EXPECT_TRUE(request().eom);
  EXPECT_EQ(packet.payload[0].data, memory.data() + kMtu);
  EXPECT_EQ(packet.payload[0].length, 1u);
  EXPECT_EQ(prepared.tag, kNoPiece);
  EXPECT_TRUE(message.ended);
  EXPECT_EQ(message.packets_made, 2u);
}

TEST_F(RequestPacketsTest, Ses113_FailedMessageEndsWithMsgError) {
  TxMessage& message = send(3 * kMtu);
  next(message);
  message.fail(ReturnCode::NoMatch);
  EXPECT_EQ(next(message), PacketPlan::Last);
  EXPECT_EQ(request().opcode, SesOpcode::MsgError);
  EXPECT_EQ(request().message_offset, kMtu);
  EXPECT_EQ(packet.payload[0].length, 0u);
}

TEST_F(RequestPacketsTest, Ses69_MessageThatWillBeReadEndsUnderItsOpcode) {
  TxMessage& message = send(3 * kMtu);
  next(message);
  message.deferred = true;
  EXPECT_EQ(next(message), PacketPlan::Last);
  EXPECT_EQ(request().opcode, message.header.opcode);
  EXPECT_TRUE(request().eom);
  EXPECT_FALSE(request().som);
  EXPECT_TRUE(request().payload.empty());
}

TEST_F(RequestPacketsTest, Ses81_ReadAsksPieceByPieceUpToTheLimit) {
  TxMessage& message = open(6 * kMtu, Kind::Read);
  for (std::uint32_t piece = 0; piece < 4; ++piece) {  // the limit of small_parameters()
    packet.reset();
    ASSERT_EQ(packets.read(message, packet, prepared), PacketPlan::More);
    EXPECT_EQ(prepared.tag, piece);
    EXPECT_EQ(request().message_offset, piece * kMtu);
  }
  EXPECT_EQ(packets.read(message, packet, prepared), PacketPlan::NotNow);
  EXPECT_EQ(message.packets_made, 4u);
  reads.resolve_all(message);
}

}  // namespace
}  // namespace uet::ses::test
