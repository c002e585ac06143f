// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet/pds/ack_policy.h"

#include <gtest/gtest.h>

namespace uet::pds {
namespace {

Arrival payload(std::uint32_t bytes) {
  Arrival arrival;
  arrival.payload_bytes = bytes;
  return arrival;
}

// The trigger that CMS-124 assumes.
Parameters trigger_of_16_kib() {
  Parameters parameters;
  parameters.ack_gen_trigger_bytes = cms::kAckGenTrigger;
  return parameters;
}

// Packets of this size until an ACK is due.
int packets_until_due(AckPolicy& policy, std::uint32_t bytes,
                      const Parameters& parameters = trigger_of_16_kib()) {
  for (int count = 1; count < 1000; ++count) {
    if (policy.due(parameters, {}, payload(bytes))) return count;
  }
  return -1;
}

TEST(AckPolicy, Pds93_AtOnceIfAsked) {
  PacketMeta packet;
  packet.ar = true;
  EXPECT_TRUE(AckPolicy().due(Parameters{}, packet, payload(64)));
}

TEST(AckPolicy, Pds94_AtOnceForSyn) {
  Arrival arrival = payload(64);
  arrival.syn = true;
  EXPECT_TRUE(AckPolicy().due(Parameters{}, {}, arrival));
}

TEST(AckPolicy, Pds96_AtOnceForRetransmissions) {
  PacketMeta packet;
  packet.retx = true;
  EXPECT_TRUE(AckPolicy().due(Parameters{}, packet, payload(64)));
}

TEST(AckPolicy, Pds97_Pds107_OneAckPerFourLargeOrSixteenSmallPackets) {
  AckPolicy large;
  EXPECT_EQ(packets_until_due(large, 4096), 4);
  AckPolicy small;
  EXPECT_EQ(packets_until_due(small, 1), 16);
  AckPolicy least;
  EXPECT_EQ(packets_until_due(least, 1024), 16);
}

TEST(AckPolicy, Pds97_ByDefaultOneAckForEach64KiB) {
  AckPolicy policy;
  EXPECT_EQ(packets_until_due(policy, 4096, Parameters{}), 16);
}

TEST(AckPolicy, Pds97_AnyAckRestartsTheCount) {
  AckPolicy policy;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(policy.due(trigger_of_16_kib(), {}, payload(4096)));
  policy.on_ack_sent();
  EXPECT_EQ(packets_until_due(policy, 4096), 4);
}

TEST(AckPolicy, Pds97_DueUntilTheAckLeft) {
  AckPolicy policy;
  EXPECT_EQ(packets_until_due(policy, 16 * 1024), 1);
  EXPECT_TRUE(policy.due(trigger_of_16_kib(), {}, payload(1)));
}

TEST(AckPolicy, Pds97_TriggerZeroAcknowledgesEveryPacket) {
  Parameters parameters;
  parameters.ack_gen_trigger_bytes = 0;
  AckPolicy policy;
  EXPECT_EQ(packets_until_due(policy, 0, parameters), 1);
}

TEST(AckPolicy, Pds98_LastGapBelowAnArPacket) {
  Arrival arrival = payload(64);
  arrival.filled_gap_below_ar = true;
  EXPECT_TRUE(AckPolicy().due(Parameters{}, {}, arrival));
}

TEST(AckPolicy, GapIsReportedAtOnce) {
  Arrival arrival = payload(64);
  arrival.out_of_order = true;
  EXPECT_TRUE(AckPolicy().due(Parameters{}, {}, arrival));
}

TEST(AckPolicy, Pds99_MarkTriggersAnAckIfConfigured) {
  PacketMeta packet;
  packet.ce = true;
  EXPECT_TRUE(AckPolicy().due(Parameters{}, packet, payload(64)));
  Parameters parameters;
  parameters.ack_on_ecn = false;
  EXPECT_FALSE(AckPolicy().due(parameters, packet, payload(64)));
}

TEST(AckPolicy, Pds155_ControlPacketsAtOnce) {
  Arrival arrival = payload(0);
  arrival.control = true;
  EXPECT_TRUE(AckPolicy().due(Parameters{}, {}, arrival));
}

}  // namespace
}  // namespace uet::pds
