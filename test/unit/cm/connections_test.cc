// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cm/connections.h"

#include <gtest/gtest.h>

#include <set>

#include "cm_testing.h"

namespace uet::cm {
namespace {

using Kind = ConnectionEvent::Kind;

class CmConnections : public testing::Test {
 protected:
  static Timing timing() {
    Timing timing;
    timing.probe_period = seconds(10);
    return timing;
  }

  ConnectionId connect() {
    return initiator_.connect(name(2, 5), JobId{9}, name(1, 1), bytes("hi"), now_);
  }
  static PeerRequest request_of(const Message& message) {
    return {message.from, message.answers, message.endpoint,     message.job,
            message.data, name(1, 1),      message.keep_alive_ms};
  }
  // Both ends of an established connection. `period`: the acceptor states one.
  void establish(bool period = true) {
    near_ = connect();
    const Message request = received(expect_message(initiator_, MessageType::Request));
    initiator_.sent(near_, MessageType::Request, Outcome::Delivered, now_);
    far_ = acceptor_.accept(request_of(request), name(1, 6, 4794), JobId{9}, bytes("yes"), now_);
    accept_ = received(expect_message(acceptor_, MessageType::Accept));
    EXPECT_EQ(accept_.keep_alive_ms, 10'000U);
    if (!period) accept_.keep_alive_ms = 0;
    initiator_.on_message(accept_, now_);
    acceptor_.sent(far_, MessageType::Accept, Outcome::Delivered, now_);
    acceptor_.on_message(received(expect_message(initiator_, MessageType::Confirm)), now_);
    initiator_.sent(near_, MessageType::Confirm, Outcome::Delivered, now_);
    expect_event(initiator_, near_, Kind::Connected);
    expect_event(acceptor_, far_, Kind::Connected);
  }
  static ConnectionEvent expect_event(Connections& end, ConnectionId id, Kind kind) {
    const ConnectionEvent* next = end.next_event();
    if (next == nullptr) {
      ADD_FAILURE() << "no event";
      return {};
    }
    const ConnectionEvent event = *next;
    end.pop_event();
    EXPECT_EQ(event.id, id);
    EXPECT_EQ(event.kind, kind);
    return event;
  }
  static void expect_failure(Connections& end, ConnectionId id, Failure failure) {
    EXPECT_EQ(expect_event(end, id, Kind::Failed).failure, failure);
    EXPECT_EQ(end.size(), 0U);
    EXPECT_EQ(end.next_deadline(), kNever);
  }
  static void expect_nothing(Connections& end) {
    EXPECT_EQ(end.next_message(), nullptr);
    EXPECT_EQ(end.next_event(), nullptr);
  }
  static Message reject(ConnectionId to, RejectReason reason) {
    Message message;
    message.type = MessageType::Reject;
    message.reason = reason;
    message.to = to;
    message.answers = name(1, 1);
    message.data = Data(bytes("sorry"));
    return message;
  }
  void pass(Connections& end, Duration time) {
    now_ += time;
    end.progress(now_);
  }

  Time now_ = time_from_ns(1'000'000'000);
  Connections initiator_{name(2, 100), 1, timing()};
  Connections acceptor_{name(1, 200, 4794), 2, timing()};
  ConnectionId near_ = 0;
  ConnectionId far_ = 0;
  Message accept_;
};

TEST_F(CmConnections, Cm20_HandshakeConnectsBothEnds) {
  const ConnectionId id = connect();
  const Outgoing out = expect_message(initiator_, MessageType::Request);
  EXPECT_EQ(out.to, name(1, 1));
  const Message request = received(out);
  EXPECT_EQ(request.from, id);
  EXPECT_EQ(request.to, 0U);
  EXPECT_EQ(request.endpoint, name(2, 5));
  EXPECT_EQ(text(request.data), "hi");
  const ConnectionId far =
      acceptor_.accept(request_of(request), name(1, 6, 4794), JobId{9}, bytes("yes"), now_);
  const Outgoing answer = expect_message(acceptor_, MessageType::Accept);
  EXPECT_EQ(answer.to, name(2, 100));
  initiator_.on_message(received(answer), now_);
  const ConnectionEvent here = expect_event(initiator_, id, Kind::Connected);
  EXPECT_EQ(here.endpoint, name(1, 6, 4794));
  EXPECT_EQ(here.job, JobId{9});
  EXPECT_EQ(text(here.data), "yes");
  const Outgoing confirm = expect_message(initiator_, MessageType::Confirm);
  EXPECT_EQ(confirm.to, name(1, 200, 4794));
  acceptor_.on_message(received(confirm), now_);
  EXPECT_EQ(expect_event(acceptor_, far, Kind::Connected).endpoint, name(2, 5));
  expect_nothing(initiator_);
  expect_nothing(acceptor_);
}

TEST_F(CmConnections, Cm20_RequestIsRepeatedWithGrowingPauses) {
  const ConnectionId id = connect();
  for (const int pause : {1, 2, 4, 8, 8}) {
    expect_message(initiator_, MessageType::Request);
    initiator_.sent(id, MessageType::Request, Outcome::Delivered, now_);
    EXPECT_EQ(initiator_.next_deadline(), now_ + seconds(pause));
    pass(initiator_, seconds(pause));
  }
  EXPECT_EQ(expect_message(initiator_, MessageType::Request).about, id);
}

TEST_F(CmConnections, Cm20_RequestUnderWayIsNotRepeated) {
  connect();
  expect_message(initiator_, MessageType::Request);
  pass(initiator_, seconds(5));
  expect_nothing(initiator_);
}

TEST_F(CmConnections, Cm21_NoListenerFailsAtOnce) {
  const ConnectionId id = connect();
  expect_message(initiator_, MessageType::Request);
  initiator_.sent(id, MessageType::Request, Outcome::Refused, now_);
  expect_failure(initiator_, id, Failure::Refused);
}

TEST_F(CmConnections, Cm21_NoListenerRejectFailsAtOnce) {
  const ConnectionId id = connect();
  initiator_.on_message(reject(id, RejectReason::NoListener), now_);
  expect_failure(initiator_, id, Failure::Refused);
}

TEST_F(CmConnections, Cm21_DomainWithoutListenerRejects) {
  connect();
  acceptor_.on_message(received(expect_message(initiator_, MessageType::Request)), now_);
  const Message no = received(expect_message(acceptor_, MessageType::Reject));
  EXPECT_EQ(no.reason, RejectReason::NoListener);
}

TEST_F(CmConnections, Cm22_SilentAddress_FailsWithTheTransport) {
  const ConnectionId id = connect();
  expect_message(initiator_, MessageType::Request);
  now_ += seconds(5);
  initiator_.sent(id, MessageType::Request, Outcome::Lost, now_);
  expect_failure(initiator_, id, Failure::Unreachable);
}

TEST_F(CmConnections, Cm22_EarlyLossIsRepeated) {
  const ConnectionId id = connect();
  expect_message(initiator_, MessageType::Request);
  initiator_.sent(id, MessageType::Request, Outcome::Lost, now_ + milliseconds(100));
  expect_nothing(initiator_);
  pass(initiator_, seconds(1));
  expect_message(initiator_, MessageType::Request);
}

TEST_F(CmConnections, Cm29_PortWithoutSocketFailsAtOnce) {
  const ConnectionId id = connect();
  expect_message(initiator_, MessageType::Request);
  initiator_.refused(fep(1, 4999));
  initiator_.refused(fep(3));
  expect_nothing(initiator_);
  initiator_.refused(fep(1));
  expect_failure(initiator_, id, Failure::Refused);
}

TEST_F(CmConnections, Cm29_ForgedReportEndsNothing) {
  const ConnectionId waiting = connect();
  expect_message(initiator_, MessageType::Request);
  initiator_.sent(waiting, MessageType::Request, Outcome::Delivered, now_);
  establish();
  initiator_.refused(fep(1));
  acceptor_.refused(fep(2));
  expect_nothing(initiator_);
  expect_nothing(acceptor_);
  EXPECT_EQ(initiator_.size(), 2U);
}

TEST_F(CmConnections, Cm22_BusyListenerIsAskedAgain) {
  const ConnectionId id = connect();
  expect_message(initiator_, MessageType::Request);
  initiator_.sent(id, MessageType::Request, Outcome::Delivered, now_);
  initiator_.on_message(reject(id, RejectReason::Busy), now_);
  expect_nothing(initiator_);
  pass(initiator_, seconds(1));
  expect_message(initiator_, MessageType::Request);
  now_ += seconds(4);
  initiator_.on_message(reject(id, RejectReason::Busy), now_);
  expect_failure(initiator_, id, Failure::Refused);
}

TEST_F(CmConnections, Cm14_RejectBringsTheData) {
  const ConnectionId id = connect();
  initiator_.on_message(reject(id, RejectReason::Application), now_);
  const ConnectionEvent event = expect_event(initiator_, id, Kind::Failed);
  EXPECT_EQ(event.failure, Failure::Rejected);
  EXPECT_EQ(text(event.data), "sorry");
  EXPECT_EQ(initiator_.size(), 0U);
}

TEST_F(CmConnections, Cm25_RepeatedAcceptIsConfirmedAgain) {
  establish();
  initiator_.on_message(accept_, now_);  // its Confirm got lost
  EXPECT_EQ(received(expect_message(initiator_, MessageType::Confirm)).to, far_);
  EXPECT_EQ(initiator_.next_event(), nullptr);
}

TEST_F(CmConnections, Cm25_SecondAcceptorIsSentAway) {
  establish();
  Message other = accept_;
  other.from = accept_.from + 1;
  initiator_.on_message(other, now_);
  EXPECT_EQ(received(expect_message(initiator_, MessageType::Shutdown)).to, other.from);
  EXPECT_EQ(initiator_.next_event(), nullptr);
  EXPECT_EQ(initiator_.size(), 1U);
}

TEST_F(CmConnections, Cm23_AcceptWithoutConfirmFails) {
  connect();
  const Message request = received(expect_message(initiator_, MessageType::Request));
  const ConnectionId id = acceptor_.accept(request_of(request), name(1, 6), JobId{9}, {}, now_);
  for (int i = 0; i < 29; ++i) {
    acceptor_.sent(id, MessageType::Accept, Outcome::Delivered, now_);
    pass(acceptor_, seconds(1));
  }
  EXPECT_EQ(acceptor_.next_event(), nullptr);
  pass(acceptor_, seconds(8));
  expect_failure(acceptor_, id, Failure::Aborted);
}

TEST_F(CmConnections, Cm28_AcceptorThatGivesUpEndsTheRequest) {
  const ConnectionId id = connect();
  const Message request = received(expect_message(initiator_, MessageType::Request));
  const ConnectionId far = acceptor_.accept(request_of(request), name(1, 6), JobId{9}, {}, now_);
  expect_message(acceptor_, MessageType::Accept);
  now_ += seconds(5);
  acceptor_.sent(far, MessageType::Accept, Outcome::Lost, now_);
  expect_failure(acceptor_, far, Failure::Aborted);
  initiator_.on_message(received(expect_message(acceptor_, MessageType::Shutdown)), now_);
  expect_failure(initiator_, id, Failure::Aborted);
}

TEST_F(CmConnections, Cm23_ProbeConfirmsAsWell) {
  connect();
  const Message request = received(expect_message(initiator_, MessageType::Request));
  const ConnectionId id = acceptor_.accept(request_of(request), name(1, 6), JobId{9}, {}, now_);
  Message probe = request;
  probe.type = MessageType::Probe;
  probe.to = id;
  acceptor_.on_message(probe, now_);
  EXPECT_EQ(expect_event(acceptor_, id, Kind::Connected).endpoint, name(2, 5));
}

TEST_F(CmConnections, Cm27_WithdrawnRequestIsCancelled) {
  const ConnectionId id = connect();
  const Message request = received(expect_message(initiator_, MessageType::Request));
  initiator_.shutdown(id, now_);
  const Message cancel = received(expect_message(initiator_, MessageType::Cancel));
  EXPECT_EQ(cancel.from, id);
  // The acceptor was faster.
  const ConnectionId far = acceptor_.accept(request_of(request), name(1, 6), JobId{9}, {}, now_);
  initiator_.on_message(received(expect_message(acceptor_, MessageType::Accept)), now_);
  acceptor_.on_message(received(expect_message(initiator_, MessageType::Shutdown)), now_);
  expect_failure(acceptor_, far, Failure::Aborted);
  initiator_.sent(id, MessageType::Request, Outcome::Delivered, now_);
  EXPECT_EQ(initiator_.size(), 1U);
  initiator_.sent(id, MessageType::Cancel, Outcome::Delivered, now_);
  EXPECT_EQ(initiator_.size(), 0U);
  expect_nothing(initiator_);
}

TEST_F(CmConnections, Cm30_ShutdownEndsThePeer) {
  establish();
  initiator_.shutdown(near_, now_);
  acceptor_.on_message(received(expect_message(initiator_, MessageType::Shutdown)), now_);
  initiator_.sent(near_, MessageType::Shutdown, Outcome::Delivered, now_);
  expect_event(acceptor_, far_, Kind::Shutdown);
  EXPECT_EQ(initiator_.size() + acceptor_.size(), 0U);
  EXPECT_EQ(acceptor_.next_deadline(), kNever);
  expect_nothing(initiator_);
  expect_nothing(acceptor_);
}

TEST_F(CmConnections, Cm31_SimultaneousShutdownHasNoEvent) {
  establish();
  initiator_.shutdown(near_, now_);
  acceptor_.shutdown(far_, now_);
  acceptor_.on_message(received(expect_message(initiator_, MessageType::Shutdown)), now_);
  initiator_.on_message(received(expect_message(acceptor_, MessageType::Shutdown)), now_);
  initiator_.sent(near_, MessageType::Shutdown, Outcome::Delivered, now_);
  acceptor_.sent(far_, MessageType::Shutdown, Outcome::Lost, now_);
  EXPECT_EQ(initiator_.size() + acceptor_.size(), 0U);
  expect_nothing(initiator_);
  expect_nothing(acceptor_);
}

TEST_F(CmConnections, Cm32_UnknownConnectionIsAnswered) {
  establish();
  acceptor_.drop(far_);
  Message probe;
  probe.type = MessageType::Probe;
  probe.to = far_;
  probe.from = near_;
  probe.answers = name(2, 100);
  acceptor_.on_message(probe, now_);
  initiator_.on_message(received(expect_message(acceptor_, MessageType::Shutdown)), now_);
  expect_event(initiator_, near_, Kind::Shutdown);
  EXPECT_EQ(initiator_.size(), 0U);
}

TEST_F(CmConnections, Cm32_ShutdownIsNeverAnswered) {
  Message shutdown;
  shutdown.type = MessageType::Shutdown;
  shutdown.to = 77;
  shutdown.from = 78;
  shutdown.answers = name(2, 100);
  acceptor_.on_message(shutdown, now_);
  expect_nothing(acceptor_);
}

TEST_F(CmConnections, Cm13_StrangerCannotEndAConnection) {
  establish();
  Message shutdown;
  shutdown.type = MessageType::Shutdown;
  shutdown.to = near_;
  shutdown.from = far_ + 1;
  shutdown.answers = name(3, 100);
  initiator_.on_message(shutdown, now_);
  expect_nothing(initiator_);
  EXPECT_EQ(initiator_.size(), 1U);
}

TEST_F(CmConnections, Cm33_IdlePeerIsProbed) {
  establish();
  pass(initiator_, seconds(10));
  EXPECT_EQ(expect_message(initiator_, MessageType::Probe).message.to, far_);
  initiator_.sent(near_, MessageType::Probe, Outcome::Delivered, now_);
  pass(initiator_, seconds(10));
  expect_message(initiator_, MessageType::Probe);
  initiator_.sent(near_, MessageType::Probe, Outcome::Lost, now_);
  expect_event(initiator_, near_, Kind::Shutdown);
  EXPECT_EQ(initiator_.size(), 0U);
}

TEST_F(CmConnections, Cm33_RefusedConfirm_MeansADeadPeer) {
  establish();
  initiator_.on_message(accept_, now_);
  expect_message(initiator_, MessageType::Confirm);
  initiator_.sent(near_, MessageType::Request, Outcome::Refused, now_);  // the listener has ended
  EXPECT_EQ(initiator_.next_event(), nullptr);
  initiator_.sent(near_, MessageType::Confirm, Outcome::Refused, now_);
  expect_event(initiator_, near_, Kind::Shutdown);
}

TEST_F(CmConnections, Cm37_SilentPeerWithAPeriodIsLostInTwo) {
  establish();
  pass(initiator_, seconds(10));
  expect_message(initiator_, MessageType::Probe);
  pass(initiator_, milliseconds(9'999));
  EXPECT_EQ(initiator_.next_event(), nullptr);
  pass(initiator_, milliseconds(1));
  expect_event(initiator_, near_, Kind::Shutdown);
  EXPECT_EQ(expect_message(initiator_, MessageType::Shutdown).message.to, far_);
  EXPECT_EQ(initiator_.size(), 0U);
  // The acceptor knows the period from the Request.
  pass(acceptor_, seconds(10));
  expect_message(acceptor_, MessageType::Probe);
  pass(acceptor_, seconds(10));
  expect_event(acceptor_, far_, Kind::Shutdown);
}

TEST_F(CmConnections, Cm37_PeerWithoutAPeriodMayCompute) {
  establish(false);
  pass(initiator_, seconds(10));
  expect_message(initiator_, MessageType::Probe);
  for (int i = 0; i < 10; ++i) pass(initiator_, seconds(10));
  expect_nothing(initiator_);
  initiator_.sent(near_, MessageType::Probe, Outcome::Delivered, now_);
  pass(initiator_, seconds(10));
  expect_message(initiator_, MessageType::Probe);
  EXPECT_EQ(initiator_.next_event(), nullptr);
}

TEST_F(CmConnections, Cm37_ClosedPortEndsAnUnansweredProbe) {
  establish(false);
  initiator_.refused(fep(1, 4794));  // no Probe is in flight
  pass(initiator_, seconds(10));
  expect_message(initiator_, MessageType::Probe);
  initiator_.refused(fep(1, 4794));
  EXPECT_EQ(initiator_.next_event(), nullptr);
  initiator_.sent(near_, MessageType::Probe, Outcome::Delivered, now_);  // forged, then
  pass(initiator_, seconds(10));
  expect_message(initiator_, MessageType::Probe);
  pass(initiator_, seconds(10));
  expect_nothing(initiator_);
  initiator_.refused(fep(1, 4794));
  pass(initiator_, seconds(10));
  expect_event(initiator_, near_, Kind::Shutdown);
}

TEST_F(CmConnections, Cm37_ProberThatStoodStillWaitsAgain) {
  establish();
  pass(initiator_, seconds(10));
  expect_message(initiator_, MessageType::Probe);
  pass(initiator_, seconds(100));
  EXPECT_EQ(initiator_.next_event(), nullptr);
  pass(initiator_, seconds(10));
  expect_event(initiator_, near_, Kind::Shutdown);
}

TEST_F(CmConnections, Cm37_ShortPeriodsWaitHalfASecond) {
  Timing timing;
  timing.probe_period = milliseconds(20);
  Connections end(name(2, 100), 3, timing);
  PeerRequest request;
  request.id = 7;
  request.answers = request.endpoint = name(3, 100);
  request.keep_alive_ms = 20;
  const ConnectionId id = end.accept(request, name(2, 5), JobId{}, {}, now_);
  Message confirm;
  confirm.type = MessageType::Confirm;
  confirm.to = id;
  confirm.from = 7;
  end.on_message(confirm, now_);
  end.sent(id, MessageType::Accept, Outcome::Delivered, now_);
  expect_event(end, id, Kind::Connected);
  pass(end, milliseconds(20));
  for (int i = 0; i < 49; ++i) pass(end, milliseconds(10));
  EXPECT_EQ(end.next_event(), nullptr);
  pass(end, milliseconds(10));
  expect_event(end, id, Kind::Shutdown);
}

TEST_F(CmConnections, Cm37_ThousandDeadPeersLoseNoEvent) {
  std::set<ConnectionId> ids;
  for (std::uint16_t i = 0; i < 1000; ++i) {
    const auto host = static_cast<std::uint8_t>(i % 250);
    PeerRequest request;
    request.id = i + 1U;
    request.answers = request.endpoint = name(host, static_cast<std::uint16_t>(1 + i / 250));
    request.keep_alive_ms = 10'000;
    const ConnectionId id = acceptor_.accept(request, name(1, 6), JobId{}, {}, now_);
    ids.insert(id);
    Message confirm;
    confirm.type = MessageType::Confirm;
    confirm.to = id;
    confirm.from = request.id;
    acceptor_.on_message(confirm, now_);
    acceptor_.sent(id, MessageType::Accept, Outcome::Delivered, now_);
    expect_event(acceptor_, id, Kind::Connected);
  }
  pass(acceptor_, seconds(10));
  pass(acceptor_, seconds(10));
  while (const ConnectionEvent* event = acceptor_.next_event()) {
    EXPECT_EQ(event->kind, Kind::Shutdown);
    EXPECT_EQ(ids.erase(event->id), 1U);
    acceptor_.pop_event();
  }
  EXPECT_TRUE(ids.empty());
  EXPECT_EQ(acceptor_.size(), 0U);
}

TEST_F(CmConnections, Cm12_IdsDifferAndAreNotZero) {
  const ConnectionId a = connect();
  const ConnectionId b = connect();
  EXPECT_NE(a, 0U);
  EXPECT_NE(a, b);
  EXPECT_GT(a ^ b, 0xFFFFU);  // not neighbours
}

// ---- the next request ---------------------------------------------------------------------------

TEST_F(CmConnections, Cm38_RequestWaitsForTheConfirm) {
  near_ = connect();
  const Message request = received(expect_message(initiator_, MessageType::Request));
  far_ = acceptor_.accept(request_of(request), name(1, 6, 4794), JobId{9}, {}, now_);
  initiator_.on_message(received(expect_message(acceptor_, MessageType::Accept)), now_);
  expect_event(initiator_, near_, Kind::Connected);
  expect_message(initiator_, MessageType::Confirm);
  connect();
  EXPECT_EQ(initiator_.next_message(), nullptr);
  // Another host's listener does not know this acceptor.
  initiator_.connect(name(2, 5), JobId{9}, name(3, 1), {}, now_);
  EXPECT_EQ(expect_message(initiator_, MessageType::Request).to, name(3, 1));
  initiator_.sent(near_, MessageType::Confirm, Outcome::Delivered, now_);
  EXPECT_EQ(expect_message(initiator_, MessageType::Request).to, name(1, 1));
  expect_nothing(initiator_);
  connect();  // nothing is in flight any more
  expect_message(initiator_, MessageType::Request);
}

TEST_F(CmConnections, Cm38_HeldRequestLeavesInTime) {
  near_ = connect();
  const Message request = received(expect_message(initiator_, MessageType::Request));
  far_ = acceptor_.accept(request_of(request), name(1, 6, 4794), JobId{9}, {}, now_);
  const Message accept = received(expect_message(acceptor_, MessageType::Accept));
  initiator_.on_message(accept, now_);
  expect_event(initiator_, near_, Kind::Connected);
  initiator_.on_message(accept, now_);  // two Confirms are in flight
  expect_message(initiator_, MessageType::Confirm);
  expect_message(initiator_, MessageType::Confirm);
  const ConnectionId next = connect();
  initiator_.sent(near_, MessageType::Confirm, Outcome::Delivered, now_);
  EXPECT_EQ(initiator_.next_message(), nullptr);
  pass(initiator_, seconds(1));
  expect_message(initiator_, MessageType::Request);
  initiator_.sent(next, MessageType::Request, Outcome::Lost, now_);
  connect();
  EXPECT_EQ(initiator_.next_message(), nullptr);
  initiator_.shutdown(near_, now_);  // the outcome of the Shutdown comes before that of the Confirm
  expect_message(initiator_, MessageType::Shutdown);
  initiator_.sent(near_, MessageType::Shutdown, Outcome::Delivered, now_);
  expect_message(initiator_, MessageType::Request);
}

}  // namespace
}  // namespace uet::cm
