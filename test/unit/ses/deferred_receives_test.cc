// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Parked messages and the requests to restart them, without sender and receiver.
#include "ses/deferred_receives.h"

#include "unit/ses/receiver_harness.h"

namespace uet::ses::test {
namespace {

Parameters deferrable_parameters() {
  Parameters parameters = small_parameters();
  parameters.deferrable = true;
  parameters.parked_per_context = 2;
  parameters.deferred_timeout = std::chrono::seconds(5);
  return parameters;
}

class DeferredReceivesTest : public ReceiverTest {
 protected:
  static constexpr std::uint32_t kLength = 2 * kMtu;
  static constexpr std::uint32_t kSendersToken = 0x1234;

  DeferredReceivesTest() : ReceiverTest(deferrable_parameters()) {}

  static SesRequest first_packet(std::uint16_t id, std::uint32_t target_token = 0) {
    SesRequest request = request_of(id, kLength, SesOpcode::DeferrableSend);
    request.set_restart_tokens(kSendersToken, target_token);
    return request;
  }
  // A parked message whose packets have all arrived.
  RxMessage& park(std::uint16_t id = 7, Time now = kNow) {
    const SesRequest request = first_packet(id);
    RxMessage& message = open(request, RxState::Unexpected);
    EXPECT_TRUE(memory.admit(message, true));
    context.receives.untagged.add(message);
    const pds::Response response = deferred.park(request, message, now);
    EXPECT_EQ(header_of(response).list, wire::List::Overflow);
    EXPECT_EQ(header_of(response).modified_length, 0u);
    message.received = message.expected;
    messages.arrived(message);
    return message;
  }
  // A receive takes the parked message.
  RxMessage& match(RxMessage& message, void* operation = nullptr) {
    matched.take(message, receive(place, operation));
    return message;
  }
  void ask_all() {
    queue.try_now();
    queue.ask_all(kNow, [&](RxMessage& message) { return deferred.ask(message, kNow); });
  }
  void release(PostedReceive* receive) {
    ASSERT_NE(receive, nullptr);
    receives.release(*receive);
  }

