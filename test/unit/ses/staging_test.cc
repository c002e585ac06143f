// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/staging.h"

#include <map>

#include "unit/ses/operation_harness.h"

namespace uet::ses::test {
namespace {

constexpr std::uint32_t kPackets = 4;                      // of a train
constexpr std::size_t kChunk = std::size_t{16} * kMtu;     // four trains
constexpr std::uint64_t kLong = std::uint64_t{64} * kMtu;  // four chunks

// Memory that is counted, and of which there may be none.
class CountedMemory final : public StagingMemory {
 public:
  std::byte* take(std::size_t bytes) noexcept override {
    if (taken.size() == most) return nullptr;
    std::byte* memory = HeapStaging::shared().take(bytes);
    taken[memory] = bytes;
    return memory;
  }
  void give_back(std::byte* memory, std::size_t bytes) noexcept override {
    EXPECT_EQ(taken[memory], bytes);
    taken.erase(memory);
    HeapStaging::shared().give_back(memory, bytes);
  }
  std::size_t most = SIZE_MAX;
  std::map<std::byte*, std::size_t> taken;
};

// As FakeDevice, and counts.
class Device final : public DeviceMemory {
 public:
  explicit Device(StagingMemory& memory) : memory_(memory) {}
  void place(std::byte*, std::span<const std::byte>) noexcept override {}
  void fetch(std::span<std::byte> bytes, const std::byte* there) noexcept override {
    FakeDevice().fetch(bytes, there);
    ++fetches;
  }
  StagingMemory& staging() noexcept override { return memory_; }
  void fetch_staged(std::span<std::byte> bytes, const std::byte* there) noexcept override {
    FakeDevice().fetch(bytes, there);
    ++copies;
  }
  int fetches = 0;
  int copies = 0;

 private:
  StagingMemory& memory_;
};

class StagingTest : public OperationTest {
 protected:
  StagingTest() {
    parameters.payload_mtu = kMtu;
    parameters.staging_chunk_bytes = kChunk;
    parameters.staging_bytes = 2 * kChunk;
    staging.emplace(parameters, counters);
    staging->attach(delivery);
  }
  void TearDown() override {
    while (!context.transmitting.empty()) close_staged(context.transmitting.front());
    EXPECT_EQ(counters.staging_bytes, 0u);
    staging.reset();
    EXPECT_TRUE(memory.taken.empty());
    OperationTest::TearDown();
  }

  TxMessage& open_on_device(std::uint64_t length = kLong) {
    TxMessage& message = open(length);
    message.iov_count = 1;
    message.iov[0] = {bytes.data(), length, &device};
    return message;
  }
  TxMessage& begin(std::uint64_t length = kLong) {
    TxMessage& message = open_on_device(length);
    EXPECT_TRUE(staging->begin(message));
    return message;
  }
  void close_staged(TxMessage& message) {
    staging->drop(message);
    close(message);
  }
  // Makes packets until there are so many, or no chunk is free: how many. Their tags are kept.
  std::size_t make(TxMessage& message, std::size_t most = SIZE_MAX) {
    std::size_t made = 0;
    for (; made < most && message.offset < message.length; ++made) {
      std::array<Slice, 2> payload;
      std::uint32_t tag = 0;
      const auto length = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(kMtu, message.length - message.offset));
      if (!staging->point_next(message, length, payload, tag)) break;
      expect_bytes(message.offset, length, payload);
      EXPECT_GE(tag, kFirstStaged);
      EXPECT_NE(tag, kNoPiece);
      tags.push_back(tag);
      message.offset += length;
    }
    message.ended = message.offset == message.length;
    return made;
  }
  void expect_bytes(std::uint64_t offset, std::uint32_t length,
                    const std::array<Slice, 2>& payload) {
    Bytes wanted(length);
    FakeDevice().fetch(wanted, bytes.data() + offset);
    EXPECT_EQ(payload[0].length, length);
    EXPECT_EQ(payload[1].length, 0u);
    EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), payload[0].data)) << offset;
  }
  void answer(TxMessage& message, std::size_t count) {
    for (; count > 0; --count) {
      staging->answered(message, tags.front());
      tags.pop_front();
    }
  }

  CountedMemory memory;
  Device device{memory};
  Bytes bytes = pattern(kLong);
  std::deque<std::uint32_t> tags;
  std::optional<Staging> staging;
};

