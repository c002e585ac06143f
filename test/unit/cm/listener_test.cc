// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cm/listener.h"

#include <gtest/gtest.h>

#include "cm_testing.h"

namespace uet::cm {
namespace {

class CmListener : public testing::Test {
 protected:
  CmListener() { listener_.listen(3); }

  static Message request(std::uint8_t host, ConnectionId id) {
    Message message;
    message.type = MessageType::Request;
    message.from = id;
    message.answers = name(host, 100);
    message.endpoint = name(host, 5);
    message.data = Data(bytes("hello"));
    return message;
  }
  void request_comes(std::uint8_t host, ConnectionId id) {
    listener_.on_message(request(host, id), now_);
  }
  void expect_no_message() { EXPECT_EQ(listener_.next_message(), nullptr); }

  Time now_ = time_from_ns(1'000'000'000);
  Listener listener_{name(1, 1), 42};
};

TEST_F(CmListener, Cm24_RepeatedRequestIsAnnouncedOnce) {
  request_comes(2, 7);
  request_comes(2, 7);
  EXPECT_EQ(listener_.waiting(), 1U);
  const auto key = listener_.next_request();
  ASSERT_TRUE(key);
  const PeerRequest* waiting = listener_.find(*key);
  ASSERT_NE(waiting, nullptr);
  EXPECT_EQ(text(waiting->data), "hello");
  EXPECT_EQ(waiting->endpoint, name(2, 5));
  listener_.pop_request();
  EXPECT_FALSE(listener_.next_request());
  expect_no_message();
}

TEST_F(CmListener, Cm24_TakenRequestStaysKnown) {
  request_comes(2, 7);
  const RequestKey key = *listener_.next_request();
  listener_.pop_request();
  ASSERT_TRUE(listener_.take(key, now_));
  EXPECT_FALSE(listener_.take(key, now_));
  request_comes(2, 7);  // its answer got lost
  EXPECT_FALSE(listener_.next_request());
  EXPECT_EQ(listener_.waiting(), 0U);
  expect_no_message();
}

TEST_F(CmListener, Cm28_RequestTakenLongAgoIsRejected) {
  request_comes(2, 7);
  ASSERT_TRUE(listener_.take(*listener_.next_request(), now_));
  for (int i = 0; i < 9; ++i) {
    now_ += seconds(6);
    request_comes(2, 7);
    listener_.progress(now_);
  }
  expect_no_message();
  now_ += seconds(6);
  request_comes(2, 7);
  EXPECT_EQ(received(expect_message(listener_, MessageType::Reject)).reason,
            RejectReason::NoListener);
}

TEST_F(CmListener, Cm24_RejectedRequestIsRejectedAgain) {
  request_comes(2, 7);
  const RequestKey key = *listener_.next_request();
  ASSERT_TRUE(listener_.reject(key, bytes("no"), now_));
  const Message no = received(expect_message(listener_, MessageType::Reject));
  EXPECT_EQ(no.to, 7U);
  EXPECT_EQ(no.reason, RejectReason::Application);
  EXPECT_EQ(text(no.data), "no");
  request_comes(2, 7);
  EXPECT_EQ(text(expect_message(listener_, MessageType::Reject).message.data), "no");
  EXPECT_FALSE(listener_.next_request());
}

TEST_F(CmListener, Cm27_CancelledRequestCannotBeTaken) {
  request_comes(2, 7);
  const RequestKey key = *listener_.next_request();
  Message cancel = request(2, 7);
  cancel.type = MessageType::Cancel;
  listener_.on_message(cancel, now_);
  EXPECT_FALSE(listener_.next_request());
  EXPECT_FALSE(listener_.take(key, now_));
  EXPECT_EQ(listener_.waiting(), 0U);
  request_comes(2, 7);  // a copy that was late
  EXPECT_FALSE(listener_.next_request());
}

TEST_F(CmListener, Cm40_OneHostHasTheBacklogAndOthersAThird) {
  for (ConnectionId id = 1; id <= 3; ++id) request_comes(2, id);
  expect_no_message();
  request_comes(2, 4);
  EXPECT_EQ(received(expect_message(listener_, MessageType::Reject)).reason, RejectReason::Busy);
  request_comes(3, 4);  // another host
  expect_no_message();
  EXPECT_EQ(listener_.waiting(), 4U);
  request_comes(4, 4);
  EXPECT_EQ(received(expect_message(listener_, MessageType::Reject)).reason, RejectReason::Busy);
}

TEST_F(CmListener, Cm40_AnAnsweredRequestGivesItsPlaceBack) {
  for (ConnectionId id = 1; id <= 3; ++id) request_comes(2, id);
  ASSERT_TRUE(listener_.take(*listener_.next_request(), now_));
  request_comes(2, 4);
  EXPECT_EQ(listener_.waiting(), 3U);
  expect_no_message();
}

TEST_F(CmListener, Cm40_BacklogOfAThousand) {
  listener_.listen(1000);
  for (ConnectionId id = 1; id <= 1000; ++id) request_comes(2, id);
  EXPECT_EQ(listener_.waiting(), 1000U);
  expect_no_message();
}

TEST_F(CmListener, Cm40_AnswersToAFloodAreBounded) {
  for (ConnectionId id = 1; id <= 100'000; ++id) request_comes(2, id);
  std::size_t answers = 0;
  for (; listener_.next_message() != nullptr; ++answers) listener_.pop_message();
  EXPECT_LE(answers, 1024U);
  EXPECT_EQ(listener_.waiting(), 3U);
}

TEST_F(CmListener, Cm26_RequestThatIsNotRepeatedIsForgotten) {
  request_comes(2, 7);
  const RequestKey key = *listener_.next_request();
  now_ += Listener::kForgotten - seconds(1);
  listener_.progress(now_);
  EXPECT_NE(listener_.find(key), nullptr);
  now_ += seconds(7);
  EXPECT_LE(listener_.next_deadline(), now_);
  listener_.progress(now_);
  EXPECT_EQ(listener_.find(key), nullptr);
  EXPECT_EQ(listener_.waiting(), 0U);
  EXPECT_EQ(listener_.next_deadline(), kNever);
}

TEST_F(CmListener, Cm24_MemoryOfAnswersIsBounded) {
  listener_.listen(1);
  for (ConnectionId id = 1; id <= Listener::kMostRemembered + 10; ++id) {
    request_comes(2, id);
    ASSERT_TRUE(listener_.take(*listener_.next_request(), now_));
    listener_.pop_request();
  }
  request_comes(2, 1);  // forgotten: a new request
  EXPECT_TRUE(listener_.next_request());
}

TEST_F(CmListener, Cm21_ClosedListenerRejectsWhatWaitsAndComes) {
  request_comes(2, 7);
  listener_.close(now_);
  const Message no = received(expect_message(listener_, MessageType::Reject));
  EXPECT_EQ(no.reason, RejectReason::NoListener);
  EXPECT_EQ(no.to, 7U);
  EXPECT_FALSE(listener_.next_request());
  request_comes(2, 8);
  EXPECT_EQ(received(expect_message(listener_, MessageType::Reject)).reason,
            RejectReason::NoListener);
}

}  // namespace
}  // namespace uet::cm
