// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The ring between two processes: what is put comes out whole and in order, a full ring refuses,
// and nonsense in the shared words is found out.
#include "nic/shared_ring.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "nic/middleware.h"
#include "nic/shared_memory.h"
#include "nic_testing.h"

namespace uet::nic {
namespace {

constexpr std::size_t kCapacity = kMinRingBytes;
const FepAddress kPeer{ipv4(127, 0, 0, 1), 4794};

struct SharedRing : ::testing::Test {
  SharedMemory memory = SharedMemory::create(ring_memory_bytes(kCapacity)).value();
  RingProducer producer{memory.bytes()};
  RingConsumer consumer{memory.bytes()};
  RingControl& control = *reinterpret_cast<RingControl*>(memory.bytes().data());
  PacketSet packets;
  RxPacket out;

  RingConsumer::Next next() {
    consumer.look();
    return consumer.next(out);
  }
  // Overwrites what the producer has written at a place of the ring.
  template <class T>
  void scribble(std::size_t place, T value) {
    std::memcpy(memory.bytes().data() + kRingControlBytes + place, &value, sizeof value);
  }
};

TEST_F(SharedRing, PacketComesOutWithItsMarks) {
  packets.add(kPeer, 20, 100, 33);
  packets.last().ecn = Ecn::Ect0;
  packets.last().dscp = 46;
  packets.last().entropy = 777;
  ASSERT_TRUE(producer.put(packets.last()));
  EXPECT_TRUE(consumer.empty()) << "not published";
  EXPECT_EQ(next(), RingConsumer::Next::Empty);
  EXPECT_FALSE(producer.publish());
  EXPECT_FALSE(consumer.empty());
  ASSERT_EQ(next(), RingConsumer::Next::Packet);
  EXPECT_EQ(Arrival(out).bytes, packets.bytes(0));
  EXPECT_EQ(out.ecn, Ecn::Ect0);
  EXPECT_EQ(out.dscp, 46);
  EXPECT_EQ(out.entropy, 777);
  EXPECT_EQ(next(), RingConsumer::Next::Empty);
}

TEST_F(SharedRing, DeviceMemory_IsCopiedByTheDriver) {
  InvertedMemory device;
  packets.add(kPeer, 20, 100);
  packets.last().device = &device;
  ASSERT_TRUE(producer.put(packets.last()));
  producer.publish();
  ASSERT_EQ(next(), RingConsumer::Next::Packet);
  EXPECT_EQ(out.bytes[119], ~packets.bytes(0)[119]);
}

// Pages of the memory that exist.
std::size_t resident_pages(const SharedMemory& memory) {
  const std::size_t page = 4096;
  std::vector<unsigned char> pages(memory.bytes().size() / page);
  if (::mincore(memory.bytes().data(), memory.bytes().size(), pages.data()) != 0) return 0;
  return static_cast<std::size_t>(
      std::count_if(pages.begin(), pages.end(), [](unsigned char one) { return (one & 1) != 0; }));
}

TEST_F(SharedRing, FirstPacket_TakesFewPagesAtOnce) {
  if (::madvise(memory.bytes().data(), 4096, MADV_POPULATE_WRITE) != 0) {
    GTEST_SKIP() << "this kernel maps no pages in advance (Linux 5.14)";
  }
  const std::size_t before = resident_pages(memory);
  packets.add(kPeer, 20, 8);
  ASSERT_TRUE(producer.put(packets.last()));
  EXPECT_EQ(resident_pages(memory) - before, 4);
  producer.publish();
  ASSERT_EQ(next(), RingConsumer::Next::Packet);
  EXPECT_EQ(resident_pages(memory) - before, 4) << "the consumer's are the same";
}

// Messages of 64 KiB, each of which finds the ring empty, do not go through all of its memory; a
// stream that the consumer is behind does.
TEST(SharedRingMemory, BurstsIntoAnEmptyRing_StayInItsFirstPart) {
  constexpr std::size_t kBytes = 1 << 20;
  constexpr int kPackets = 9;  // of a burst
  SharedMemory memory = SharedMemory::create(ring_memory_bytes(kBytes)).value();
  RingProducer producer{memory.bytes()};
  RingConsumer consumer{memory.bytes()};
  PacketSet packets;
  packets.add(kPeer, 20, 8000);
  RxPacket out;
  int waiting = 0;
  const auto put = [&] {
    for (int i = 0; i < kPackets; ++i) ASSERT_TRUE(producer.put(packets.last()));
    producer.publish();
    waiting += kPackets;
  };
  const auto take = [&](int count) {
    consumer.look();
    for (; count > 0; --count, --waiting) {
      ASSERT_EQ(consumer.next(out), RingConsumer::Next::Packet);
      ASSERT_EQ(Arrival(out).bytes, packets.bytes(0));
    }
    consumer.release();
  };
  for (int burst = 0; burst < 100; ++burst) {
    put();
    take(kPackets);
  }
  EXPECT_LE(resident_pages(memory), (512 * 1024) / 4096 + 1);
  put();
  for (int burst = 0; burst < 100; ++burst) {
    put();
    take(kPackets);
  }
  take(waiting);
  EXPECT_GE(resident_pages(memory), (kBytes * 3 / 4) / 4096);
}

TEST_F(SharedRing, PacketsAfterLastLook_AreNotHandedOut) {
  packets.add(kPeer, 20, 0);
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(producer.put(packets.last()));
    producer.publish();
    EXPECT_EQ(consumer.next(out), RingConsumer::Next::Empty);
    consumer.look();
    ASSERT_TRUE(producer.put(packets.last()));
    producer.publish();
    EXPECT_EQ(consumer.next(out), RingConsumer::Next::Packet);
    EXPECT_EQ(consumer.next(out), RingConsumer::Next::Empty);
    ASSERT_EQ(next(), RingConsumer::Next::Packet);
  }
}

TEST_F(SharedRing, LongestPacketFitsAndALongerOneNever) {
  packets.add(kPeer, 100, kMaxDatagramBytes - 100);
  const Packet& longest = packets.last();
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(producer.put(longest)) << round;
    producer.publish();
    ASSERT_EQ(next(), RingConsumer::Next::Packet);
    EXPECT_EQ(Arrival(out).bytes, packets.bytes(0));
    consumer.release();
  }
  packets.add(kPeer, 100, kMaxDatagramBytes - 99);
  EXPECT_FALSE(producer.put(packets.last()));
}