TEST_F(StagingTest, CopiesATrainWhenItsFirstPacketIsMade) {
  TxMessage& message = begin();
  EXPECT_EQ(device.copies, 0);
  EXPECT_EQ(make(message, 1), 1u);
  EXPECT_EQ(device.copies, 1);
  EXPECT_EQ(counters.staged_bytes, kPackets * kMtu);
  EXPECT_EQ(make(message, kPackets - 1), kPackets - 1);
  EXPECT_EQ(device.copies, 1);
  EXPECT_EQ(make(message, 1), 1u);
  EXPECT_EQ(device.copies, 2);
  EXPECT_EQ(device.fetches, 0);
}

TEST_F(StagingTest, TakesNoMoreThanTheLimitAndWaits) {
  TxMessage& message = begin();
  EXPECT_EQ(make(message), 2 * kChunk / kMtu);
  EXPECT_EQ(memory.taken.size(), 2u);
  EXPECT_EQ(counters.staging_bytes, 2 * kChunk);
  EXPECT_EQ(make(message), 0u);
  EXPECT_EQ(counters.staging_waits, 1u) << "counted once";
  EXPECT_EQ(delivery.kicks, 0);
  answer(message, kChunk / kMtu - 1);
  EXPECT_EQ(delivery.kicks, 0);
  answer(message, 1);
  EXPECT_EQ(delivery.kicks, 1);
  EXPECT_EQ(make(message), kChunk / kMtu);
  EXPECT_EQ(memory.taken.size(), 2u);
}

TEST_F(StagingTest, GoesThroughLongMessagesWithOneChunk) {
  memory.most = 1;
  TxMessage& message = begin();
  std::size_t made = 0;
  while (!message.ended) {
    const std::size_t now = make(message);
    ASSERT_GT(now, 0u);
    made += now;
    answer(message, now);
  }
  EXPECT_EQ(made, kLong / kMtu);
  EXPECT_EQ(message.trains, nullptr);
  EXPECT_EQ(counters.staging_bytes, 0u);
}

TEST_F(StagingTest, ShortMessagesShareAChunk) {
  for (int i = 0; i < 4; ++i) {
    TxMessage& message = begin(kMtu + 1);
    EXPECT_EQ(make(message), 2u);
  }
  EXPECT_EQ(memory.taken.size(), 1u);
  EXPECT_EQ(counters.staged_bytes, 4u * (kMtu + 1));
}

TEST_F(StagingTest, AnswersInAnyOrderFreeTheirOwnTrain) {
  TxMessage& message = begin();
  make(message);
  std::reverse(tags.begin(), tags.end());
  answer(message, kChunk / kMtu);
  EXPECT_EQ(counters.staging_bytes, kChunk);
  EXPECT_EQ(make(message), kChunk / kMtu);
}

// One that was woken may end before it takes the chunk.
TEST_F(StagingTest, AFreeChunkWakesAllThatWait) {
  TxMessage& first = begin();
  make(first);
  TxMessage& second = begin();
  TxMessage& third = begin();
  EXPECT_EQ(make(second) + make(third), 0u);
  EXPECT_EQ(counters.staging_waits, 3u);
  close_staged(first);
  EXPECT_EQ(delivery.kicks, 2);
  close_staged(second);
  EXPECT_EQ(make(third), 2 * kChunk / kMtu);
}

TEST_F(StagingTest, AMessageThatEndsWaitsNoMore) {
  TxMessage& first = begin();
  make(first);
  TxMessage& second = begin();
  make(second);
  close_staged(second);
  close_staged(first);
  EXPECT_EQ(delivery.kicks, 0);
}

TEST_F(StagingTest, APausedMessageKeepsNoIdleTrain) {
  TxMessage& message = begin();
  make(message, 2);
  answer(message, 2);
  EXPECT_EQ(counters.staging_bytes, kChunk) << "the next packets are in it";
  staging->pause(message);
  EXPECT_EQ(counters.staging_bytes, 0u);
}

TEST_F(StagingTest, WithoutOneChunkNothingBegins) {
  memory.most = 0;
  EXPECT_FALSE(staging->begin(open_on_device()));
}

