// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet/pds/tx_window.h"

#include <gtest/gtest.h>

#include <vector>

namespace uet::pds {
namespace {

class TxWindowTest : public ::testing::Test {
 protected:
  // A window that holds `count` packets from `start` on.
  TxWindow filled(std::uint32_t start, int count) {
    TxWindow window(storage_, Psn{start});
    for (int i = 0; i < count; ++i) window.put().packet = &packet_;
    return window;
  }
  std::vector<TxRecord> storage_ = std::vector<TxRecord>(128);
  Packet packet_;
};

TEST_F(TxWindowTest, Pds33_BeginsEmptyWithClearBelowStart) {
  TxWindow window(storage_, Psn{500});
  EXPECT_TRUE(window.empty());
  EXPECT_EQ(window.next_psn(), Psn{500});
  EXPECT_EQ(window.base(), Psn{500});
  EXPECT_EQ(window.clear_psn(), Psn{499});
}

TEST_F(TxWindowTest, Pds40_FullAtItsCapacity) {
  TxWindow window = filled(500, 127);
  EXPECT_FALSE(window.full());
  window.put().packet = &packet_;
  EXPECT_TRUE(window.full());
  EXPECT_EQ(window.span(), 128U);
}

TEST_F(TxWindowTest, Pds114_ClearMovesOverAcknowledgedPsnsOnly) {
  TxWindow window = filled(500, 4);
  window.find(Psn{501})->packet = nullptr;
  window.slide();
  EXPECT_EQ(window.clear_psn(), Psn{499});
  window.find(Psn{500})->packet = nullptr;
  window.slide();
  EXPECT_EQ(window.clear_psn(), Psn{501});
  EXPECT_EQ(window.base(), Psn{502});
}

TEST_F(TxWindowTest, FindAnswersForOutstandingPsnsOnly) {
  TxWindow window = filled(500, 4);
  EXPECT_EQ(window.find(Psn{499}), nullptr);
  EXPECT_NE(window.find(Psn{503}), nullptr);
  EXPECT_EQ(window.find(Psn{504}), nullptr);
  EXPECT_EQ(window.find(Psn{500 + 128}), nullptr);
  EXPECT_EQ(window.find(Psn{500U + 0x80000000U}), nullptr);
  window.find(Psn{502})->packet = nullptr;
  EXPECT_EQ(window.find(Psn{502}), nullptr);
}

TEST_F(TxWindowTest, PutGivesABlankRecordWhereAnOldOneWas) {
  TxWindow window = filled(500, 128);
  window.find(Psn{500})->sacked = true;
  for (std::uint32_t psn = 500; psn < 628; ++psn) window.find(Psn{psn})->packet = nullptr;
  window.slide();
  EXPECT_TRUE(window.empty());
  EXPECT_FALSE(window.put().sacked);
  EXPECT_EQ(window.at(Psn{628}).rto_count, 0U);
}

TEST_F(TxWindowTest, PsnsWrap) {
  TxWindow window = filled(0xFFFFFFFEU, 4);  // ..FE, ..FF, 0, 1
  EXPECT_EQ(window.next_psn(), Psn{2});
  EXPECT_NE(window.find(Psn{0}), nullptr);
  window.find(Psn{0xFFFFFFFEU})->packet = nullptr;
  window.find(Psn{0xFFFFFFFFU})->packet = nullptr;
  window.find(Psn{0})->packet = nullptr;
  window.slide();
  EXPECT_EQ(window.clear_psn(), Psn{0});
  EXPECT_EQ(window.span(), 1U);
}

}  // namespace
}  // namespace uet::pds
