// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Messages that the target reads, without sender and receiver.
#include "ses/rendezvous_target.h"

#include "unit/ses/receiver_harness.h"

namespace uet::ses::test {
namespace {

using Outcome = RendezvousTarget::Outcome;

class RendezvousTargetTest : public ReceiverTest {
 protected:
  static constexpr std::uint32_t kLength = 4 * kMtu;
  static constexpr std::uint32_t kEager = kMtu;

  // A message with a receive, of which the sender has sent the first kEager bytes.
  RxMessage& bound(Bytes& into) {
    RxMessage& message = open(request_of(7, kLength));
    message.som_seen = true;
    message.read_from = message.expected = kEager;
    rendezvous.begin(message);
    matched.bind(message, receive(into));
    message.received = message.placed = kEager;
    return message;
  }
  void ask_all() {
    queue.ask_all(kNow, [&](RxMessage& message) { return rendezvous.ask(message, kNow); });
  }
  // Frees the message and its receive.
  void free(RxMessage& message) {
    receives.release(receives.withdraw(message, message));
    rendezvous.stop(message);
    messages.release(message);
  }

  Bytes place = Bytes(kLength);
};

TEST_F(RendezvousTargetTest, Ses57_TheRestIsReadIntoTheReceive) {
  RxMessage& message = bound(place);
  EXPECT_TRUE(rendezvous.read_rest(message));
  ask_all();
  ASSERT_EQ(delivery.backlog.size(), 1u);
  EXPECT_EQ(asked().header.buffer_offset, kEager);
  EXPECT_EQ(asked().length, kLength - kEager);
  EXPECT_EQ(asked().iov[0].data, place.data() + kEager);
  EXPECT_EQ(rendezvous.pulled(message, Status::Ok, false), Outcome::Whole);
  EXPECT_EQ(message.placed, kLength);
  EXPECT_FALSE(message.must_read);
  free(message);
}

TEST_F(RendezvousTargetTest, Ses63_ShortReceiveOnlyInformsTheSender) {
  place.resize(kEager / 2);
  RxMessage& message = bound(place);
  EXPECT_FALSE(rendezvous.read_rest(message)) << "all that the receive can hold is here";
  receives.release(receives.withdraw(message, message));
  rendezvous.dismiss(message);
  ask_all();
  ASSERT_EQ(delivery.backlog.size(), 1u);
  EXPECT_EQ(asked().length, 0u);
  EXPECT_EQ(asked().header.buffer_offset, kLength);
  EXPECT_EQ(rendezvous.pulled(message, Status::Ok, false), Outcome::None);
  EXPECT_EQ(messages.in_use(), 0u);
}

TEST_F(RendezvousTargetTest, PlainMessageIsFreedAtOnce) {
  RxMessage& message = open(request_of(7, 100));
  EXPECT_FALSE(rendezvous.read_rest(message));
  rendezvous.dismiss(message);
  EXPECT_EQ(messages.in_use(), 0u);
  EXPECT_TRUE(queue.empty());
}

TEST_F(RendezvousTargetTest, Pds142_UnconsumedRead_AtOnceThenByTime) {
  RxMessage& message = bound(place);
  ASSERT_TRUE(rendezvous.read_rest(message));
  for (int i = 0; i < parameters.retries; ++i) {
    queue.try_now();
    ask_all();
    EXPECT_EQ(rendezvous.pulled(message, Status::PdsError, true), Outcome::None);
    EXPECT_EQ(queue.next_try() == Time{}, i == 0);
    answer();
  }
  queue.try_now();
  ask_all();
  EXPECT_EQ(rendezvous.pulled(message, Status::PdsError, true), Outcome::Failed);
  free(message);
}

TEST_F(RendezvousTargetTest, Ses64_SenderHearsOfTheFailedRead) {
  RxMessage& message = bound(place);
  ASSERT_TRUE(rendezvous.read_rest(message));
  ask_all();
  EXPECT_EQ(rendezvous.pulled(message, Status::ReturnCode, false), Outcome::Failed);
  answer();
  receives.release(receives.withdraw(message, message));
  rendezvous.dismiss(message);
  ask_all();
  ASSERT_EQ(delivery.backlog.size(), 1u);
  EXPECT_TRUE(asked().header.ie);
  EXPECT_EQ(asked().length, 0u);
  EXPECT_EQ(rendezvous.pulled(message, Status::ReturnCode, false), Outcome::None);
  EXPECT_EQ(messages.in_use(), 0u);
}

TEST_F(RendezvousTargetTest, DeadPdcEndsWhatCannotBeRead) {
  RxMessage& message = bound(place);
  message.received = 0;  // the eager part is still to come
  int ended = 0;
  const auto end = [&](RxMessage&) { ++ended; };
  rendezvous.pdc_closed(PdcId{1}, false, end);
  EXPECT_EQ(ended, 0) << "another PDC";
  messages.arrived(message);
  rendezvous.pdc_closed(kPdc, false, end);
  EXPECT_EQ(ended, 1);
  delivery.locks = 0;  // PDS has forgotten the PDC
  free(message);
}

TEST_F(RendezvousTargetTest, ClosedPdcLeavesWhatIsHere) {
  RxMessage& message = bound(place);
  messages.arrived(message);
  rendezvous.pdc_closed(kPdc, true, [](RxMessage&) { FAIL() << "it can be read"; });
  EXPECT_EQ(message.pdc, PdcId{});
  delivery.locks = 0;
  EXPECT_TRUE(rendezvous.read_rest(message));
  rendezvous.stop(message);
  free(message);
}

TEST_F(RendezvousTargetTest, ClosedContextInformsTheSender) {
  RxMessage& message = bound(place);
  message.delivery_complete = true;
  ASSERT_TRUE(rendezvous.read_rest(message));
  rendezvous.close_context(
      context, [&](RxMessage& closed) { receives.release(receives.withdraw(closed, closed)); });
  EXPECT_EQ(message.context, nullptr);
  ask_all();
  ASSERT_EQ(delivery.backlog.size(), 1u);
  EXPECT_TRUE(asked().header.ie) << "no receive got it";
  rendezvous.pulled(message, Status::Ok, false);
  EXPECT_EQ(messages.in_use(), 0u);
}

}  // namespace
}  // namespace uet::ses::test
