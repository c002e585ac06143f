// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// NSCC after a pause in which nothing was in flight (CMS-725).
#include <gtest/gtest.h>

#include <cstdint>

#include "cms/nscc.h"
#include "unit/cms/nscc_model.h"

namespace uet::cms {
namespace {

using test::expect_close;
using test::Model;
using test::reference_network;
using test::us;

constexpr std::uint32_t kPacket = 4096;
constexpr double kLongest = 3;  // us of a pause that counts for nothing: a quarter of the base RTT

// Marks have taken half of the window. The last answer comes at 10 us, and nothing is in flight.
Model after_marks(const Parameters& parameters = reference_network()) {
  Model m(parameters);
  m.s.cwnd_bytes = 100'000;
  m.s.inflight_bytes = kPacket;
  m.s.achieved_bytes = 1000;
  m.s.trigger_qa = true;
  m.ack(10, kPacket, true, 14);
  return m;
}

TEST(NsccPause, Cms725_NoLossKnown_BeginsWithTheFirstWindow) {
  Model m = after_marks();
  m.sent(10 + kLongest, kPacket);
  expect_close(m.s.cwnd_bytes, 100'000);
  EXPECT_TRUE(m.s.qa_end_time);
  m = after_marks();
  m.sent(10 + kLongest + 0.001, kPacket);
  expect_close(m.s.cwnd_bytes, 225'000);
  EXPECT_FALSE(m.s.qa_end_time);
  EXPECT_FALSE(m.s.trigger_qa);
  EXPECT_EQ(m.s.achieved_bytes, 0U);
}

TEST(NsccPause, Cms725_PacketsInFlight_NoPause) {
  Model m = after_marks();
  m.s.inflight_bytes = kPacket;
  m.sent(1000, kPacket);
  expect_close(m.s.cwnd_bytes, 100'000);
  EXPECT_TRUE(m.s.qa_end_time);
}

TEST(NsccPause, Cms725_TrimOrLossIsRemembered100RoundTrips) {
  for (const bool trim : {false, true}) {
    Model m = after_marks();
    m.s.inflight_bytes = kPacket;
    trim ? m.trim(20, kPacket) : m.loss(20, kPacket);
    const double window = m.s.cwnd_bytes;
    m.sent(20 + 1200, kPacket);
    expect_close(m.s.cwnd_bytes, window);
    EXPECT_FALSE(m.s.qa_end_time) << "quick adapt has no epoch, whatever was lost";
    m.ack(1230, kPacket, false, std::nullopt);
    m.sent(1300, kPacket);
    expect_close(m.s.cwnd_bytes, 225'000);
  }
}

// The bytes of an epoch before the pause say nothing about the network afterwards.
TEST(NsccPause, Cms725_TrimAfterAPause_CutsByItsBytesOnly) {
  Model m;
  m.s.qa_end_time = test::at(30);
  m.s.inflight_bytes = kPacket;
  m.ack(10, kPacket, false, 12);
  m.sent(60, kPacket);
  m.sent(60, kPacket);
  m.trim(75, kPacket);
  expect_close(m.s.cwnd_bytes, 225'000 - kPacket);
}

TEST(NsccPause, Cms725_ChosenFirstWindowAndLargerOneStay) {
  Parameters parameters = reference_network();
  parameters.tuning.initial_window_bytes = 120'000;
  Model m = after_marks(parameters);
  m.sent(100, kPacket);
  expect_close(m.s.cwnd_bytes, 120'000);
  m.s.cwnd_bytes = 150'000;
  m.s.inflight_bytes = 0;
  m.sent(200, kPacket);
  expect_close(m.s.cwnd_bytes, 150'000);
}

TEST(NsccPause, Cms725_DestinationThatLimits_StaysLimited) {
  Model m = after_marks();
  m.s.inflight_bytes = kPacket;
  m.ack(20, kPacket, false, 12, 1);
  const double window = m.s.cwnd_bytes;
  m.sent(100, kPacket);
  expect_close(m.s.cwnd_bytes, window);
}

TEST(NsccPause, Cms725_SlowWayIsRemembered) {
  Parameters parameters = reference_network();
  parameters.base_rtt = us(1000);  // a target delay above 48 us
  parameters.rate_is_stated = false;
  Model m(parameters);
  m.s.cwnd_bytes = 100'000;
  m.sent(100'000, kPacket);
  expect_close(m.s.cwnd_bytes, 100'000);
}

}  // namespace
}  // namespace uet::cms
