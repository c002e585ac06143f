// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the queues in front of a link do: order of classes, marks at dequeue, trimming, drops.
#include "netsim/port.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>

namespace uet::netsim {
namespace {

class PortTest : public testing::Test {
 protected:
  NetPacket* make(TrafficClass of, std::uint16_t mark = 0) {
    packets_.emplace_back();
    NetPacket& packet = packets_.back();
    packet.traffic_class = of;
    packet.ecn = of == TrafficClass::Data ? Ecn::Ect0 : Ecn::NotEct;
    packet.wire_bytes = of == TrafficClass::Data ? 1000 : 64;
    packet.pds_bytes = packet.wire_bytes - 8;
    packet.head_bytes = 56;
    packet.entropy = mark;
    return &packet;
  }
  void put(TrafficClass of, int count) {
    for (int i = 0; i < count; ++i) EXPECT_EQ(port_.enqueue(make(of), rng_, now_), nullptr);
  }
  // Classes in the order in which they leave: c, t, d.
  std::string drain() {
    std::string order;
    while (NetPacket* packet = port_.dequeue(rng_, now_)) {
      order += "ctd"[static_cast<std::size_t>(packet->traffic_class)];
    }
    return order;
  }

  std::deque<NetPacket> packets_;
  Port port_;
  Rng rng_{1};
  Picoseconds now_ = 0;
};

TEST_F(PortTest, Cms13_OneDataPacketFollowsTenControlPackets) {
  put(TrafficClass::Data, 2);
  put(TrafficClass::Control, 23);
  EXPECT_EQ(drain(), "ccccccccccdccccccccccdccc");
}

TEST_F(PortTest, StrictSchedulingServesControlFirst) {
  port_.config.scheduling = Scheduling::Strict;
  put(TrafficClass::Data, 1);
  put(TrafficClass::Control, 12);
  EXPECT_EQ(drain(), "ccccccccccccd");
}

TEST_F(PortTest, Cms502_TrimmedPacketsTakeEverySecondTurn) {
  put(TrafficClass::Data, 3);
  put(TrafficClass::Trimmed, 5);
  put(TrafficClass::Control, 1);
  EXPECT_EQ(drain(), "ctdtdtdtt");
}

// CMS-804.
TEST_F(PortTest, Cms32_MarksAtDequeueByWhatIsLeft) {
  port_.config.ecn_low_bytes = 2000;
  port_.config.ecn_high_bytes = 4000;
  put(TrafficClass::Data, 6);
  std::string marks;
  while (NetPacket* packet = port_.dequeue(rng_, now_)) {
    marks += packet->ecn == Ecn::Ce ? 'm' : '.';
  }
  // 5000 and 4000 bytes left: always; 2000 and less: never; 3000: one in two.
  EXPECT_EQ(marks.substr(0, 2), "mm");
  EXPECT_EQ(marks.substr(3), "...");
  EXPECT_EQ(port_.counters.marks, static_cast<std::uint64_t>(marks[2] == 'm' ? 3 : 2));
}

TEST_F(PortTest, Cms31_OnlyDataIsMarked) {
  port_.config.ecn_high_bytes = 1;
  put(TrafficClass::Data, 2);
  put(TrafficClass::Control, 1);
  EXPECT_EQ(port_.dequeue(rng_, now_)->ecn, Ecn::NotEct);
  EXPECT_EQ(port_.dequeue(rng_, now_)->ecn, Ecn::Ce);
}

TEST_F(PortTest, Cms500_FullQueue_TrimsArrivingOrYoungest) {
  port_.config.trimming = true;
  port_.config.data_limit_bytes = 3000;
  port_.link.last_hop = true;
  put(TrafficClass::Data, 3);
  NetPacket* const youngest = &packets_.back();
  int arriving = 0, waiting = 0;
  for (int i = 0; i < 40; ++i) {
    NetPacket* const packet = make(TrafficClass::Data);
    ASSERT_EQ(port_.enqueue(packet, rng_, now_), nullptr);
    arriving += packet->trimmed ? 1 : 0;
    waiting += packet->trimmed ? 0 : 1;
  }
  EXPECT_TRUE(youngest->trimmed);  // sooner or later
  EXPECT_GT(arriving, 8);
  EXPECT_GT(waiting, 8);
  EXPECT_EQ(port_.counters.trims, 40U);
  EXPECT_EQ(port_.waiting(TrafficClass::Data), 3U);
  EXPECT_EQ(port_.waiting_bytes(TrafficClass::Control), 40U * 64);
  NetPacket* const trimmed = port_.dequeue(rng_, now_);
  EXPECT_TRUE(trimmed->trimmed);
  EXPECT_TRUE(trimmed->trimmed_last_hop);
  EXPECT_EQ(trimmed->pds_bytes, 16U);  // 24 bytes after IP, UDP's 8 among them
  EXPECT_EQ(trimmed->wire_bytes, 64U);
}

TEST_F(PortTest, Cms501_TrimmedBeyondControlLimit_AreDropped) {
  port_.config = {.data_limit_bytes = 1000, .control_limit_bytes = 128, .trimming = true};
  put(TrafficClass::Data, 3);
  EXPECT_NE(port_.enqueue(make(TrafficClass::Data), rng_, now_), nullptr);
  EXPECT_EQ(port_.counters.control_drops, 1U);
  EXPECT_EQ(port_.counters.data_drops, 0U);
}

TEST_F(PortTest, WithoutTrimmingTheTailIsDropped) {
  port_.config.data_limit_bytes = 2000;
  put(TrafficClass::Data, 2);
  NetPacket* const packet = make(TrafficClass::Data);
  EXPECT_EQ(port_.enqueue(packet, rng_, now_), packet);
  EXPECT_FALSE(packet->trimmed);
  EXPECT_EQ(port_.counters.data_drops, 1U);
}

TEST_F(PortTest, MeanQueueCountsTheTimeInWhichSomethingWaited) {
  put(TrafficClass::Data, 2);  // 2000 bytes
  now_ = 100;
  (void)port_.dequeue(rng_, now_);  // 1000 bytes
  now_ = 300;
  (void)port_.dequeue(rng_, now_);  // none
  now_ = 1000;
  put(TrafficClass::Data, 1);
  EXPECT_DOUBLE_EQ(port_.counters.mean_data_bytes(), (100 * 2000 + 200 * 1000) / 300.0);
  EXPECT_EQ(port_.counters.max_data_bytes, 2000U);
}

}  // namespace
}  // namespace uet::netsim
