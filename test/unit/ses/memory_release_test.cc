// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/memory_release.h"

#include "ses/payload.h"
#include "ses/reads.h"
#include "ses/request_header.h"
#include "unit/ses/operation_harness.h"

namespace uet::ses::test {
namespace {

// A message with one packet on its way, which points to `memory` unless a test changes that.
class MemoryReleaseTest : public OperationTest {
 protected:
  MemoryReleaseTest() {
    delivery.on_edit = [this](const pds::Message& edited, pds::PacketEditor& editor) {
      EXPECT_EQ(&edited, &message);
      changed = editor.edit(packet, prepared);
    };
    message.header.message_id = MsgId{9};
    message.header.pid_on_fep = PidOnFep{3};
    message.header.resource_index = ResourceIndex{4};
    message.iov[0] = slice_of(memory);
    message.iov_count = 1;
    message.offset = memory.size();
    message.ended = true;
    message.packets_made = 2;
    packet.append(20);
    packet.payload = {Slice{memory.data() + kMtu, kMtu}, Slice{}};
  }

  SesRequest request() {
    SesRequest decoded;
    EXPECT_TRUE(SesRequest::decode(prepared.next_hdr, packet.head(), decoded));
    return decoded;
  }

  Bytes memory = pattern(2 * kMtu);
  TxMessage& message = open(2 * kMtu);
  Packet packet;
  pds::PreparedPacket prepared{.next_hdr = NextHdr::RequestMedium, .tag = 5};
  bool changed = false;
};

TEST_F(MemoryReleaseTest, Ses165_PacketWithUserMemoryBecomesANoOp) {
  EXPECT_TRUE(release_memory(message, delivery)) << "the target may keep state";
  EXPECT_TRUE(changed);
  EXPECT_EQ(packet.payload_length(), 0u);
  EXPECT_EQ(prepared.tag, kNoPiece);
  EXPECT_EQ(request().opcode, SesOpcode::NoOp);
  EXPECT_TRUE(request().som && request().eom);
  EXPECT_EQ(request().message_id, MsgId{9});
  EXPECT_EQ(request().job_id, message.header.job_id);
  EXPECT_EQ(request().pid_on_fep, PidOnFep{3});
  EXPECT_EQ(request().resource_index, ResourceIndex{4});
  EXPECT_EQ(request().request_length, 0u);
  EXPECT_EQ(message.iov_count, 0u) << "nothing is written there, either";
  EXPECT_EQ(message.offset, 0u) << "MSG_ERROR names it";
}

TEST_F(MemoryReleaseTest, Ses165_EmptiedSinglePacket_IsNotKept) {
  message.packets_made = 1;
  EXPECT_FALSE(release_memory(message, delivery));
  EXPECT_TRUE(changed);
}

TEST_F(MemoryReleaseTest, Ses165_PacketWithACopyStays) {
  BufferPool buffers{kMtu, 4};
  PieceStore pieces{buffers};
  Piece* piece = pieces.take(kMtu);
  message.gathered = pieces.take(1);
  message.gathered->next = piece;
  packet.payload = {Slice{piece->data, kMtu}, Slice{}};
  EXPECT_FALSE(release_memory(message, delivery));
  EXPECT_FALSE(changed);
  EXPECT_EQ(packet.payload_length(), kMtu);
  EXPECT_EQ(prepared.tag, 5u);
  EXPECT_EQ(message.offset, memory.size());
  pieces.give_back_all(message.gathered);
}

TEST_F(MemoryReleaseTest, Ses165_PacketWithoutPayloadStays) {
  packet.payload = {};
  EXPECT_FALSE(release_memory(message, delivery));
  EXPECT_FALSE(changed);
  EXPECT_EQ(prepared.tag, 5u) << "a read request names its piece";
}

TEST_F(MemoryReleaseTest, Ses113_StateAtTheTargetNeedsAnEnd) {
  packet.payload = {};
  message.ended = false;
  EXPECT_TRUE(release_memory(message, delivery)) << "more would follow";
  message.ends_message = true;
  EXPECT_FALSE(release_memory(message, delivery)) << "its MSG_ERROR is on its way";
  message.ends_message = false;
  message.ended = true;
  message.readable = true;
  EXPECT_TRUE(release_memory(message, delivery)) << "the target may wait to read it";
  message.readable = false;
  message.restart_token = 3;
  EXPECT_TRUE(release_memory(message, delivery)) << "the target may put it off";
  for (const DeliveryMode mode : {DeliveryMode::Uud, DeliveryMode::Rudi}) {
    message.mode = mode;
    EXPECT_FALSE(release_memory(message, delivery));
  }
}

}  // namespace
}  // namespace uet::ses::test