TEST_F(SharedRing, FullRingHasSpaceAgainOnlyAfterRelease) {
  packets.add(kPeer, 24, 1000);
  std::size_t fitting = 0;
  while (producer.put(packets.last())) ++fitting;
  EXPECT_EQ(fitting, kCapacity / 1088) << "records of a header of 8 bytes in steps of 64";
  producer.publish();
  for (std::size_t i = 0; i < fitting; ++i) {
    ASSERT_EQ(next(), RingConsumer::Next::Packet) << i;
  }
  EXPECT_FALSE(producer.put(packets.last())) << "what was handed out is still being read";
  consumer.release();
  EXPECT_TRUE(producer.put(packets.last()));
}

// Random lengths, many times around; the consumer lags behind by a random amount.
TEST_F(SharedRing, OrderAndContentsHoldAroundTheEnd) {
  Rng rng(7);
  std::array<std::byte, 9000> payload;
  for (auto& byte : payload) byte = static_cast<std::byte>(rng.below(256));
  std::uint32_t put = 0;
  std::uint32_t taken = 0;
  std::vector<std::uint32_t> lengths;
  while (taken < 20'000) {
    for (std::uint64_t i = rng.below(40); i > 0; --i) {
      Packet packet;
      std::memcpy(packet.append(sizeof put), &put, sizeof put);
      const auto length =
          static_cast<std::uint32_t>(rng.chance(0.5) ? rng.below(64) : rng.below(payload.size()));
      packet.payload[0] = {payload.data(), length};
      if (!producer.put(packet)) break;
      lengths.push_back(length);
      ++put;
    }
    producer.publish();
    for (std::uint64_t i = rng.below(40); i > 0; --i) {
      if (next() != RingConsumer::Next::Packet) break;
      ASSERT_EQ(number_of(out), taken);
      ASSERT_EQ(out.bytes.size(), sizeof put + lengths[taken]);
      ASSERT_EQ(std::memcmp(out.bytes.data() + sizeof put, payload.data(), lengths[taken]), 0);
      ++taken;
    }
    consumer.release();
  }
}

TEST_F(SharedRing, LightTrafficStaysInTheFirstPart) {
  packets.add(kPeer, 24, 1000);
  const std::byte* furthest = memory.bytes().data();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(producer.put(packets.last()));
    producer.publish();
    ASSERT_EQ(next(), RingConsumer::Next::Packet);
    furthest = std::max(furthest, out.bytes.data() + out.bytes.size());
    consumer.release();
  }
  EXPECT_LE(furthest - memory.bytes().data(), std::ptrdiff_t{kRingControlBytes + 64 * 1024});
}

