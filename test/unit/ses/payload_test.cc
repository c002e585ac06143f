// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/payload.h"

#include "unit/ses/operation_harness.h"

namespace uet::ses::test {
namespace {

class PayloadTest : public OperationTest {
 protected:
  // A send of slices with these lengths, one behind the other in `memory`.
  TxMessage& send(std::initializer_list<std::size_t> lengths) {
    std::size_t total = 0;
    for (const std::size_t length : lengths) total += length;
    memory = pattern(total);
    TxMessage& message = open(total);
    std::byte* at = memory.data();
    for (const std::size_t length : lengths) {
      message.iov[message.iov_count++] = IoSlice{at, length};
      at += length;
    }
    return message;
  }
  // The payload of the next packet, in one piece.
  Bytes next(TxMessage& message) {
    const std::uint32_t length = piece_length(message, message.offset, kMtu);
    std::array<Slice, 2> parts{};
    point_next(message, length, parts);
    message.offset += length;
    Bytes bytes;
    for (const Slice& part : parts) bytes.insert(bytes.end(), part.data, part.data + part.length);
    return bytes;
  }
  void give_back(TxMessage& message) { pieces.give_back_all(message.gathered); }

  Bytes memory;
  BufferPool buffers{kMtu, 2};
  PieceStore pieces{buffers};
};

TEST_F(PayloadTest, Ses22_AllPiecesButTheLastAreFull) {
  TxMessage& message = send({2 * kMtu + 5});
  EXPECT_EQ(piece_length(message, 0, kMtu), kMtu);
  EXPECT_EQ(piece_length(message, 2 * kMtu, kMtu), 5u);
}

TEST_F(PayloadTest, TwoSlicesAreNotCopied) {
  TxMessage& message = send({kMtu / 2, kMtu});
  ASSERT_TRUE(gather_pieces(message, false, kMtu, pieces));
  EXPECT_EQ(message.gathered, nullptr);
}

TEST_F(PayloadTest, PacketOfThreeSlicesIsCopiedAndOthersAreNot) {
  TxMessage& message = send({kMtu, 10, 20, kMtu - 30, kMtu});
  ASSERT_TRUE(gather_pieces(message, false, kMtu, pieces));
  ASSERT_NE(message.gathered, nullptr);
  EXPECT_EQ(message.gathered->offset, kMtu);
  EXPECT_EQ(message.gathered->next, nullptr);
  Bytes sent;
  while (message.offset < message.length) {
    const Bytes bytes = next(message);
    sent.insert(sent.end(), bytes.begin(), bytes.end());
  }
  EXPECT_EQ(sent, memory);
  give_back(message);
}

TEST_F(PayloadTest, InjectedBytesAreThoseOfTheCall) {
  TxMessage& message = send({100});
  const Bytes before = memory;
  ASSERT_TRUE(gather_pieces(message, true, kMtu, pieces));
  memory.assign(memory.size(), std::byte{0});
  EXPECT_EQ(next(message), before);
  std::array<Slice, 2> parts{};
  ASSERT_TRUE(point_at(message, 10, 50, parts)) << "a target that reads it reads the copy";
  EXPECT_EQ(Bytes(parts[0].data, parts[0].data + 50), Bytes(&before[10], &before[60]));
  give_back(message);
}

TEST_F(PayloadTest, WithoutBufferNothingIsSent) {
  TxMessage& message =
      send({kMtu / 2, 300, kMtu / 2, 300, kMtu / 2, 300, kMtu / 2, 300, kMtu, 1, kMtu});
  EXPECT_FALSE(gather_pieces(message, false, kMtu, pieces));
  give_back(message);
  EXPECT_EQ(buffers.in_use(), 0u);
}

TEST_F(PayloadTest, CopiedPacketCanBeReadFromItsBeginning) {
  TxMessage& message = send({10, 20, 30});
  ASSERT_TRUE(gather_pieces(message, false, kMtu, pieces));
  std::array<Slice, 2> parts{};
  EXPECT_TRUE(point_at(message, 0, 60, parts));
  EXPECT_EQ(parts[0].length, 60u);
  EXPECT_FALSE(point_at(message, 1, 59, parts)) << "three parts, and no copy begins there";
  give_back(message);
}

// ---- device memory -----------------------------------------------------------------------------

class DevicePayloadTest : public PayloadTest {
 protected:
  TxMessage& send_from_device(std::size_t bytes) {
    TxMessage& message = send({bytes});
    message.iov[0].device = &device;
    return message;
  }
  Result<void> hold(TxMessage& message) {
    return hold_payload(message, {false, kMtu / 2, kMtu}, pieces, staging);
  }
  Bytes on_device() {
    Bytes bytes(memory.size());
    device.fetch(bytes, memory.data());
    return bytes;
  }

  FakeDevice device;
  Staging staging{parameters, counters};
};

TEST_F(DevicePayloadTest, FewBytesOfADeviceAreCopiedAtOnce) {
  TxMessage& message = send_from_device(kMtu / 2);
  ASSERT_TRUE(hold(message));
  EXPECT_EQ(message.staging, nullptr);
  EXPECT_EQ(next(message), on_device());
  give_back(message);
}

TEST_F(DevicePayloadTest, MoreAreLeftToStaging) {
  TxMessage& message = send_from_device(kMtu / 2 + 1);
  ASSERT_TRUE(hold(message));
  EXPECT_NE(message.staging, nullptr);
  EXPECT_EQ(message.gathered, nullptr);
  EXPECT_EQ(counters.staged_bytes, 0u);
}

// Memory that the NIC reads.
struct ReadDevice final : DeviceMemory {
  void place(std::byte*, std::span<const std::byte>) noexcept override {}
  void fetch(std::span<std::byte>, const std::byte*) noexcept override { ++fetches; }
  bool is_read_by_nic() const noexcept override { return true; }
  int fetches = 0;
};

TEST_F(DevicePayloadTest, MemoryThatTheNicReads_IsNotCopied) {
  ReadDevice read;
  TxMessage& message = send_from_device(kMtu / 2);
  message.iov[0].device = &read;
  ASSERT_TRUE(hold(message));
  EXPECT_TRUE(points_to_device(message));
  EXPECT_EQ(message.staging, nullptr);
  EXPECT_EQ(message.gathered, nullptr);
  EXPECT_EQ(next(message), memory) << "the packet points to the device's address";
  EXPECT_EQ(read.fetches, 0);
}

// A packet has one device.
TEST_F(DevicePayloadTest, SlicesOfDevices_AreStaged) {
  ReadDevice read;
  TxMessage& message = send({kMtu, kMtu});
  message.iov[0].device = &read;
  message.iov[1].device = &device;
  ASSERT_TRUE(hold(message));
  EXPECT_FALSE(points_to_device(message));
  EXPECT_NE(message.staging, nullptr);
}

TEST_F(DevicePayloadTest, ADatagramWaitsForNoChunk) {
  TxMessage& message = send_from_device(kMtu);
  message.mode = DeliveryMode::Uud;
  ASSERT_TRUE(hold(message));
  EXPECT_EQ(message.staging, nullptr);
  EXPECT_EQ(next(message), on_device());
  give_back(message);
}

}  // namespace
}  // namespace uet::ses::test
