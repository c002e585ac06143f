// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The simulator itself: links, queues, partitions, the monitor and the oracles' helpers. An oracle
// that cannot complain proves nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "sim/run_plan.h"
#include "sim/sim_frame.h"
#include "sim/sim_link.h"
#include "sim/sim_nic.h"
#include "sim/stage.h"
#include "sim/wire_monitor.h"

namespace uet::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

LinkConfig one_gigabit() {
  LinkConfig config;
  config.rate_bps = 1'000'000'000;
  config.latency = microseconds(10);
  return config;
}

TEST(SimLink, SerializesOnePacketAfterTheOther) {
  SimLink link(one_gigabit(), 1);
  const Time now = time_from_ns(0);
  EXPECT_EQ(link.send(1000, Ecn::Ect0, now).arrival[0], now + microseconds(18));
  EXPECT_EQ(link.send(1000, Ecn::Ect0, now).arrival[0], now + microseconds(26));
  EXPECT_EQ(link.send(1000, Ecn::Ect0, now + milliseconds(1)).arrival[0],
            now + milliseconds(1) + microseconds(18));
}

TEST(SimLink, FullQueueDropsAndLongQueueMarks) {
  LinkConfig config = one_gigabit();
  config.queue_bytes = 3000;
  config.ecn_threshold_bytes = 1500;
  SimLink link(config, 1);
  EXPECT_EQ(link.send(1000, Ecn::Ect0, Time{}).ecn, Ecn::Ect0);
  EXPECT_EQ(link.send(1000, Ecn::Ect0, Time{}).ecn, Ecn::Ect0);
  EXPECT_EQ(link.send(1000, Ecn::Ect0, Time{}).ecn, Ecn::Ce);
  EXPECT_EQ(link.send(1000, Ecn::Ect0, Time{}).copies, 0);
  EXPECT_EQ(link.counters().queue_drops, 1u);
  EXPECT_EQ(link.send(900, Ecn::NotEct, Time{} + microseconds(8)).ecn, Ecn::NotEct);
}

TEST(SimLink, TrimsDataInsteadOfDroppingIt) {
  LinkConfig config = one_gigabit();
  config.queue_bytes = 1500;
  config.trimming = 1e-9;
  SimLink link(config, 1);
  EXPECT_FALSE(link.send(1000, Ecn::Ect0, Time{}).trimmed);
  const SimLink::Fate data = link.send(1000, Ecn::Ect0, Time{});
  EXPECT_TRUE(data.trimmed);
  EXPECT_EQ(data.copies, 1);
  EXPECT_EQ(link.send(1000, Ecn::NotEct, Time{}).copies, 0);
  EXPECT_EQ(link.counters().trimmed, 1u);
  EXPECT_EQ(link.counters().queue_drops, 1u);
}

TEST(SimLink, FaultsFollowTheSeedAndCanBeSwitchedOff) {
  LinkConfig config = one_gigabit();
  config.queue_bytes = 1 << 30;
  config.loss = 0.3;
  config.duplication = 0.3;
  config.reordering = 0.3;
  SimLink a(config, 7), b(config, 7), quiet(config, 7);
  quiet.set_faults(false);
  for (int i = 0; i < 1000; ++i) {
    const auto first = a.send(100, Ecn::Ect0, Time{}), second = b.send(100, Ecn::Ect0, Time{});
    ASSERT_EQ(first.copies, second.copies);
    ASSERT_EQ(first.arrival[0], second.arrival[0]);
    ASSERT_EQ(quiet.send(100, Ecn::Ect0, Time{}).copies, 1);
  }
  EXPECT_NEAR(static_cast<double>(a.counters().lost), 300, 60);
  EXPECT_GT(a.counters().duplicated, 0u);
  EXPECT_GT(a.counters().reordered, 0u);
}

TEST(SimNic, FullTransmitQueueAcceptsAPrefix) {
  Time now = time_from_ns(1000);
  NicConfig config;
  config.tx_queue = 3;
  config.rate_bps = 1'000'000'000;
  int left = 0;
  SimNic nic(config, now, [&](SimPacket&&, Time) { ++left; });
  Packet packet;
  packet.append(20);
  const Packet* burst[5] = {&packet, &packet, &packet, &packet, &packet};
  EXPECT_EQ(nic.tx_burst(burst), 3u);
  EXPECT_EQ(left, 3);
  ASSERT_NE(nic.room_at(), kNever);
  now = nic.room_at();
  EXPECT_EQ(nic.tx_burst(std::span(burst).first(1)), 1u);
}

