// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The states of messages that arrive: found, counted, given back.
#include "ses/arriving.h"

#include "unit/ses/harness.h"

namespace uet::ses::test {
namespace {

class ArrivingTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kStates = 8;

  ArrivingTest() { messages.attach(delivery); }
  RxMessage* open(std::uint16_t id, std::uint16_t pdc = 1, RxState state = RxState::Matched) {
    view.pdc = PdcId{pdc};
    return messages.open(view, request_of(id), context, state);
  }
  // The first packet of two.
  static SesRequest request_of(std::uint16_t id) {
    SesRequest request;
    request.opcode = SesOpcode::Send;
    request.message_id = MsgId{id};
    request.eom = false;
    request.request_length = 2 * kMtu;
    return request;
  }

  BufferPool buffers{kMtu, 4};
  PieceStore pieces{buffers};
  Lists delivery;
  Sink sink;
  ContextConfig config;
  Context context{config, sink};
  pds::RequestView view;
  ArrivingMessages messages{kStates, pieces, 1};
};

TEST_F(ArrivingTest, Ses29_IsFoundByPdcAndMessageId) {
  RxMessage* first = open(7, 1);
  RxMessage* second = open(7, 2);
  RxMessage* third = open(8, 2);
  EXPECT_EQ(messages.find(PdcId{1}, MsgId{7}), first);
  EXPECT_EQ(messages.find(PdcId{2}, MsgId{7}), second);
  EXPECT_EQ(messages.find(PdcId{2}, MsgId{8}), third);
  EXPECT_EQ(messages.find(PdcId{1}, MsgId{8}), nullptr);
  for (RxMessage* message : {second, first, third}) messages.release(*message);
  EXPECT_EQ(messages.find(PdcId{2}, MsgId{7}), nullptr);
  EXPECT_EQ(messages.in_use(), 0u);
}

TEST_F(ArrivingTest, SenderIsWatchedUntilAllOfTheMessageIsHere) {
  RxMessage* message = open(7);
  EXPECT_EQ(delivery.locks, 1);
  messages.arrived(*message);
  EXPECT_EQ(delivery.locks, 0);
  EXPECT_EQ(messages.find(PdcId{1}, MsgId{7}), nullptr);  // its id may come again
  RxMessage* next = open(7);
  EXPECT_EQ(messages.find(PdcId{1}, MsgId{7}), next);
  messages.release(*message);
  messages.release(*next);
  EXPECT_EQ(delivery.locks, 0);
}

TEST_F(ArrivingTest, MessageOfOnePacketIsNotLookedFor) {
  SesRequest single = request_of(7);
  single.eom = true;
  view.pdc = PdcId{1};
  RxMessage* message = messages.open(view, single, context, RxState::Matched);
  EXPECT_EQ(messages.find(PdcId{1}, MsgId{7}), nullptr);
  EXPECT_EQ(delivery.locks, 0);
  messages.release(*message);
}

TEST_F(ArrivingTest, Ses35_Abandoned_KeepsFirstErrorUntilEnd) {
  RxMessage* message = open(7);
  messages.abandon(*message, ReturnCode::Dropped);
  EXPECT_EQ(delivery.locks, 0);
  ASSERT_EQ(messages.find(PdcId{1}, MsgId{7}), message);
  messages.abandon(*message, ReturnCode::Uncor);
  EXPECT_EQ(message->return_code, ReturnCode::Dropped);
  message->received = message->expected;
  messages.abandon(*message, ReturnCode::Uncor);
  EXPECT_EQ(messages.in_use(), 0u);
}

TEST_F(ArrivingTest, EachFurtherHostHasHalfOfTheStatesLeft) {
  std::vector<RxMessage*> opened;
  const auto take_all = [&](std::uint8_t host) {
    view.source.ip.bytes[3] = host;
    std::size_t count = 0;
    for (std::uint16_t id = 1; RxMessage* message = open(id, host); ++id, ++count) {
      opened.push_back(message);
    }
    return count;
  };
  EXPECT_EQ(take_all(1), kStates / 2);
  EXPECT_EQ(take_all(2), kStates / 4);
  EXPECT_EQ(take_all(3), kStates / 8);
  for (RxMessage* message : opened) messages.release(*message);
  EXPECT_EQ(take_all(2), kStates / 2);
  for (std::size_t i = kStates - kStates / 8; i < opened.size(); ++i) messages.release(*opened[i]);
}

TEST_F(ArrivingTest, Ses35_RefusalsLeaveAQuarterOfTheStates) {
  const auto refuse = [&](std::uint16_t id, std::uint8_t host) {
    view.source.ip.bytes[3] = host;
    view.pdc = PdcId{host};
    return messages.refuse(view, request_of(id), context, ReturnCode::BadMkey);
  };
  for (std::uint16_t id = 1; id <= kStates / 2; ++id) EXPECT_TRUE(refuse(id, 1));
  EXPECT_FALSE(refuse(99, 1)) << "its share is used up";
  for (std::uint16_t id = 1; id <= kStates / 4; ++id) EXPECT_TRUE(refuse(id, 2));
  EXPECT_FALSE(refuse(1, 3)) << "the last quarter is for others";
  view.source.ip.bytes[3] = 3;
  RxMessage* matched = open(1, 3);
  ASSERT_NE(matched, nullptr);
  messages.release(*matched);
  messages.for_each([&](RxMessage& message) { messages.release(message); });
  EXPECT_EQ(messages.in_use(), 0u);
}

TEST_F(ArrivingTest, UnexpectedMessagesTakeNoneOfTheStates) {
  std::vector<RxMessage*> opened;
  for (std::uint16_t id = 1; id <= 3 * kStates; ++id) {
    opened.push_back(messages.open(view, request_of(id), context, RxState::Unexpected));
    ASSERT_NE(opened.back(), nullptr);
  }
  EXPECT_TRUE(messages.may_open(view));
  for (std::size_t i = 0; i < kStates; ++i) messages.count_in_progress(*opened[i]);
  EXPECT_FALSE(messages.may_open(view));
  for (RxMessage* message : opened) messages.release(*message);
  EXPECT_TRUE(messages.may_open(view));
}

TEST_F(ArrivingTest, ShortageEndsThePdcOfAMessageThatStalls) {
  std::vector<RxMessage*> opened;
  messages.set_time(Time{});
  for (std::uint16_t id = 1; RxMessage* message = open(id, 5); ++id) opened.push_back(message);
  EXPECT_EQ(delivery.aborted, PdcId{});  // none has waited for long
  messages.set_time(Time{} + ArrivingMessages::kStalled);
  opened.front()->heard = Time{} + ArrivingMessages::kStalled;
  EXPECT_EQ(open(100, 5), nullptr);
  EXPECT_EQ(delivery.aborted, PdcId{});  // not the one whose packet is looked at
  messages.set_time(Time{} + ArrivingMessages::kStalled + std::chrono::seconds(1));
  EXPECT_EQ(open(100, 6), nullptr);
  EXPECT_EQ(delivery.aborted, PdcId{5});
  for (RxMessage* message : opened) messages.release(*message);
}

// A host that has used up its share by itself does not end what others wait for.
TEST_F(ArrivingTest, ShortageOfOneHostEndsNoOthersPdc) {
  messages.set_time(Time{});
  view.source.ip.bytes[3] = 1;
  std::vector<RxMessage*> opened{open(1, 5)};
  view.source.ip.bytes[3] = 2;
  messages.set_time(Time{} + ArrivingMessages::kStalled);
  for (std::uint16_t id = 1; RxMessage* message = open(id, 6); ++id) opened.push_back(message);
  ASSERT_GT(opened.size(), 2u);
  EXPECT_EQ(delivery.aborted, PdcId{});
  for (RxMessage* message : opened) messages.release(*message);
}

// One state per PDC: else a host that sends only first packets would use up all memory.
TEST_F(ArrivingTest, Pds211_EachPdc_RemembersPacketHoldingCack) {
  std::vector<RxMessage*> opened;
  for (std::uint16_t id = 1; RxMessage* message = open(id, 1); ++id) opened.push_back(message);
  view.holds_cack = true;
  EXPECT_TRUE(messages.may_open(view));
  RxMessage* reserve = open(100, 1);
  ASSERT_NE(reserve, nullptr);
  EXPECT_EQ(open(101, 1), nullptr);
  EXPECT_FALSE(messages.may_open(view));
  opened.push_back(open(102, 2));
  ASSERT_NE(opened.back(), nullptr);
  messages.release(*reserve);
  opened.push_back(open(103, 1));
  EXPECT_NE(opened.back(), nullptr);
  for (RxMessage* message : opened) messages.release(*message);
}

}  // namespace
}  // namespace uet::ses::test
