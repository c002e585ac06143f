// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "nic/rails.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>

namespace uet::nic {
namespace {

using std::chrono::milliseconds;

FabricAddress ip(std::uint8_t rail, std::uint8_t host) {
  FabricAddress address;
  address.bytes = {10, 0, rail, host};
  return address;
}

struct Datagram {
  std::vector<std::byte> bytes;
  FepAddress from;
  FepAddress to;
};

// The fake NICs send through it. A rail may lose all its packets.
struct Wire {
  std::map<std::array<std::uint8_t, 16>, std::deque<Datagram>> queues;
  std::array<bool, RailsNic::kMostRails> cut{};
};

class FakeNic final : public Nic {
 public:
  FakeNic(Wire& wire, const FabricAddress& ip) : wire_(wire), address_{.ip = ip} {}
  std::size_t rx_burst(std::span<RxPacket> out, Time) override {
    lent_.clear();
    auto& queue = wire_.queues[address_.ip.bytes];
    std::size_t count = 0;
    for (; count < out.size() && !queue.empty(); ++count) {
      lent_.push_back(std::move(queue.front()));
      queue.pop_front();
      out[count] = RxPacket{.bytes = lent_.back().bytes, .source = lent_.back().from};
    }
    return count;
  }
  std::size_t tx_burst(std::span<const Packet* const> in) override {
    std::size_t taken = 0;
    for (; taken < in.size() && room > 0; ++taken, --room) {
      const Packet& packet = *in[taken];
      ++sent;
      Datagram datagram{.bytes = {}, .from = address_, .to = packet.to};
      datagram.bytes.assign(packet.head().begin(), packet.head().end());
      for (const Slice& slice : packet.payload)
        datagram.bytes.insert(datagram.bytes.end(), slice.data, slice.data + slice.length);
      if (!wire_.cut[address_.ip.bytes[2]]) wire_.queues[packet.to.ip.bytes].push_back(datagram);
    }
    return taken;
  }
  const NicCaps& caps() const override { return caps_; }
  FepAddress local_address() const override { return address_; }

  std::size_t room = SIZE_MAX;  // so many packets more are taken
  std::size_t sent = 0;