TEST(SimNic, FullReceiveQueueDrops) {
  Time now{};
  NicConfig config;
  config.rx_queue = 2;
  SimNic nic(config, now, [](SimPacket&&, Time) {});
  for (int i = 0; i < 3; ++i) nic.receive(SimPacket{});
  std::array<RxPacket, 8> out;
  EXPECT_EQ(nic.rx_burst(out, now), 2u);
  EXPECT_EQ(nic.rx_dropped(), 1u);
}

TEST(SimWorld, PartitionSwallowsOneDirectionUntilItIsMended) {
  Stage stage{StageConfig()};
  stage.world().set_partition(0, 1, true);
  ASSERT_TRUE(stage.write(0, 1, 0, 100).ok());
  stage.world().run_for(milliseconds(50));
  EXPECT_TRUE(stage.acks(1).empty());
  stage.world().set_partition(0, 1, false);
  EXPECT_TRUE(stage.completes(0, 1));
}

TEST(SimWorld, BusyApplicationIsGivenTimeOnlyAtItsInterval) {
  SimWorld world(1);
  NodeConfig config;
  config.fep.packets = config.fep.buffers = 64;
  config.nic.address = address_of(0, 1);
  config.progress_interval = milliseconds(1);
  world.add_node(config);
  SimPacket packet;
  packet.bytes.assign(16, std::byte{0x5A});
  packet.source = address_of(0, 2);
  world.inject(packet, 0, microseconds(100));
  world.run_for(microseconds(900));
  EXPECT_EQ(world.fep(0).stats().pds.packets_received, 0u);
  world.run_for(milliseconds(1));
  EXPECT_EQ(world.fep(0).stats().pds.packets_received, 1u);
}

// ---- frames ------------------------------------------------------------------------------------

SimPacket some_packet() {
  SimPacket packet;
  packet.bytes.resize(700);
  for (std::size_t i = 0; i < packet.bytes.size(); ++i) packet.bytes[i] = std::byte(i * 31);
  packet.source = address_of(0, 1);
  packet.destination = address_of(1, 1);
  packet.entropy = 4242;
  packet.ecn = Ecn::Ect0;
  packet.dscp = 8;
  return packet;
}

constexpr std::array<wire::FrameFormat, 4> kFormats = {{
    {},
    {.crc = true},
    {.encapsulation = wire::Encapsulation::NativeIp},
    {.encapsulation = wire::Encapsulation::NativeIp, .crc = true},
}};

TEST(SimFrame, BringsThePacketAsItWas) {
  const SimPacket sent = some_packet();
  for (const wire::FrameFormat& format : kFormats) {
    SimPacket arrived;
    ASSERT_EQ(read_frame(frame_of(sent, format), format, arrived), wire::FrameVerdict::Ok);
    EXPECT_EQ(arrived.bytes, sent.bytes);
    EXPECT_EQ(arrived.source, sent.source);
    EXPECT_EQ(arrived.entropy, sent.entropy);
    EXPECT_EQ(arrived.ecn, sent.ecn);
    EXPECT_EQ(arrived.dscp, sent.dscp);
    EXPECT_FALSE(arrived.trimmed);
  }
}

TEST(SimFrame, DamageIsNoticedWhereItIsSaidToBe) {
  const SimPacket sent = some_packet();
  Rng rng(1);
  for (const wire::FrameFormat& format : kFormats) {
    int harmed = 0;
    for (int i = 0; i < 500; ++i) {
      auto frame = frame_of(sent, format);
      damage(frame, format, rng);
      SimPacket arrived;
      const bool good = read_frame(frame, format, arrived) == wire::FrameVerdict::Ok;
      harmed += good && arrived.bytes != sent.bytes ? 1 : 0;
    }
    EXPECT_EQ(harmed == 0, finds_damage(format)) << harmed;
  }
}

TEST(SimFrame, TrimmedOneSaysSoAndKeepsTheHeader) {
  const SimPacket sent = some_packet();
  for (const wire::FrameFormat& format : kFormats) {
    auto frame = frame_of(sent, format);
    trim(frame, format);
    SimPacket arrived;
    ASSERT_EQ(read_frame(frame, format, arrived), wire::FrameVerdict::Ok);
    EXPECT_TRUE(arrived.trimmed);
    ASSERT_GE(arrived.bytes.size(), 12u);
    EXPECT_TRUE(std::equal(arrived.bytes.begin(), arrived.bytes.begin() + 12, sent.bytes.begin()));
  }
}

