// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/watches.h"

#include "unit/ses/operation_harness.h"

namespace uet::ses::test {
namespace {

class WatchesTest : public OperationTest {
 protected:
  WatchesTest() { watches.attach(delivery); }
  Watches watches;
};

TEST_F(WatchesTest, PdcIsWatchedOnceForEachMessage) {
  TxMessage& first = open();
  TxMessage& second = open();
  watches.start(first);
  watches.start(first);
  watches.start(second);
  EXPECT_EQ(delivery.locks, 2);
  watches.stop(first);
  watches.stop(first);
  EXPECT_EQ(delivery.locks, 1);
  EXPECT_TRUE(watches.any());
  watches.stop(second);
  EXPECT_EQ(delivery.locks, 0);
  EXPECT_FALSE(watches.any());
}

TEST_F(WatchesTest, MessageWithoutPdcGetsAnotherOneAfterAPause) {
  TxMessage& message = open();
  watches.start(message);
  watches.go_on_without_pdc(message, kNow);
  delivery.locks = 0;
  EXPECT_FALSE(watches.any());
  EXPECT_EQ(watches.deadline(), kNow + Watches::kPause);
  watches.begin_round();
  watches.reconnect(message, kNow + Watches::kPause);
  EXPECT_EQ(message.pdc, kPdc);
  EXPECT_EQ(delivery.destination.address, message.to);
  EXPECT_EQ(delivery.locks, 1);
  EXPECT_EQ(watches.deadline(), kNever);
  watches.stop(message);
}

TEST_F(WatchesTest, ConnectIsTriedAgainAfterAPause) {
  TxMessage& message = open();
  watches.go_on_without_pdc(message, kNow);
  delivery.refuse = true;
  watches.begin_round();
  watches.reconnect(message, kNow);
  EXPECT_EQ(message.pdc, PdcId{});
  EXPECT_EQ(watches.deadline(), kNow + Watches::kPause);
}

TEST_F(WatchesTest, FailedMessageNeedsNoPdc) {
  TxMessage& message = open();
  watches.go_on_without_pdc(message, kNow);
  message.fail(ReturnCode::Dropped);
  watches.reconnect(message, kNow);
  EXPECT_EQ(delivery.connects, 0);
}

}  // namespace
}  // namespace uet::ses::test
