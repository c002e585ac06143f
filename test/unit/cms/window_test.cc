// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Permission, ACK demand and destination flow control of a window.
#include "cms/window.h"

#include <gtest/gtest.h>

namespace uet::cms {
namespace {

Window window(double cwnd_bytes, std::int64_t inflight_bytes) {
  Window w;
  w.mtu_bytes = 4096;
  w.max_bytes = 225'000;
  w.cwnd_bytes = cwnd_bytes;
  w.inflight_bytes = inflight_bytes;
  return w;
}

AckFeedback ack(std::uint64_t bytes, std::uint8_t pend, bool restore = false) {
  AckFeedback f;
  f.newly_received_bytes = bytes;
  f.rcv_cwnd_pend = pend;
  f.restore_cwnd = restore;
  return f;
}

TEST(Window, SetCwnd_Cms101_MtuToMaximum) {
  Window w = window(100'000, 0);
  w.set_cwnd(-5);
  EXPECT_EQ(w.cwnd_bytes, 4096);
  w.set_cwnd(1e12);
  EXPECT_EQ(w.cwnd_bytes, 225'000);
}

TEST(Window, MaySend_Cms133_UpToTheWindow) {
  EXPECT_TRUE(window(100'000, 95'904).may_send(4096));
  EXPECT_FALSE(window(100'000, 95'905).may_send(4096));
}

TEST(Window, MaySend_Cms133_OnePacketWithNothingInFlight) {
  EXPECT_TRUE(window(4096, 0).may_send(9000));
  EXPECT_TRUE(window(4096, -100).may_send(9000));
  EXPECT_FALSE(window(4096, 4096).may_send(1));
}

TEST(Window, WantsAck_Cms124_LessThanAPacketIsLeft) {
  // After counting it: 4,096 bytes remain, or one byte less.
  EXPECT_FALSE(window(100'000, 91'808).wants_ack(4096, 0, 16'384));
  EXPECT_TRUE(window(100'000, 91'809).wants_ack(4096, 0, 16'384));
  EXPECT_FALSE(window(100'000, 95'804).wants_ack(100, 0, 16'384));
  EXPECT_TRUE(window(100'000, 95'805).wants_ack(100, 0, 16'384));
}

TEST(Window, WantsAck_Cms124_WindowBelowTheTrigger) {
  EXPECT_FALSE(window(16'384, 0).wants_ack(4096, 0, 16'384));
  EXPECT_TRUE(window(16'383, 0).wants_ack(4096, 0, 16'384));
}

// A trigger of 64 KiB: a window of 96 KiB asks four times, one of 40 KiB after 16 KiB as if the
// peer counted to that, one of 256 KiB leaves it to the peer.
TEST(Window, WantsAck_Cms124_CollectingPeer_FourPerWindow) {
  const std::uint32_t trigger = 64 << 10;
  EXPECT_FALSE(window(96 << 10, 0).wants_ack(4096, 4, trigger));
  EXPECT_TRUE(window(96 << 10, 0).wants_ack(4096, 5, trigger));
  EXPECT_FALSE(window(40 << 10, 0).wants_ack(4096, 2, trigger));
  EXPECT_TRUE(window(40 << 10, 0).wants_ack(4096, 3, trigger));
  EXPECT_FALSE(window(256 << 10, 0).wants_ack(4096, 20, trigger));
  EXPECT_FALSE(window(96 << 10, 0).wants_ack(4096, 20, 16'384));
  EXPECT_FALSE(window(16'384, 0).wants_ack(4096, 0, trigger));
  EXPECT_TRUE(window(16'383, 0).wants_ack(4096, 0, trigger));
}

// The worked example of CMS 4.1, after F has been reduced.
TEST(Window, DestinationFlowControl_Cms301_Cms302_WorkedExample) {
  Window w = window(120'000, 50'000);
  EXPECT_TRUE(w.apply_destination_flow_control(ack(4096, 64)));
  EXPECT_EQ(w.saved_cwnd_bytes, 120'000);
  EXPECT_EQ(w.cwnd_bytes, 47'952);
  w.inflight_bytes = 45'904;
  EXPECT_TRUE(w.apply_destination_flow_control(ack(4096, 127)));
  EXPECT_EQ(w.saved_cwnd_bytes, 120'000);
  EXPECT_EQ(w.cwnd_bytes, 41'840);
  EXPECT_FALSE(w.apply_destination_flow_control(ack(4096, 0)));
  EXPECT_EQ(w.cwnd_bytes, 41'840) << "without the restore bit it stays saved";
  EXPECT_FALSE(w.apply_destination_flow_control(ack(4096, 0, true)));
  EXPECT_EQ(w.cwnd_bytes, 120'000);
  EXPECT_EQ(w.saved_cwnd_bytes, 0);
}

TEST(Window, Destination_Cms302_RestoreUpToMaximum) {
  Window w = window(120'000, 50'000);
  w.apply_destination_flow_control(ack(4096, 64));
  w.max_bytes = 100'000;  // the base RTT fell meanwhile
  w.apply_destination_flow_control(ack(4096, 0, true));
  EXPECT_EQ(w.cwnd_bytes, 100'000);
}

TEST(Window, Destination_Cms302_NothingSaved_NoRestore) {
  Window w = window(50'000, 0);
  EXPECT_FALSE(w.apply_destination_flow_control(ack(4096, 0, true)));
  EXPECT_EQ(w.cwnd_bytes, 50'000);
}

TEST(Window, Destination_Cms303_HalfAWindowPerWindow) {
  Window w = window(100'000, 1'000'000);
  for (int i = 0; i < 10; ++i) w.apply_destination_flow_control(ack(10'000, 64));
  EXPECT_EQ(w.cwnd_bytes, 50'000);
}

TEST(Window, Destination_Cms300_PenaltyIsAtMost127) {
  Window w = window(100'000, 100'000);
  w.apply_destination_flow_control(ack(12'800, 255));
  EXPECT_EQ(w.cwnd_bytes, 100'000 - 12'700);
}

}  // namespace
}  // namespace uet::cms