TEST_F(StagingTest, ReadsOfAMessageShareATrain) {
  TxMessage& message = begin();
  std::vector<Train*> read;
  for (std::uint64_t offset = 100; offset < 100 + kPackets * kMtu; offset += kMtu) {
    std::array<Slice, 2> payload;
    read.push_back(staging->point_at(message, offset, kMtu, payload));
    ASSERT_NE(read.back(), nullptr);
    expect_bytes(offset, kMtu, payload);
    staging->read(message, *read.back());
  }
  EXPECT_EQ(device.copies, 1);
  std::array<Slice, 2> payload;
  Train* next = staging->point_at(message, 100 + kPackets * kMtu, kMtu, payload);
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(next, message.trains);
  EXPECT_EQ(next->next, nullptr) << "the train before has ended";
}

TEST_F(StagingTest, BytesOfTheCpuBesideThoseOfADevice) {
  TxMessage& message = open(kMtu + 8);
  Bytes host = pattern(8, 9);
  message.iov_count = 2;
  message.iov[0] = {host.data(), host.size()};
  message.iov[1] = {bytes.data(), kMtu, &device};
  ASSERT_TRUE(staging->begin(message));
  std::array<Slice, 2> payload;
  std::uint32_t tag = 0;
  ASSERT_TRUE(staging->point_next(message, kMtu, payload, tag));
  EXPECT_TRUE(std::equal(host.begin(), host.end(), payload[0].data));
  EXPECT_EQ(payload[0].data[8], ~bytes[0]);
}

// ---- the life of an operation ------------------------------------------------------------------

Parameters two_chunks() {
  Parameters parameters = small_parameters();
  parameters.payload_mtu = kMtu;
  parameters.staging_chunk_bytes = kChunk;
  parameters.staging_bytes = 2 * kChunk;
  return parameters;
}

class StagedOperation : public ::testing::Test {
 protected:
  Result<void> write(void* operation = nullptr) {
    const Peer peer = b.peer();
    const IoSlice slice{bytes.data(), bytes.size(), &device};
    RmaOp op;
    op.peer = &peer;
    op.local = {&slice, 1};
    op.context = operation;
    return a.ses.initiator().post(*a.context, op, kNow);
  }
  std::uint64_t in_use() { return a.ses.counters().staging_bytes; }

  Node a{1, two_chunks()};
  Node b{2, two_chunks()};
  FakeDevice device;
  Bytes bytes = pattern(kLong);
};

TEST_F(StagedOperation, GoesOnWithTheChunksThatComeBack) {
  ASSERT_TRUE(write());
  EXPECT_EQ(in_use(), 0u) << "no packet was made yet";
  std::size_t made = 0;
  while (a.sink.all.empty()) {
    const auto packets = a.packets();
    ASSERT_FALSE(packets.empty());
    EXPECT_LE(in_use(), 2 * kChunk);
    made += packets.size();
    for (const Sent& sent : packets) a.answered(sent, {});
  }
  EXPECT_EQ(made, kLong / kMtu);
  EXPECT_EQ(a.sink.all.front().status, Status::Ok);
  EXPECT_EQ(a.ses.counters().staged_bytes, kLong);
  EXPECT_EQ(in_use(), 0u);
  EXPECT_GT(a.delivery.kicks, 0);
}

TEST_F(StagedOperation, PacketsThatFailGiveTheirChunksBack) {
  ASSERT_TRUE(write());
  const auto packets = a.packets();
  ASSERT_GT(in_use(), 0u);
  for (const Sent& sent : packets) {
    sent.message->owner->pds_error(*sent.message, sent.tag, pds::PdsError::RtoExhausted, kNow);
  }
  EXPECT_EQ(in_use(), 0u);
  a.delivery.cancel(*packets.front().message);
  packets.front().message->owner->message_failed(*packets.front().message,
                                                 pds::PdsError::RtoExhausted, kNow);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all.front().status, Status::PdsError);
}

TEST_F(StagedOperation, ACancelledOneKeepsNoChunk) {
  int operation = 0;
  ASSERT_TRUE(write(&operation));
  const auto first = a.packet();
  ASSERT_TRUE(first);
  ASSERT_TRUE(a.ses.cancel(*a.context, &operation, kNow));
  EXPECT_GT(in_use(), 0u) << "its packet may be sent again";
  a.answered(*first, {});
  EXPECT_EQ(in_use(), 0u);
  const auto end = a.packets();
  ASSERT_EQ(end.size(), 1u) << "MSG_ERROR";
  a.answered(end.front(), {});
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all.front().status, Status::Cancelled);
}

}  // namespace
}  // namespace uet::ses::test
