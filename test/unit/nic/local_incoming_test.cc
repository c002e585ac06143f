// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "nic/local_incoming.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "local_ends_testing.h"

namespace uet::nic {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Incomings : ::testing::Test {
  static constexpr std::size_t kDescriptors = 64;  // so that 16 connections are allowed
  LocalIncomings list{kDescriptors};
  NicCounters counters;
  std::vector<std::uint16_t> broken;

  Feed& feed(std::uint16_t id, std::uint64_t number = 1) {
    feeds.push_back(std::make_unique<Feed>(id, number));
    LocalIncoming& added = list.add(std::move(feeds.back()->incoming));
    SharedMemory memory = std::move(*added.memory);
    list.attach(added, std::move(memory));
    return *feeds.back();
  }
  LocalIncoming& silent(std::uint16_t id, Time accepted) {
    auto from = std::make_unique<LocalIncoming>(connected_sockets().first);
    from->id = id;
    from->accepted = accepted;
    return list.add(std::move(from));
  }
  // Connections of the packets that one call of take hands out.
  std::vector<std::uint16_t> take(std::size_t most) {
    std::vector<RxPacket> out(most);
    const std::size_t count = list.take(out, counters, [this](LocalIncoming& from) {
      broken.push_back(from.id);
      list.stop(from);
    });
    std::vector<std::uint16_t> ids;
    for (std::size_t i = 0; i < count; ++i) ids.push_back(out[i].connection);
    return ids;
  }
  std::vector<std::uint16_t> finish_silent(Time now) {
    std::vector<std::uint16_t> ids;
    list.finish_silent(now, [&](LocalIncoming& from) {
      ids.push_back(from.id);
      list.stop(from);
    });
    return ids;
  }
  std::vector<std::uint16_t> free_drained() {
    std::vector<std::uint16_t> ids;
    list.free_drained([&](const LocalIncoming& from) { ids.push_back(from.id); });
    return ids;
  }

  std::vector<std::unique_ptr<Feed>> feeds;
};

TEST_F(Incomings, EachCallBeginsWithAnotherRing) {
  for (const std::uint16_t id : {1, 2, 3}) feed(id).send(2);
  EXPECT_THAT(take(2), ElementsAre(2, 2));
  EXPECT_THAT(take(2), ElementsAre(3, 3));
  EXPECT_THAT(take(3), ElementsAre(1, 1));
  EXPECT_EQ(counters.packets_received, 6U);
  EXPECT_EQ(counters.local_packets_received, 6U);
  EXPECT_EQ(counters.bytes_received, 180U);
}

TEST_F(Incomings, PacketNamesItsPeer) {
  feed(7).send();
  RxPacket packet;
  ASSERT_EQ(list.take({&packet, 1}, counters, [](LocalIncoming&) {}), 1U);
  EXPECT_EQ(packet.source, feeds[0]->end->peer);
  EXPECT_EQ(packet.entropy, 7) << "the port of the peer";
}

TEST_F(Incomings, PacketsOfEndedPeersComeFirstAndAlone) {
  feed(1).send();
  Feed& ended = feed(2);
  ended.send();
  list.stop(*ended.end);
  ended.send();  // after its end
  EXPECT_TRUE(list.any_ended());
  EXPECT_THAT(take(8), ElementsAre(2));
  EXPECT_THAT(free_drained(), ElementsAre(2));
  EXPECT_FALSE(list.any_ended());
  EXPECT_THAT(take(8), ElementsAre(1));
}

TEST_F(Incomings, EndedPeerStaysUntilItsPacketsAreTaken) {
  Feed& ended = feed(1, 5);
  ended.send();
  list.stop(*ended.end);
  EXPECT_THAT(free_drained(), IsEmpty());
  EXPECT_TRUE(list.has_ring_of(ended.end->instance));
  EXPECT_TRUE(list.any_ended());
  EXPECT_THAT(take(1), ElementsAre(1));
  const LocalInstance instance = ended.end->instance;
  EXPECT_THAT(free_drained(), ElementsAre(1));
  EXPECT_FALSE(list.has_ring_of(instance));
  EXPECT_EQ(list.find(1), nullptr);
}

TEST_F(Incomings, MemoryIsThatOfTheRings) {
  Feed& first = feed(1);
  feed(2).send();
  RxPacket packet;
  ASSERT_EQ(list.take({&packet, 1}, counters, [](LocalIncoming&) {}), 1U);
  EXPECT_TRUE(list.memory().contains(packet.bytes.data()));
  EXPECT_FALSE(list.memory().contains(reinterpret_cast<const std::byte*>(&packet)));
  const std::byte* const ring = first.end->memory->bytes().data();
  EXPECT_TRUE(list.memory().contains(ring));
  list.stop(*first.end);
  EXPECT_THAT(free_drained(), ElementsAre(1));
  EXPECT_FALSE(list.memory().contains(ring));
  EXPECT_TRUE(list.memory().contains(packet.bytes.data()));
}

TEST_F(Incomings, BrokenRingIsReportedAndFreed) {
  Feed& bad = feed(1);
  bad.send();
  // The length of the first packet, at the beginning of the data.
  std::memset(bad.end->memory->bytes().data() + kRingControlBytes, 0xFF, 64);
  EXPECT_THAT(take(4), IsEmpty());
  EXPECT_THAT(broken, ElementsAre(1));
  EXPECT_THAT(free_drained(), ElementsAre(1));
}

TEST_F(Incomings, OneProcessHasAQuarterOfAllConnections) {
  LocalInstance stranger{.process = 12345};
  for (std::uint16_t id = 1; id <= 4; ++id) {
    EXPECT_TRUE(list.has_room_for(stranger)) << id;
    silent(id, Time{}).instance = stranger;
  }
  EXPECT_FALSE(list.has_room_for(stranger));
  EXPECT_TRUE(list.has_room_for({.process = 54321}));
  EXPECT_TRUE(list.has_room_for({.process = 0})) << "of another name space: only the sum counts";
}

TEST_F(Incomings, DescriptorsBoundTheirNumber) {
  for (std::uint16_t id = 1; id <= 16; ++id) {
    EXPECT_TRUE(list.has_room_for({.process = 0})) << id;
    silent(id, Time{}).instance.process = 0;
  }
  EXPECT_FALSE(list.has_room_for({.process = 0}));
  EXPECT_FALSE(list.has_room_for({.process = 54321}));
}

TEST_F(Incomings, SilentConnectionEndsAfterAWhile) {
  const Time now{std::chrono::seconds(5)};
  feed(1);
  silent(2, now);
  silent(3, now + Duration(1));
  EXPECT_THAT(finish_silent(now + LocalIncomings::kOfferTime - Duration(1)), IsEmpty());
  EXPECT_THAT(finish_silent(now + LocalIncomings::kOfferTime), ElementsAre(2));
  EXPECT_THAT(finish_silent(now + LocalIncomings::kOfferTime + Duration(1)), ElementsAre(3));
}

TEST_F(Incomings, OldestSilentConnectionsEndIfThereAreTooMany) {
  for (std::uint16_t id = 1; id <= LocalIncomings::kMostSilent + 2; ++id) silent(id, Time{});
  EXPECT_THAT(finish_silent(Time{}), ElementsAre(1, 2));
}

}  // namespace
}  // namespace uet::nic
