// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What an ACK that its peer has not sent can do: the ids are guessed, CACK_PSN is not.
#include "pds/pdc.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

constexpr std::uint32_t kPacketBytes = 132;  // nominal, of what send() makes
constexpr std::uint32_t kWindow = 1024;      // PSNs of test_parameters()

class ForgedAck : public Bench {
 protected:
  ForgedAck() {
    cms::Parameters cms;
    cms.mtu_bytes = kPacketBytes;
    cms.base_rtt = microseconds(100);
    cms.tuning.initial_window_bytes = 100 * kPacketBytes;
    build(test_parameters(), cms);
  }
  // `packets` in units of rcvd_bytes, and what the packet that open() sent is.
  static std::uint32_t count_of(std::uint32_t packets) {
    return 1 + packets * kPacketBytes / wire::kCcByteUnit;
  }
  wire::AckHeader counting(std::uint32_t cack, std::uint32_t rcvd_bytes) const {
    wire::AckHeader header = ack(cack, cack);
    header.rcvd_bytes = rcvd_bytes;
    return header;
  }
  cms::Ccc& ccc() { return *node->manager->find(pdc)->ccc().ccc; }
};

TEST_F(ForgedAck, Pds108_Step3_CackBelowTheWindowIsDropped) {
  TestMessage& message = outstanding(3);
  for (const std::uint32_t below : {kWindow + 1, 2 * kWindow, 0x7FFFFFFFU}) {
    receive(ack(70000 - below, 70001));
  }
  EXPECT_EQ(counters().acks_invalid, 3U);
  EXPECT_EQ(message.responses, 0U);
  receive(ack(70000 - kWindow, 70001));  // overtaken by all ACKs of a window
  EXPECT_EQ(counters().acks_invalid, 3U);
  EXPECT_EQ(message.responses, 1U);
}

TEST_F(ForgedAck, Cms820_CountBeyondWhatWasSentIsNotBelieved) {
  outstanding(20);
  receive(counting(70000, count_of(0)));
  const std::int64_t sent = ccc().inflight_bytes();
  receive(counting(70000, count_of(0) + 0x200000));
  EXPECT_EQ(ccc().inflight_bytes(), sent);
  // The true count does not look old.
  receive(counting(70000, count_of(10)));
  EXPECT_LE(ccc().inflight_bytes(), sent - 9 * std::int64_t{kPacketBytes});
}

// A peer that counts otherwise: what it acknowledges counts, and its count when nothing is out.
TEST_F(ForgedAck, Cms115_UnlikelyCount_AckedBytesCount) {
  outstanding(20);
  const std::int64_t sent = ccc().inflight_bytes();
  receive(counting(70010, 0x100000));
  EXPECT_EQ(ccc().inflight_bytes(), sent - 10 * std::int64_t{kPacketBytes});
  receive(counting(70020, 0x100100));
  EXPECT_EQ(ccc().inflight_bytes(), 0);
  send(20);
  turn();
  receive(counting(70020, 0x100100 + count_of(10)));
  EXPECT_LE(ccc().inflight_bytes(), sent - 9 * std::int64_t{kPacketBytes});
}

TEST_F(ForgedAck, Pds41_OlderAckDoesNotChangeTheWindow) {
  outstanding(20);
  receive(counting(70010, count_of(10)));
  const std::uint64_t window = ccc().window_bytes();
  const std::int64_t in_flight = ccc().inflight_bytes();
  wire::AckHeader older = counting(70009, count_of(20));
  older.rcv_cwnd_pend = 127;
  receive(older);
  EXPECT_EQ(ccc().window_bytes(), window);
  EXPECT_EQ(ccc().inflight_bytes(), in_flight);
  older.cack_psn = Psn{70010};
  receive(older);
  EXPECT_LT(ccc().window_bytes(), window);
}

}  // namespace
}  // namespace uet::pds::testing