 private:
  Wire& wire_;
  FepAddress address_;
  NicCaps caps_;
  std::deque<Datagram> lent_;
};

// A host with two rails.
struct Host {
  Host(Wire& wire, std::uint8_t number) {
    std::vector<RailsNic::Rail> all;
    for (std::uint8_t rail = 0; rail < 2; ++rail) {
      auto nic = std::make_unique<FakeNic>(wire, ip(rail, number));
      rails[rail] = nic.get();
      all.push_back({std::move(nic), ""});
    }
    nic = std::make_unique<RailsNic>(std::move(all), number);
  }
  // Packets of one burst, as many as there are entropy values, with the value as their content.
  std::size_t send(const Host& to, std::uint16_t entropies) {
    std::vector<Packet> packets(entropies);
    std::vector<const Packet*> burst;
    for (std::uint16_t i = 0; i < entropies; ++i) {
      packets[i].reset();
      *packets[i].append(1) = static_cast<std::byte>(i);
      packets[i].to = to.nic->local_address();
      packets[i].entropy = i;
      burst.push_back(&packets[i]);
    }
    return nic->tx_burst(burst);
  }
  // The sources of the packets that have come, by content.
  std::map<int, FepAddress> receive(Time now) {
    std::map<int, FepAddress> came;
    std::array<RxPacket, kRxBurst> out;
    const std::size_t count = nic->rx_burst(out, now);
    for (std::size_t i = 0; i < count; ++i)
      came.emplace(static_cast<int>(out[i].bytes[0]), out[i].source);
    return came;
  }
  void learn(const Host& other) {
    nic->learn_further(other.nic->local_address(), other.nic->further_addresses());
  }
  std::array<FakeNic*, 2> rails{};
  std::unique_ptr<RailsNic> nic;
};

class Rails : public ::testing::Test {
 protected:
  // Packets both ways for some time, so that ways are proved, or given up.
  void talk(Duration duration) {
    for (const Time end = now + duration; now < end; now += std::chrono::microseconds(200)) {
      a.send(b, 4);
      b.receive(now);
      b.send(a, 4);
      a.receive(now);
    }
  }
  // Of four packets from a to b, those over rail 1.
  std::size_t over_rail_1() {
    const std::size_t before = a.rails[1]->sent;
    a.send(b, 4);
    b.receive(now);
    return a.rails[1]->sent - before;
  }
  Wire wire;
  Host a{wire, 1};
  Host b{wire, 2};
  Time now{milliseconds(1000)};
};

TEST_F(Rails, SpreadTheEntropiesOnceBothEndsKnowThem) {
  a.learn(b);
  b.learn(a);
  EXPECT_EQ(over_rail_1(), 1U) << "the Hello alone";
  talk(milliseconds(1));
  EXPECT_EQ(over_rail_1(), 2U);
  a.send(b, 4);
  const auto came = b.receive(now);
  ASSERT_EQ(came.size(), 4U);
  for (const auto& [content, source] : came) EXPECT_EQ(source, a.nic->local_address());
}

TEST_F(Rails, AreProvedToAPeerThatDoesNotKnowThem) {
  a.learn(b);
  talk(milliseconds(1));
  EXPECT_EQ(over_rail_1(), 2U);
  const std::size_t before = b.rails[1]->sent;
  b.send(a, 4);
  EXPECT_EQ(b.rails[1]->sent - before, 2U) << "the peer answers over both";
}

TEST_F(Rails, APeerWithOneAddressGetsItsPacketsThere) {
  talk(milliseconds(20));
  EXPECT_EQ(a.rails[1]->sent, 0U);
}

// A stranger claims to be a further address of a.
TEST_F(Rails, AForgedAddressIsNotTaken) {
  a.learn(b);
  talk(milliseconds(1));
  FakeNic stranger(wire, ip(1, 9));
  RailMessage hello{.kind = RailMessage::Kind::Hello, .rail = 1, .port = kUetUdpPort};
  hello.address = {10, 0, 0, 1};
  RailMessage proof{.kind = RailMessage::Kind::Proof, .rail = 1, .address = {10, 0, 1, 9}};
  for (const RailMessage& message : {hello, proof}) {
    const auto bytes = message.encode();
    wire.queues[ip(1, 2).bytes].push_back(
        {{bytes.begin(), bytes.end()}, stranger.local_address(), {}});
    wire.queues[ip(0, 2).bytes].push_back(
        {{bytes.begin(), bytes.end()}, a.nic->local_address(), {}});
  }
  wire.queues[ip(1, 2).bytes].push_back({{std::byte{77}}, stranger.local_address(), {}});
  now += milliseconds(1);
  b.receive(now);
  wire.queues[ip(1, 2).bytes].push_back({{std::byte{77}}, stranger.local_address(), {}});
  EXPECT_FALSE(b.receive(now).contains(77));
}

// A stranger that invents the peer's address cannot say that the peer takes our packets.
TEST_F(Rails, AForgedAnswerProvesNothing) {
  a.learn(b);
  const RailMessage known{.kind = RailMessage::Kind::Known, .rail = 1};
  const auto bytes = known.encode();
  wire.queues[ip(1, 1).bytes].push_back({{bytes.begin(), bytes.end()}, {.ip = ip(1, 2)}, {}});
  a.receive(now);
  EXPECT_EQ(over_rail_1(), 1U) << "the Hello alone";
}

// The peer's second interface has another address: the old one is a stranger's.
TEST_F(Rails, AnAddressThatWasReplacedIsNotTaken) {
  b.learn(a);
  const std::vector<FabricAddress> other{ip(1, 7)};
  b.nic->learn_further(a.nic->local_address(), other);
  wire.queues[ip(1, 2).bytes].push_back({{std::byte{77}}, {.ip = ip(1, 1)}, {}});
  EXPECT_FALSE(b.receive(now).contains(77));
  wire.queues[ip(1, 2).bytes].push_back({{std::byte{78}}, {.ip = ip(1, 7)}, {}});
  EXPECT_TRUE(b.receive(now).contains(78));
}

TEST_F(Rails, ASilentRailIsLeftAndTakenAgain) {
  a.learn(b);
  b.learn(a);
  talk(milliseconds(1));
  wire.cut[1] = true;
  talk(RailPeers::kSilence + RailPeers::kAnswer + milliseconds(1));
  std::size_t hellos = 0;
  for (int i = 0; i < 10; ++i) hellos += over_rail_1();
  EXPECT_LE(hellos, 1U);
  a.send(b, 4);
  EXPECT_EQ(b.receive(now).size(), 4U);
  wire.cut[1] = false;
  talk(2 * RailPeers::kLongestPause);
  EXPECT_EQ(over_rail_1(), 2U);
}

// Rail 0, whose address names the peer, is not special.
TEST_F(Rails, TheFirstRailMayBeSilentToo) {
  a.learn(b);
  b.learn(a);
  talk(milliseconds(1));
  wire.cut[0] = true;
  talk(RailPeers::kSilence + RailPeers::kAnswer + milliseconds(1));
  a.send(b, 4);
  EXPECT_EQ(b.receive(now).size(), 4U);
}

TEST_F(Rails, ARestartedPeerProvesAgain) {
  a.learn(b);
  talk(milliseconds(1));
  b.nic.reset();
  b = Host(wire, 2);
  a.send(b, 4);
  b.receive(now += milliseconds(2));
  a.receive(now);
  EXPECT_LE(over_rail_1(), 1U) << "the Hello alone";
  talk(milliseconds(20));
  EXPECT_EQ(over_rail_1(), 2U);
}

TEST_F(Rails, AFullRailLeavesItsPacketsToTheOther) {
  a.learn(b);
  b.learn(a);
  talk(milliseconds(1));
  a.rails[1]->room = 0;
  EXPECT_EQ(a.send(b, 4), 4U);
  EXPECT_EQ(b.receive(now).size(), 4U);
}

TEST_F(Rails, HeldPacketsLeaveFirst) {
  a.learn(b);
  b.learn(a);
  talk(milliseconds(1));
  a.rails[0]->room = 1;
  a.rails[1]->room = 0;
  EXPECT_EQ(a.send(b, 4), 4U) << "copied";
  EXPECT_EQ(a.send(b, 4), 0U);
  EXPECT_NE(a.nic->next_deadline(), kNever);
  EXPECT_EQ(b.receive(now).size(), 1U);
  a.rails[0]->room = a.rails[1]->room = SIZE_MAX;
  a.receive(now);
  EXPECT_EQ(b.receive(now).size(), 3U);
  b.send(a, 4);
  a.receive(now);
  a.receive(now += RailPeers::kSilence);
  EXPECT_EQ(a.nic->next_deadline(), kNever) << "all is answered, nothing is held";
}

// ---- rails that are lost ------------------------------------------------------------------------

TEST_F(Rails, APacketSaysWhichRailItTook) {
  a.learn(b);
  b.learn(a);
  talk(milliseconds(1));
  std::array<Packet, 2> packets;
  for (std::uint16_t i = 0; i < 2; ++i) {
    packets[i].reset();
    packets[i].to = b.nic->local_address();
    packets[i].entropy = i;
    const std::array<const Packet*, 1> burst{&packets[i]};
    a.nic->tx_burst(burst);
    EXPECT_EQ(packets[i].rail, i);
  }
}

TEST_F(Rails, ASilentRailIsReportedOnce) {
  a.learn(b);
  b.learn(a);
  talk(milliseconds(1));
  EXPECT_FALSE(a.nic->poll_lost_rail());
  wire.cut[1] = true;
  talk(RailPeers::kSilence + RailPeers::kAnswer + milliseconds(1));
  const auto lost = a.nic->poll_lost_rail();
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->peer, b.nic->local_address());
  EXPECT_EQ(lost->rail, 1);
  EXPECT_FALSE(a.nic->poll_lost_rail());
}

// While no rail works packets leave all the same, as the peer may be reached after all.
TEST_F(Rails, PacketsWithoutARailAreLostWhenThereIsOne) {
  a.learn(b);
  b.learn(a);
  talk(milliseconds(1));
  a.nic->carrier_changed(0, false);
  a.nic->carrier_changed(1, false);
  while (a.nic->poll_lost_rail()) {
  }
  a.send(b, 4);
  a.send(b, 4);
  EXPECT_FALSE(a.nic->poll_lost_rail()) << "there is none to take";
  a.nic->carrier_changed(1, true);
  a.send(b, 1);
  const auto lost = a.nic->poll_lost_rail();
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->peer, b.nic->local_address());
  EXPECT_EQ(lost->rail, RailPeers::kLastResort);
  a.send(b, 4);
  EXPECT_FALSE(a.nic->poll_lost_rail()) << "once";
}