TEST_F(SharedRing, SleepIsToldToTheProducerOnce) {
  packets.add(kPeer, 24, 0);
  consumer.announce_sleep();
  ASSERT_TRUE(producer.put(packets.last()));
  EXPECT_TRUE(producer.publish());
  ASSERT_TRUE(producer.put(packets.last()));
  EXPECT_FALSE(producer.publish());
  consumer.announce_sleep();
  EXPECT_TRUE(producer.publish());
}

// The order of announce_sleep, fence, empty() against put, publish(): one of the two must notice.
TEST_F(SharedRing, NoWakeUpIsMissedBetweenTwoThreads) {
  constexpr int kPackets = 20'000;
  packets.add(kPeer, 24, 0);
  std::atomic<int> bells{0};
  std::thread sender([&] {
    for (int i = 0; i < kPackets; ++i) {
      while (!producer.put(packets.last())) std::this_thread::yield();
      if (producer.publish()) {
        bells.fetch_add(1);
        bells.notify_one();
      }
    }
  });
  for (int taken = 0; taken < kPackets;) {
    const int before = bells.load();
    consumer.announce_sleep();
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (consumer.empty()) bells.wait(before);  // hangs if a wake-up is missed
    while (next() == RingConsumer::Next::Packet) ++taken;
    consumer.release();
  }
  sender.join();
}

TEST_F(SharedRing, TailOutsideTheRingIsBroken) {
  control.tail = kCapacity + 64;
  EXPECT_EQ(next(), RingConsumer::Next::Broken);
}

TEST_F(SharedRing, TailBetweenRecordsIsBroken) {
  control.tail = 100;
  EXPECT_EQ(next(), RingConsumer::Next::Broken);
}

TEST_F(SharedRing, LengthBeyondWhatWasPutIsBroken) {
  packets.add(kPeer, 24, 0);
  ASSERT_TRUE(producer.put(packets.last()));
  producer.publish();
  for (const std::uint32_t length : {57U, 65'000U, 65'537U, 0x7FFFFFFFU, 0xFFFFFFFEU}) {
    scribble(0, length);
    EXPECT_EQ(next(), RingConsumer::Next::Broken) << length;
  }
  scribble(0, 56U);
  EXPECT_EQ(next(), RingConsumer::Next::Packet);
}

TEST_F(SharedRing, SkipsWithoutEndAreBroken) {
  scribble(0, 0xFFFFFFFFU);
  control.tail = kCapacity;
  EXPECT_EQ(next(), RingConsumer::Next::Broken);
}

TEST_F(SharedRing, SkipBeyondWhatWasPutIsBroken) {
  packets.add(kPeer, 24, 0);
  ASSERT_TRUE(producer.put(packets.last()));
  producer.publish();
  ASSERT_EQ(next(), RingConsumer::Next::Packet);
  scribble(64, 0xFFFFFFFFU);
  control.tail = 128;
  EXPECT_EQ(next(), RingConsumer::Next::Broken);
}

TEST_F(SharedRing, HeadThatRanAheadGivesNoSpace) {
  packets.add(kPeer, 24, 1000);
  control.head = 1'000'000;
  while (producer.put(packets.last())) {
  }
  control.head = UINT64_MAX;
  EXPECT_FALSE(producer.put(packets.last()));
}

TEST(SharedMemory, OtherSizesAndUnsealedMemoryAreRefused) {
  auto memory = SharedMemory::create(8192);
  ASSERT_TRUE(memory);
  const auto attach = [](int fd, std::size_t bytes) {
    return SharedMemory::attach(FileDescriptor(::dup(fd)), bytes);
  };
  memory.value().bytes()[5] = std::byte{42};
  const auto other = attach(memory.value().fd(), 8192);
  ASSERT_TRUE(other);
  EXPECT_EQ(other.value().bytes()[5], std::byte{42});
  EXPECT_EQ(attach(memory.value().fd(), 4096).error(), Error::Invalid);
  EXPECT_NE(::ftruncate(memory.value().fd(), 4096), 0) << "it cannot shrink under a reader";
  const FileDescriptor unsealed(::memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(unsealed.get(), 8192), 0);
  EXPECT_EQ(attach(unsealed.get(), 8192).error(), Error::Invalid);
  EXPECT_EQ(attach(-1, 8192).error(), Error::Invalid);
}

}  // namespace
}  // namespace uet::nic
