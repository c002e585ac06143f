// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pds/tx_window.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "pds/retransmit.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds {
namespace {

class TxWindowTest : public ::testing::Test {
 protected:
  TxWindowTest() { pool_.reserve(2); }
  // A window that holds `count` packets from `start` on.
  TxWindow& filled(std::uint32_t start, int count) {
    TxWindow& window = window_.emplace(pool_, Psn{start});
    for (int i = 0; i < count; ++i) window.put().packet = &packet_;
    return window;
  }
  TxWindow::Pool pool_{128, 2};
  std::optional<TxWindow> window_;
  Packet packet_;
};

TEST_F(TxWindowTest, Pds33_BeginsEmptyWithClearBelowStart) {
  TxWindow window(pool_, Psn{500});
  EXPECT_TRUE(window.empty());
  EXPECT_EQ(window.next_psn(), Psn{500});
  EXPECT_EQ(window.base(), Psn{500});
  EXPECT_EQ(window.clear_psn(), Psn{499});
}

TEST_F(TxWindowTest, Pds40_FullAtItsCapacity) {
  TxWindow& window = filled(500, 127);
  EXPECT_FALSE(window.full());
  window.put().packet = &packet_;
  EXPECT_TRUE(window.full());
  EXPECT_EQ(window.span(), 128U);
}

// PDS-40. The ring of records widens while the window is anywhere in it, and no record is lost.
TEST_F(TxWindowTest, Pds40_RecordsOfAnyWindowAreFound) {
  for (std::uint32_t slid = 0; slid < 130; ++slid) {
    TxWindow& window = filled(500, 1);
    for (std::uint32_t psn = 500; psn < 500 + slid; ++psn) {
      window.put().packet = &packet_;
      window.at(Psn{psn}).packet = nullptr;
      window.slide();
    }
    const std::uint32_t base = 500 + slid;
    window.at(Psn{base}).tag = base;
    for (std::uint32_t psn = base + 1; psn < base + 128; ++psn) {
      TxRecord& record = window.put();
      record.packet = &packet_;
      record.tag = psn;
    }
    EXPECT_TRUE(window.full());
    for (std::uint32_t psn = base; psn < base + 128; ++psn) {
      ASSERT_NE(window.find(Psn{psn}), nullptr) << psn << " after " << slid;
      ASSERT_EQ(window.find(Psn{psn})->tag, psn) << "after " << slid;
    }
  }
}

// PDS-77. Also where the window had wrapped around in its records.
TEST_F(TxWindowTest, Pds77_RecordsKeepTheirPlaceBehindAnotherStart) {
  TxWindow& window = filled(500, 100);
  for (std::uint32_t psn = 500; psn < 560; ++psn) window.at(Psn{psn}).packet = nullptr;
  window.slide();
  for (int i = 0; i < 60; ++i) window.put().packet = &packet_;
  std::vector<TxRecord*> records;
  for (std::uint32_t psn = 560; psn < 660; ++psn) records.push_back(&window.at(Psn{psn}));
  window.rebase(Psn{7'000});
  EXPECT_EQ(window.base(), Psn{7'000});
  EXPECT_EQ(window.next_psn(), Psn{7'100});
  for (std::uint32_t i = 0; i < 100; ++i) EXPECT_EQ(window.find(Psn{7'000 + i}), records[i]) << i;
  EXPECT_EQ(window.put().packet, nullptr);
  EXPECT_EQ(window.span(), 101U);
}

// Whatever its PSNs are.
TEST_F(TxWindowTest, BeginsWhereTheLastOneBegan) {
  const TxRecord* const first = &filled(500, 1).at(Psn{500});
  window_->at(Psn{500}).packet = nullptr;
  window_->slide();
  EXPECT_EQ(&window_->put(), first);
  EXPECT_EQ(&filled(77'777, 3).at(Psn{77'777}), first);
}

TEST_F(TxWindowTest, Pds114_ClearMovesOverAcknowledgedPsnsOnly) {
  TxWindow& window = filled(500, 4);
  window.find(Psn{501})->packet = nullptr;
  window.slide();
  EXPECT_EQ(window.clear_psn(), Psn{499});
  window.find(Psn{500})->packet = nullptr;
  window.slide();
  EXPECT_EQ(window.clear_psn(), Psn{501});
  EXPECT_EQ(window.base(), Psn{502});
}

TEST_F(TxWindowTest, FindAnswersForOutstandingPsnsOnly) {
  TxWindow& window = filled(500, 4);
  EXPECT_EQ(window.find(Psn{499}), nullptr);
  EXPECT_NE(window.find(Psn{503}), nullptr);
  EXPECT_EQ(window.find(Psn{504}), nullptr);
  EXPECT_EQ(window.find(Psn{500 + 128}), nullptr);
  EXPECT_EQ(window.find(Psn{500U + 0x80000000U}), nullptr);
  window.find(Psn{502})->packet = nullptr;
  EXPECT_EQ(window.find(Psn{502}), nullptr);
}

TEST_F(TxWindowTest, PutGivesABlankRecordWhereAnOldOneWas) {
  TxWindow& window = filled(500, 128);
  window.find(Psn{500})->sacked = true;
  for (std::uint32_t psn = 500; psn < 628; ++psn) window.find(Psn{psn})->packet = nullptr;
  window.slide();
  EXPECT_TRUE(window.empty());
  EXPECT_FALSE(window.put().sacked);
  EXPECT_EQ(window.at(Psn{628}).rto_count, 0U);
}

TEST_F(TxWindowTest, PsnsWrap) {
  TxWindow& window = filled(0xFFFFFFFEU, 4);  // ..FE, ..FF, 0, 1
  EXPECT_EQ(window.next_psn(), Psn{2});
  EXPECT_NE(window.find(Psn{0}), nullptr);
  window.find(Psn{0xFFFFFFFEU})->packet = nullptr;
  window.find(Psn{0xFFFFFFFFU})->packet = nullptr;
  window.find(Psn{0})->packet = nullptr;
  window.slide();
  EXPECT_EQ(window.clear_psn(), Psn{0});
  EXPECT_EQ(window.span(), 1U);
}

TEST_F(TxWindowTest, HoldsABlockOnlyWhileSomethingIsOutstanding) {
  TxWindow& window = filled(500, 2);
  EXPECT_EQ(pool_.in_use(), 1U);
  window.at(Psn{500}).packet = nullptr;
  window.slide();
  EXPECT_EQ(pool_.in_use(), 1U);
  window.at(Psn{501}).packet = nullptr;
  window.slide();
  EXPECT_EQ(pool_.in_use(), 0U);
  EXPECT_EQ(window.find(Psn{501}), nullptr);
  window.put().packet = &packet_;
  EXPECT_EQ(pool_.in_use(), 1U);
  window_.reset();
  EXPECT_EQ(pool_.in_use(), 0U);
}

}  // namespace

// ---- in a PDC -----------------------------------------------------------------------------------

namespace testing {
namespace {

class WindowOfAPdc : public Bench {};

TEST_F(WindowOfAPdc, Pds43_MprZeroInTheFirstAckKeepsDefaultMpr) {
  TestMessage& message = send(2000);
  EXPECT_EQ(requests(turn()).size(), 1024U);
  pdc = message.pdc;
  wire::AckHeader first = ack(70009, 70009);
  first.mpr = 0;
  EXPECT_EQ(requests(answer_to(first)).size(), 10U);
}

// Half of the window that the peer tells, not of what we could track.
TEST_F(WindowOfAPdc, Pds47_AnAckIsAskedForAtHalfOfThePeersWindow) {
  TestMessage& message = send(500);
  turn();
  pdc = message.pdc;
  wire::AckHeader narrow = ack(70499, 70499);
  narrow.mpr = 1;
  receive(narrow);
  send(500);
  const auto headers = requests(turn());
  ASSERT_EQ(headers.size(), 128U);
  for (std::size_t i = 0; i < headers.size(); ++i) EXPECT_EQ(headers[i].ar, i % 64 == 63) << i;
}

TEST_F(WindowOfAPdc, Pds3_ClosedWindow_PassesControlPackets) {
  cms::Parameters narrow = open_window();
  narrow.fixed_window_bytes = narrow.mtu_bytes = 4096;
  build(test_parameters(), narrow);
  open();
  node->manager->lock(pdc);
  send(4, DeliveryMode::Rud, 4000);
  EXPECT_EQ(requests(turn()).size(), 1U);
  EXPECT_EQ(controls(answer_to(control(wire::CpType::ClearRequest, 0))).size(), 1U);
  peer_start = 70000;
  const auto refused = answer_to(request(70000 + 2000));
  EXPECT_EQ(nacks(refused).size(), 1U);
  node->manager->find(pdc)->send_side().send_control(wire::CpType::Noop, now);
  const auto noop = turn();
  EXPECT_EQ(controls(noop).size(), 1U);
  EXPECT_TRUE(requests(noop).empty());
}

// A message that the window holds back is not late: all packets inside have been acknowledged, a
// response that is not cleared holds CACK, and the peer, which answers, takes any time.
TEST_F(WindowOfAPdc, Pds127_ForbiddenByWindow_ClockStandsStill) {
  open();
  TestMessage& message = send(200);
  EXPECT_EQ(requests(turn()).size(), 200U);
  wire::AckHeader held = ack(70000, 70000);
  held.mpr = 1;
  for (std::int16_t i = 1; i <= 128; ++i) {
    held.ack_psn_offset = i;
    receive(held);
  }
  const Time end = now + 2 * time_to_failure(test_parameters());
  while (now < end) {
    const std::vector<Sent> sent = after(milliseconds(20));
    EXPECT_TRUE(requests(sent).empty());
    if (!controls(sent).empty()) receive(held);
  }
  ASSERT_TRUE(message.errors.empty());
  held = ack(70128, 70128);
  held.mpr = 1;
  EXPECT_TRUE(requests(answer_to(held)).empty());  // nor is it late now: 20 ms from here
  EXPECT_EQ(requests(after(milliseconds(21))).size(), 72U);
}

// The peer drops it: credit is asked for only where nothing is in flight (CMS-215).
TEST_F(WindowOfAPdc, Pds127_WhatTheWindowForbidsIsNotInFlight) {
  open();
  send(200);
  EXPECT_EQ(requests(turn()).size(), 200U);
  wire::AckHeader held = ack(70000, 70000);
  held.mpr = 1;
  for (std::int16_t i = 1; i <= 128; ++i) {
    held.ack_psn_offset = i;
    receive(held);
  }
  const cms::Ccc& ccc = *node->manager->find(pdc)->ccc().ccc;
  EXPECT_GT(ccc.inflight_bytes(), 0);
  after(milliseconds(21));
  EXPECT_EQ(ccc.inflight_bytes(), 0);
  held = ack(70128, 70128);
  held.mpr = 1;
  answer_to(held);
  EXPECT_EQ(requests(after(milliseconds(42))).size(), 72U) << "sent again once it is allowed";
}

}  // namespace
}  // namespace testing
}  // namespace uet::pds