// A window may be full of what left by the silent rail: nothing leaves and nothing else comes.
TEST_F(Rails, ASilentRailIsFoundWithoutTraffic) {
  a.learn(b);
  b.learn(a);
  talk(milliseconds(1));
  wire.cut[1] = true;
  a.send(b, 4);
  for (const Time end = now + milliseconds(4); now < end;) {
    now = std::min(end, std::max(now + std::chrono::microseconds(10), a.nic->next_deadline()));
    a.receive(now);
    b.receive(now);
    a.receive(now);
  }
  const auto lost = a.nic->poll_lost_rail();
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->rail, 1);
}

// Nothing says that the rail is silent and not the peer.
TEST_F(Rails, APeerThatComputesLosesNoRail) {
  a.learn(b);
  b.learn(a);
  talk(milliseconds(1));
  a.send(b, 4);
  for (int i = 0; i < 100; ++i) a.receive(now += milliseconds(1));
  a.send(b, 4);
  EXPECT_FALSE(a.nic->poll_lost_rail());
  for (int i = 0; i < 10; ++i) {  // it takes what has come: both Hellos are answered
    b.receive(now += milliseconds(1));
    a.receive(now);
  }
  EXPECT_FALSE(a.nic->poll_lost_rail());
}

// The peer's end of rail 1 has no carrier any more, and it says so over rail 0.
TEST_F(Rails, APeerThatSaysGoneIsBelieved) {
  b.learn(a);
  talk(milliseconds(1));
  const auto forged = RailMessage{.kind = RailMessage::Kind::Gone, .rail = 1, .cookie = 1}.encode();
  wire.queues[ip(0, 2).bytes].push_back({{forged.begin(), forged.end()}, {.ip = ip(0, 1)}, {}});
  b.receive(now);
  EXPECT_FALSE(b.nic->poll_lost_rail());
  a.nic->carrier_changed(1, false);
  const auto own = a.nic->poll_lost_rail();
  ASSERT_TRUE(own);
  EXPECT_FALSE(own->peer) << "lost to all";
  EXPECT_EQ(a.nic->next_deadline(), Time{}) << "peers are told after the ACKs that leave now";
  a.receive(now);
  b.receive(now);
  const auto lost = b.nic->poll_lost_rail();
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->peer, a.nic->local_address());
  EXPECT_EQ(lost->rail, 1);
  const std::size_t before = b.rails[1]->sent;
  b.send(a, 4);
  EXPECT_EQ(b.rails[1]->sent, before);
  talk(RailPeers::kFirstPause + milliseconds(1));
  a.nic->carrier_changed(1, true);
  talk(2 * RailPeers::kLongestPause);
  const std::size_t mended = b.rails[1]->sent;
  b.send(a, 4);
  EXPECT_EQ(b.rails[1]->sent - mended, 2U);
}

}  // namespace
}  // namespace uet::nic
