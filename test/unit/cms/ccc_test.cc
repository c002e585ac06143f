// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The choice of algorithm and the fixed window of Algorithm::None.
#include "cms/ccc.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "cms/nscc.h"

namespace uet::cms {
namespace {

Parameters fixed() {
  Parameters p;
  p.algorithm = Algorithm::None;
  p.mtu_bytes = 4096;
  p.fixed_window_bytes = 100'000;
  return p;
}

AckFeedback ack(std::uint64_t bytes, std::uint8_t pend = 0, bool restore = false) {
  AckFeedback f;
  f.newly_received_bytes = bytes;
  f.rcv_cwnd_pend = pend;
  f.restore_cwnd = restore;
  return f;
}

TEST(NominalPacketBytes, Cms6_UdpLengthPlus40) {
  static_assert(nominal_packet_bytes(1000) == 1000 + 8 + 40);
  EXPECT_EQ(nominal_packet_bytes(0), 48U);
}

TEST(SharedParameters, CopiesReferToTheSameOnesAndOutliveTheFirst) {
  Parameters p = fixed();
  auto first = std::make_unique<SharedParameters>(p);
  p.mtu_bytes = 1024;  // has been copied
  const SharedParameters second = *first;
  SharedParameters third(p);
  EXPECT_NE(&*third, &*second);
  third = *first;
  EXPECT_EQ(&**first, &*second);
  EXPECT_EQ(&*third, &*second);
  first.reset();
  EXPECT_EQ(second->mtu_bytes, 4096U);
  EXPECT_EQ(third->mtu_bytes, 4096U);
}

TEST(MakeCcc, Nscc_ContextsOfAKindShareOneCopy) {
  const SharedParameters shared(Parameters{});
  const Nscc one(shared, Time{});
  const Nscc another(shared, Time{});
  EXPECT_EQ(&*one.constants().parameters, &*shared);
  EXPECT_EQ(&*another.constants().parameters, &*shared);
}

TEST(MakeCcc, Cms100_NsccStartsAtItsMaximumWindow) {
  Parameters p;
  p.link_rate_bps = 100'000'000'000;
  p.base_rtt = std::chrono::microseconds(12);
  EXPECT_EQ(make_ccc(p, Time{})->window_bytes(), 225'000U);
}

TEST(MakeCcc, Cms722_NoneIsAFixedWindow) {
  const std::unique_ptr<Ccc> ccc = make_ccc(fixed(), Time{});
  EXPECT_EQ(ccc->window_bytes(), 100'000U);
  for (int i = 0; i < 24; ++i) {
    ASSERT_TRUE(ccc->may_send(4096));
    ccc->on_sent(4096, Time{});
  }
  EXPECT_FALSE(ccc->may_send(4096));
  EXPECT_TRUE(ccc->wants_ack(4096, 0));
  ccc->on_nack(wire::NackCode::Trimmed, 4096, true, std::nullopt, Time{});
  ccc->on_inferred_loss(4096, LossCause::RepeatedRto, Time{});
  ccc->on_ack(ack(22 * 4096), Time{});
  EXPECT_EQ(ccc->inflight_bytes(), 0);
  EXPECT_EQ(ccc->window_bytes(), 100'000U);
  EXPECT_FALSE(ccc->wants_ack(4096, 0));
}

TEST(MakeCcc, Cms722_MaxWindowBytesBoundsTheFixedWindow) {
  Parameters p = fixed();
  p.max_window_bytes = 50'000;
  EXPECT_EQ(make_ccc(p, Time{})->window_bytes(), 50'000U);
  p.max_window_bytes = 0;
  EXPECT_EQ(make_ccc(p, Time{})->window_bytes(), 4096U);
}

TEST(FixedWindow, Cms722_DestinationFlowControlStillHolds) {
  const std::unique_ptr<Ccc> ccc = make_ccc(fixed(), Time{});
  ccc->on_sent(54'096, Time{});
  ccc->on_ack(ack(4096, 64), Time{});
  EXPECT_EQ(ccc->window_bytes(), 47'952U);
  ccc->on_ack(ack(0, 0, true), Time{});
  EXPECT_EQ(ccc->window_bytes(), 100'000U);
}

TEST(FixedWindow, Cms301_FullPenaltyLeavesOnePacket) {
  const std::unique_ptr<Ccc> ccc = make_ccc(fixed(), Time{});
  ccc->on_sent(98'304, Time{});
  for (int i = 0; i < 24; ++i) ccc->on_ack(ack(4096, 127), Time{});
  EXPECT_EQ(ccc->window_bytes(), 4096U);
  EXPECT_TRUE(ccc->may_send(4096));
}

TEST(FixedWindow, Cms302_WindowComesBackWithoutTheRestoreBit) {
  const std::unique_ptr<Ccc> ccc = make_ccc(fixed(), Time{});
  ccc->on_ack(ack(0, 127), Time{});
  EXPECT_EQ(ccc->window_bytes(), 4096U);
  ccc->on_ack(ack(4096), Time{});
  EXPECT_EQ(ccc->window_bytes(), 8192U);
  for (int i = 0; i < 2000; ++i) ccc->on_ack(ack(4096), Time{});
  EXPECT_EQ(ccc->window_bytes(), 100'000U);
}

TEST(Ccc, Cms104_ForgetTakesBytesOutOfFlight) {
  Parameters nscc;
  nscc.base_rtt = std::chrono::microseconds(12);
  for (const Parameters& p : {fixed(), nscc}) {
    const std::unique_ptr<Ccc> ccc = make_ccc(p, Time{});
    const std::uint64_t window = ccc->window_bytes();
    ccc->on_sent(4096, Time{});
    ccc->forget(4000);
    EXPECT_EQ(ccc->inflight_bytes(), 96);
    ccc->forget(200);
    EXPECT_EQ(ccc->inflight_bytes(), -104);
    ccc->forget(-104);
    EXPECT_EQ(ccc->inflight_bytes(), 0);
    EXPECT_EQ(ccc->window_bytes(), window);
  }
}

}  // namespace
}  // namespace uet::cms
