// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The states of messages that arrive: found, counted, given back.
#include "uet/ses/arriving.h"

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
  PieceStore pieces{buffers, 4};
  Lists delivery;
  Sink sink;
  ContextConfig config;
  Context context{config, sink};
  pds::RequestView view;
  ArrivingMessages messages{kStates, pieces};
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

TEST_F(ArrivingTest, Ses35_AbandonedMessageRemembersItsFirstErrorUntilItsEnd) {
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

TEST_F(ArrivingTest, SpareStatesEndBeforeTheLastQuarter) {
  std::vector<RxMessage*> opened;
  const auto open_spare = [&](std::uint16_t id) {
    return messages.open_spare(view, request_of(id), context, RxState::Unexpected);
  };
  for (std::uint16_t id = 1; RxMessage* message = open_spare(id); ++id) opened.push_back(message);
  EXPECT_EQ(opened.size(), kStates - kStates / 4);
  while (RxMessage* message = open(static_cast<std::uint16_t>(100 + opened.size()))) {
    opened.push_back(message);
  }
  EXPECT_EQ(opened.size(), kStates);
  std::size_t seen = 0;
  messages.for_each([&](RxMessage& message) {
    ++seen;
    messages.release(message);
  });
  EXPECT_EQ(seen, kStates);
}

}  // namespace
}  // namespace uet::ses::test