  Bytes place = Bytes(kLength);
};

TEST_F(DeferredReceivesTest, Ses74_OrderedAndEmptyMessagesAreNotParked) {
  EXPECT_TRUE(deferred.may_park(view, first_packet(7), context));
  view.mode = DeliveryMode::Rod;
  EXPECT_FALSE(deferred.may_park(view, first_packet(7), context));
  view.mode = DeliveryMode::Rud;
  EXPECT_FALSE(deferred.may_park(view, request_of(7, kLength), context)) << "no deferrable send";
  SesRequest empty = first_packet(7);
  empty.request_length = 0;
  EXPECT_FALSE(deferred.may_park(view, empty, context));
}

TEST_F(DeferredReceivesTest, Ses66_ParkedMessagesOfAContextAreBounded) {
  RxMessage& first = park(1);
  RxMessage& second = park(2);
  EXPECT_FALSE(deferred.may_park(view, first_packet(3), context));
  EXPECT_EQ(deferred.drop(first, ReturnCode::Dropped), nullptr);
  EXPECT_TRUE(deferred.may_park(view, first_packet(3), context));
  deferred.drop(second, ReturnCode::Dropped);
}

TEST_F(DeferredReceivesTest, Ses71_RestartTakesTheReceiveOfItsMessage) {
  RxMessage& parked = match(park(), this);
  ask_all();
  ASSERT_EQ(delivery.backlog.size(), 1u);
  EXPECT_EQ(asked().header.opcode, SesOpcode::DeferrableRtr);
  EXPECT_EQ(asked().header.initiator_restart_token(), kSendersToken);
  const std::uint32_t token = asked().header.target_restart_token();
  EXPECT_EQ(deferred.find_restarting(view, first_packet(9, token + 1), context), nullptr);
  SesRequest shorter = first_packet(9, token);
  shorter.request_length -= 1;
  EXPECT_EQ(deferred.find_restarting(view, shorter, context), nullptr);
  SesRequest other = first_packet(9, token);
  other.initiator = InitiatorId{99};
  EXPECT_EQ(deferred.find_restarting(view, other, context), nullptr);
  ASSERT_EQ(deferred.find_restarting(view, first_packet(9, token), context), &parked);
  RxMessage* restarted = deferred.take_over(view, first_packet(9, token), context, parked);
  ASSERT_NE(restarted, nullptr);
  EXPECT_EQ(restarted->receive->operation, this);
  EXPECT_EQ(messages.in_use(), 1u) << "the parked state is free";
  receives.release(receives.withdraw(*restarted, *restarted));
  messages.release(*restarted);
}

TEST_F(DeferredReceivesTest, Ses113_RefusedRequestReturnsTheReceive) {
  RxMessage& parked = match(park());
  ask_all();
  release(deferred.asked(parked, Status::ReturnCode, false));
  EXPECT_EQ(messages.in_use(), 0u);
  EXPECT_FALSE(deferred.waits());
}

TEST_F(DeferredReceivesTest, Pds142_UnconsumedRequestIsSentAgain) {
  RxMessage& parked = match(park());
  ask_all();
  EXPECT_EQ(deferred.asked(parked, Status::PdsError, true), nullptr);
  answer();
  EXPECT_EQ(parked.restart_token, 0u);
  EXPECT_EQ(queue.next_try(), Time{}) << "the first time at once";
  ask_all();
  EXPECT_NE(parked.restart_token, 0u);
  release(deferred.drop(parked, ReturnCode::Dropped));
}

TEST_F(DeferredReceivesTest, Pds142_UnconsumedRequest_ResendsAreLimited) {
  RxMessage& parked = match(park());
  for (int i = 0; i < parameters.retries; ++i) {
    ask_all();
    EXPECT_EQ(deferred.asked(parked, Status::PdsError, true), nullptr) << i;
    EXPECT_EQ(queue.next_try() == Time{}, i == 0) << "the first time at once";
    answer();
  }
  ask_all();
  release(deferred.asked(parked, Status::PdsError, true));
  EXPECT_EQ(messages.in_use(), 0u);
}

TEST_F(DeferredReceivesTest, Ses76_MessageThatIsLeftIsAskedForAllTheSame) {
  RxMessage& parked = match(park(), this);
  EXPECT_EQ(deferred.find_reserved(context.receives, this), &parked);
  EXPECT_EQ(deferred.find_reserved(context.receives, nullptr), nullptr);
  release(deferred.leave(parked));
  EXPECT_EQ(deferred.find_reserved(context.receives, this), nullptr);
  EXPECT_EQ(parked.context, nullptr);
  ask_all();
  EXPECT_EQ(delivery.backlog.size(), 1u);
  EXPECT_EQ(deferred.asked(parked, Status::Ok, false), nullptr);
  EXPECT_EQ(messages.in_use(), 0u);
}

TEST_F(DeferredReceivesTest, DiscardedMessageIsDroppedWhenItComes) {
  RxMessage& parked = park();
  unexpected.discard(parked);
  ask_all();
  const SesRequest restart = first_packet(9, asked().header.target_restart_token());
  ASSERT_EQ(deferred.find_restarting(view, restart, context), &parked);
  const pds::Response response = deferred.drop_restarted(view, restart, context, parked);
  EXPECT_EQ(code_of(response), ReturnCode::Ok);
  RxMessage* refused = messages.find(kPdc, MsgId{9});
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->return_code, ReturnCode::Ok);
  messages.release(*refused);
}

TEST_F(DeferredReceivesTest, MessageExpiresAfterItsTimeout) {
  EXPECT_EQ(deferred.deadline(), kNever);
  RxMessage& parked = park();
  const Time end = kNow + parameters.deferred_timeout;
  EXPECT_EQ(deferred.deadline(), end);
  EXPECT_EQ(deferred.expired(end - Duration{1}), nullptr);
  EXPECT_EQ(deferred.expired(end), &parked);
  deferred.drop(parked, ReturnCode::Dropped);
  EXPECT_EQ(deferred.expired(end), nullptr);
}

TEST_F(DeferredReceivesTest, ClosedPdcLeavesParkedMessages) {
  RxMessage& parked = park();
  deferred.pdc_closed(kPdc, true, [](RxMessage&) { FAIL() << "it can be asked for"; });
  EXPECT_EQ(parked.pdc, PdcId{});
  delivery.locks = 0;  // PDS has forgotten the PDC
  deferred.drop(parked, ReturnCode::Dropped);
  RxMessage& lost = park(8);
  std::vector<RxMessage*> dropped;
  deferred.pdc_closed(kPdc, false, [&](RxMessage& message) { dropped.push_back(&message); });
  EXPECT_EQ(dropped, std::vector{&lost});
  delivery.locks = 0;
  deferred.drop(lost, ReturnCode::Dropped);
}

TEST_F(DeferredReceivesTest, ClosedContextGivesUpItsReceives) {
  RxMessage& parked = match(park());
  std::size_t released = 0;
  deferred.close_context(context, [&](PostedReceive& receive) {
    receives.release(receive);
    ++released;
  });
  EXPECT_EQ(released, 1u);
  EXPECT_TRUE(parked.leaving);
  deferred.drop(parked, ReturnCode::Dropped);
}

}  // namespace
}  // namespace uet::ses::test
