// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pds/flight.h"

#include <gtest/gtest.h>

#include "cms/rtt.h"
#include "fixed_ccc.h"

namespace uet::pds {
namespace {

constexpr std::uint32_t kBytes = 4096;

class FlightTest : public ::testing::Test {
 protected:
  FlightTest() {
    record_.packet = &packet_;
    record_.message = &message_;
    record_.nominal_bytes = kBytes;
    flight_.sent(ccc_, record_, 0, now_);
  }

  // An ACK whose RCVD_BYTES says so many in all.
  wire::AckHeader ack_of(std::uint64_t bytes) const {
    wire::AckHeader ack;
    ack.type = wire::PdsType::AckCc;
    ack.cc_type = wire::CcType::Nscc;
    ack.rcvd_bytes = cms::encode_rcvd_bytes(bytes);
    return ack;
  }
  std::uint64_t inform(const wire::AckHeader& ack, bool newest, std::uint64_t acked) {
    cms::AckFeedback feedback;
    flight_.inform(ccc_, ack, newest, feedback, acked, false, now_);
    return feedback.newly_received_bytes;
  }

  const Time now_{std::chrono::seconds(1)};
  FixedCcc ccc_;
  Packet packet_;
  Message message_;
  TxRecord record_;
  Flight flight_;
};

TEST_F(FlightTest, Cms104_LostPacketLeavesTheFlightOnce) {
  EXPECT_EQ(flight_.bytes(), kBytes);
  EXPECT_TRUE(flight_.lost(ccc_, record_, cms::LossCause::Rto, now_));
  EXPECT_FALSE(flight_.lost(ccc_, record_, cms::LossCause::Rto, now_));
  flight_.refused(ccc_, record_);
  flight_.refused(ccc_, record_, wire::NackHeader{}, now_);
  EXPECT_EQ(flight_.bytes(), 0);
  EXPECT_EQ(ccc_.inflight, 0);
}

TEST_F(FlightTest, RetransmissionIsInFlightAgain) {
  flight_.lost(ccc_, record_, cms::LossCause::Rto, now_);
  flight_.sent(ccc_, record_, kBytes, now_);
  EXPECT_EQ(flight_.bytes(), kBytes);
  EXPECT_EQ(ccc_.inflight, kBytes);
}

TEST_F(FlightTest, ControlPacketIsNeverInFlight) {
  TxRecord control;
  control.nominal_bytes = 64;
  EXPECT_FALSE(flight_.lost(ccc_, control, cms::LossCause::Rto, now_));
  EXPECT_EQ(ccc_.inflight, kBytes);
}

// CMS-104: a window that a NACK has reduced gets nothing back.
TEST_F(FlightTest, RefusedPacketThatArrivesIsNoSpuriousLoss) {
  flight_.refused(ccc_, record_, wire::NackHeader{}, now_);
  flight_.arrived_after_all(ccc_, record_);
  EXPECT_EQ(ccc_.spurious, 0U);
  EXPECT_EQ(ccc_.inflight, kBytes);
  EXPECT_EQ(flight_.bytes(), kBytes);
  EXPECT_TRUE(flight_.lost(ccc_, record_, cms::LossCause::Path, now_));
  flight_.arrived_after_all(ccc_, record_);
  EXPECT_EQ(ccc_.spurious, kBytes);
}

TEST_F(FlightTest, Cms130_TrimTellsTheRoundTrip) {
  record_.sent_count = record_.trim_count = 2;
  record_.last_sent = now_;
  const wire::NackHeader trimmed{.nack_code = wire::NackCode::Trimmed};
  flight_.refused(ccc_, record_, trimmed, now_ + std::chrono::microseconds(12));
  EXPECT_EQ(ccc_.nack_rtt, std::chrono::microseconds(12));
  record_.sent_count = 4;
  record_.trim_count = 3;
  flight_.sent(ccc_, record_, kBytes, now_);
  record_.out_of_flight = false;
  flight_.refused(ccc_, record_, trimmed, now_ + std::chrono::microseconds(12));
  EXPECT_EQ(ccc_.nack_rtt, std::nullopt);
}

TEST_F(FlightTest, SpuriousLossIsTakenBackOnce) {
  flight_.lost(ccc_, record_, cms::LossCause::Path, now_);
  flight_.arrived_after_all(ccc_, record_);
  flight_.arrived_after_all(ccc_, record_);
  EXPECT_EQ(flight_.bytes(), kBytes);
  EXPECT_EQ(ccc_.inflight, kBytes);
}

TEST_F(FlightTest, Cms110_CountBeyondWhatWasSentIsNotBelieved) {
  EXPECT_EQ(inform(ack_of(100 * kBytes), true, 0), 0U);
  EXPECT_EQ(inform(ack_of(kBytes), true, 0), kBytes);
  EXPECT_EQ(ccc_.inflight, 0);
}

TEST_F(FlightTest, Cms110_OlderAckReportsNothing) {
  EXPECT_EQ(inform(ack_of(kBytes), false, kBytes), 0U);
}

TEST_F(FlightTest, Cms115_AckWithoutCount_ReportsWhatItAcks) {
  wire::AckHeader plain;
  EXPECT_EQ(inform(plain, false, kBytes), kBytes);
  EXPECT_LE(inform(plain, false, kBytes), cms::kRcvdBytesUnit);  // each packet once
}

TEST_F(FlightTest, Cms104_NothingOutstanding_NoneInFlight) {
  flight_.reconcile(ccc_, false);
  EXPECT_EQ(ccc_.inflight, kBytes);
  flight_.reconcile(ccc_, true);
  EXPECT_EQ(ccc_.inflight, 0);
  EXPECT_EQ(flight_.bytes(), 0);
}

TEST_F(FlightTest, Cms104_ReportedPacketIsNotInFlight) {
  flight_.reported(record_);
  flight_.reconcile(ccc_, false);
  EXPECT_EQ(ccc_.inflight, 0);
}

}  // namespace
}  // namespace uet::pds