// The whole way: every damaged packet is noticed, and the write arrives all the same.
TEST(SimWorld, PacketsTravelAsFrames) {
  for (const wire::FrameFormat& format : kFormats) {
    StageConfig config;
    config.link.corruption = finds_damage(format) ? 0.1 : 0;
    config.link.trimming = 0.05;
    Stage stage(config);
    stage.world().set_framing(format);
    ASSERT_TRUE(stage.write(0, 1, 0, 100'000).ok());
    ASSERT_TRUE(stage.completes(0, 1));
    EXPECT_EQ(stage.actor(0).sink.completions[0].status, ses::Status::Ok);
    EXPECT_TRUE(std::equal(stage.actor(0).memory.begin(), stage.actor(0).memory.begin() + 100'000,
                           stage.actor(1).memory.begin()));
    EXPECT_EQ(stage.world().frames_refused() > 0, finds_damage(format));
    EXPECT_EQ(stage.world().complaint(), "");
  }
}

// Calls `member` of the monitor with a packet that is this header. `sealed`: it was protected.
template <class Header>
void show_to(WireMonitor& monitor, SimPacket& packet, const Header& header, int from, int to,
             void (WireMonitor::*member)(const Sighting&), bool sealed = false) {
  packet.bytes.assign(wire::kMaxPdsHeaderBytes, std::byte{});
  packet.bytes.resize(header.encode(packet.bytes.data()));
  packet.plain.clear();
  if (sealed) packet.plain = packet.bytes;
  const auto parsed = wire::parse(packet.bytes);
  (monitor.*
   member)(Sighting{.at = {}, .from = from, .to = to, .packet = &packet, .parsed = &parsed});
}

TEST(WireMonitor, ComplainsAboutAPsnBeyondTheWindow) {
  WireMonitor monitor({1}, 0);
  const auto sent = [&](std::uint32_t psn, bool syn, std::uint16_t offset) {
    wire::RequestHeader header;
    header.psn = Psn{psn};
    header.spdcid = PdcId{1};
    header.syn = syn;
    header.psn_offset = offset;
    SimPacket packet;
    packet.bytes.resize(wire::kMaxPdsHeaderBytes);
    packet.bytes.resize(header.encode(packet.bytes.data()));
    const auto parsed = wire::parse(packet.bytes);
    monitor.sent(Sighting{.at = {}, .from = 0, .to = 1, .packet = &packet, .parsed = &parsed});
  };
  sent(100, true, 0);
  sent(227, true, 127);
  EXPECT_EQ(monitor.complaint(), "");
  sent(228, true, 128);
  EXPECT_NE(monitor.complaint().find("PDS-40"), std::string::npos);
}

// PDS-44: return data are made with the assumed window, and may wait in the NIC while the first ACK
// tells a smaller one.
TEST(WireMonitor, FirstAckOfReturnDataLeavesTheAssumedWindow) {
  WireMonitor monitor({1, 1}, 1);
  SimPacket packet;
  const auto show = [&](const auto& header, int from, int to, auto member) {
    show_to(monitor, packet, header, from, to, member);
  };
  wire::AckHeader ack;
  ack.type = wire::PdsType::AckCc;
  ack.cack_psn = Psn{99};
  ack.spdcid = PdcId{4};
  ack.dpdcid = PdcId{5};
  wire::RequestHeader data;
  data.spdcid = PdcId{5};
  data.dpdcid = PdcId{4};
  data.psn = Psn{100};
  show(data, 1, 0, &WireMonitor::sent);
  show(ack, 0, 1, &WireMonitor::delivered);
  for (const std::uint32_t psn : {101U, 227U}) {
    data.psn = Psn{psn};
    show(data, 1, 0, &WireMonitor::sent);
    EXPECT_EQ(monitor.complaint(), "") << psn;
  }
  data.psn = Psn{228};
  show(data, 1, 0, &WireMonitor::sent);
  EXPECT_NE(monitor.complaint().find("PDS-40"), std::string::npos);
}

// The ACK was lost; an attacker's copy of the protected packet arrives. A forged one says nothing.
TEST(WireMonitor, ReplayedAckOpensTheWindowForgedOneDoesNot) {
  for (const bool copied : {true, false}) {
    WireMonitor monitor({0, 0}, 1, true);
    SimPacket packet;
    const auto show = [&](const auto& header, int from, int to, auto member) {
      show_to(monitor, packet, header, from, to, member, copied);
    };
    wire::RequestHeader data;
    data.spdcid = PdcId{5};
    data.psn = Psn{100};
    data.syn = true;
    show(data, 1, 0, &WireMonitor::sent);
    wire::AckHeader ack;
    ack.type = wire::PdsType::AckCc;
    ack.cack_psn = Psn{100};
    ack.spdcid = PdcId{4};
    ack.dpdcid = PdcId{5};
    show(ack, -1, 1, &WireMonitor::delivered);
    data.syn = false;
    data.dpdcid = PdcId{4};
    data.psn = Psn{101};
    show(data, 1, 0, &WireMonitor::sent);
    EXPECT_EQ(monitor.complaint().empty(), copied) << monitor.complaint();
  }
}

// An attacker opens a PDC in the name of a node, with an id that the node had. The target's answers
// go to that node and say nothing of what the node has sent. A copy of a protected SYN is no such
// packet: the node sent it.
TEST(WireMonitor, AckOfAForgedSynIsNotHeldAgainstAnEndedPdc) {
  for (const auto& [comes, copied] :
       {std::pair(true, false), std::pair(true, true), std::pair(false, false)}) {
    const bool forged = comes && !copied;
    WireMonitor monitor({1, 1}, 1);
    SimPacket packet;
    packet.source = packet.destination = address_of(1, 1);
    const auto show = [&](const auto& header, int from, int to, auto member) {
      show_to(monitor, packet, header, from, to, member, copied);
    };
    wire::RequestHeader data;
    data.spdcid = PdcId{5};
    data.psn = Psn{100};
    data.syn = true;
    show(data, 1, 0, &WireMonitor::sent);
    data.psn = Psn{7000};
    data.psn_offset = 10;
    if (comes) show(data, -1, 0, &WireMonitor::delivered);
    wire::AckHeader ack;
    ack.type = wire::PdsType::AckCc;
    ack.dpdcid = PdcId{5};
    for (const std::uint32_t cack : {6989U, 7000U}) {
      ack.cack_psn = Psn{cack};
      show(ack, 0, 1, &WireMonitor::sent);
      EXPECT_EQ(monitor.complaint().empty(), forged) << cack;
    }
    ack.cack_psn = Psn{7001};
    show(ack, 0, 1, &WireMonitor::sent);
    EXPECT_NE(monitor.complaint().find("PDS-83"), std::string::npos);
  }
}

TEST(Oracles, PatternsNameTheirMessage) {
  std::vector<std::byte> bytes(100);
  fill_pattern(5, bytes.data(), bytes.size());
  EXPECT_TRUE(has_pattern(5, bytes.data(), 100));
  EXPECT_FALSE(has_pattern(6, bytes.data(), 100));
  bytes[99] ^= std::byte{1};
  EXPECT_FALSE(has_pattern(5, bytes.data(), 100));
}

TEST(Oracles, GuardedMemoryNoticesWritesOutside) {
  GuardedMemory memory(10);
  EXPECT_TRUE(memory.guards_intact());
  EXPECT_TRUE(memory.untouched_from(3));
  memory.data()[5] = std::byte{1};
  EXPECT_TRUE(memory.guards_intact());
  EXPECT_FALSE(memory.untouched_from(3));
  EXPECT_TRUE(memory.untouched_from(6));
  memory.data()[10] = std::byte{1};
  EXPECT_FALSE(memory.guards_intact());
}

TEST(DrawPlan, HalfOfTheRunsHaveTheShippedLimits) {
  constexpr int kPlans = 400;
  const pds::Parameters shipped;
  int found = 0;
  for (int seed = 0; seed < kPlans; ++seed) {
    const Plan plan = draw_plan(static_cast<std::uint64_t>(seed));
    found += std::ranges::all_of(plan.configurations, [&](const ConfigurationPlan& configuration) {
      const pds::Parameters& pds = configuration.fep.pds;
      return pds.ack_gen_trigger_bytes == cms::kDefaultAckTrigger &&
             (plan.killed_node >= 0 || plan.behind_black_hole >= 0 ||
              (pds.rto_init == shipped.rto_init &&
               pds.max_rto_retransmissions == shipped.max_rto_retransmissions));
    });
  }
  EXPECT_GE(found, kPlans * 45 / 100);
}

// A run whose network never recovers must be reported, with the way to repeat it.
TEST(Oracles, RunThatCannotFinishIsReported) {
  Plan plan = draw_plan(1);
  plan.link.loss = 1.0;
  plan.faults_end = std::chrono::seconds(10);
  plan.killed_node = -1;
  plan.multi_receives = false;  // so that receives without a message are missed
  plan.operations.resize(1);
  plan.operations[0].post_after = Duration(0);
  for (ConfigurationPlan& configuration : plan.configurations)
    configuration.fep.pds.rto_cap = std::chrono::seconds(1);
  const Outcome outcome = run_plan(plan);
  EXPECT_NE(outcome.failure.find("not finished"), std::string::npos) << outcome.failure;
}

}  // namespace
}  // namespace uet::sim
