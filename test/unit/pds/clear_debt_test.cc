// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pds/clear_debt.h"

#include <gtest/gtest.h>

namespace uet::pds {
namespace {

constexpr Psn kPsn{1000};

TEST(ClearDebt, Pds115_AskedClearMayWaitForARequest) {
  ClearDebt debt;
  EXPECT_TRUE(debt.on_ack(kPsn, kPsn - 1, kPsn, false));
  EXPECT_TRUE(debt.may_wait_for_request());
  EXPECT_FALSE(debt.is_urgent());
  EXPECT_FALSE(debt.on_ack(kPsn, kPsn, kPsn, false)) << "owed already";
  debt.paid();
  EXPECT_FALSE(debt.owed());
}

TEST(ClearDebt, AckThatAsksForNoneOwesNone) {
  ClearDebt debt;
  EXPECT_FALSE(debt.on_ack({}, kPsn, kPsn + 1, false));
  EXPECT_FALSE(debt.owed());
}

TEST(ClearDebt, ClearBehindAGapIsOwedAgainWhenTheGapCloses) {
  ClearDebt debt;
  debt.on_ack(kPsn + 5, kPsn, kPsn, false);
  debt.paid();
  EXPECT_FALSE(debt.on_ack({}, kPsn, kPsn, false)) << "CLEAR_PSN has not moved";
  EXPECT_TRUE(debt.on_ack({}, kPsn, kPsn + 5, false));
  debt.paid();
  EXPECT_FALSE(debt.on_ack({}, kPsn + 5, kPsn + 6, false)) << "it has been cleared";
}

TEST(ClearDebt, NothingIsWantedWithNothingOutstanding) {
  ClearDebt debt;
  debt.on_ack(kPsn + 5, kPsn, kPsn, true);
  debt.paid();
  EXPECT_FALSE(debt.on_ack({}, kPsn, kPsn + 1, false));
}

TEST(ClearDebt, Pds118_LostClearIsUrgent) {
  ClearDebt debt;
  debt.pay_at_once();
  EXPECT_TRUE(debt.is_urgent());
  EXPECT_FALSE(debt.may_wait_for_request());
  EXPECT_FALSE(debt.on_ack(kPsn, kPsn - 1, kPsn, false));
  EXPECT_TRUE(debt.is_urgent());
}

}  // namespace
}  // namespace uet::pds
