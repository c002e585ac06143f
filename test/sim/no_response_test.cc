// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A peer of another implementation and we: the target answers NO_RESPONSE first, holds its CACK
// below that packet, and gives the real response when its application has the message (SES-46,
// SES-48).
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "ses/initiator.h"
#include "sim/foreign_peer.h"

namespace uet::sim {
namespace {

using std::chrono::milliseconds;
using wire::AckRequestCode;
using wire::CpType;
using wire::NextHdr;
using wire::ResponseOpcode;
using wire::ReturnCode;

class NoResponse : public ::testing::Test {
 protected:
  static constexpr PdcId kTheirs{0x0D01};  // the peer's id of our PDC

  // The only packet of a send that asks for this level.
  wire::RequestHeader send(bool delivery_complete) {
    const ses::IoSlice slice{data.data(), data.size()};
    const ses::Peer to = peer.as_peer();
    ses::SendOp op;
    op.peer = &to;
    op.local = {&slice, 1};
    op.delivery_complete = delivery_complete;
    EXPECT_TRUE(peer.fep().ses().initiator().post(peer.context(), op, peer.now()).ok());
    return pushed(wire::SesOpcode::Send);
  }
  wire::RequestHeader read() {
    const ses::IoSlice slice{data.data(), data.size()};
    const ses::Peer to = peer.as_peer();
    ses::RmaOp op;
    op.peer = &to;
    op.local = {&slice, 1};
    op.kind = ses::Kind::Read;
    op.key = Rkey{0x1234};
    EXPECT_TRUE(peer.fep().ses().initiator().post(peer.context(), op, peer.now()).ok());
    return pushed(wire::SesOpcode::Read);
  }
  // Accepted; what it means follows. CACK is held below it.
  void say_no_response(const wire::RequestHeader& request) {
    cack_ = std::min(cack_.value_or(request.psn - 1), request.psn - 1);
    say(request, AckRequestCode::None, ResponseOpcode::NoResponse, ReturnCode::Null);
  }
  // The response that counts; it is kept until it is cleared.
  void say_final(const wire::RequestHeader& request, ReturnCode code = ReturnCode::Ok) {
    say(request, AckRequestCode::Clear, ResponseOpcode::Response, code);
  }
  // We tell the peer that the response to this request is no longer needed, and nothing else.
  void expect_clear(const wire::RequestHeader& request) {
    peer.wait(milliseconds(5));
    const auto clear = peer.hear().control();
    ASSERT_TRUE(clear.has_value());
    EXPECT_EQ(clear->ctl_type, CpType::Clear);
    EXPECT_EQ(clear->payload, request.psn.value);
    EXPECT_TRUE(peer.silent());
    cack_.reset();
  }

  ForeignPeer peer;
  std::vector<std::byte> data = std::vector<std::byte>(100, std::byte{0x5A});

 private:
  wire::RequestHeader pushed(wire::SesOpcode opcode) {
    peer.push();
    const Answer sent = peer.hear();
    EXPECT_EQ(sent.ses_request().value().opcode, opcode);
    message_id_ = sent.ses_request()->message_id;
    return sent.request().value();
  }
  void say(const wire::RequestHeader& request, AckRequestCode req, ResponseOpcode opcode,
           ReturnCode code) {
    wire::AckHeader ack = peer.ack_of(request.psn, request.spdcid);
    ack.spdcid = kTheirs;
    ack.cack_psn = *cack_;
    ack.ack_psn_offset = static_cast<std::int16_t>(request.psn - *cack_);
    ack.sack_psn_offset = ack.ack_psn_offset;
    ack.req = req;
    ack.next_hdr = NextHdr::Response;
    wire::SesResponseHeader response;
    response.opcode = opcode;
    response.return_code = code;
    response.job_id = ForeignPeer::kJob;
    response.message_id = message_id_;
    if (opcode == ResponseOpcode::Response && code == ReturnCode::Ok) {
      response.list = wire::List::Overflow;
      response.modified_length = static_cast<std::uint32_t>(data.size());
    }
    peer.say(ack, &response);
  }

  MsgId message_id_{};
  std::optional<Psn> cack_;  // nothing: no response is owed
};

// SES-49: the peer has it, which is all that was asked for. PDS-108 step 6: the response that comes
// later is not told once more, but cleared (PDS-22, PDS-115).
TEST_F(NoResponse, Ses49_EndsASendThatAskedForNoMore) {
  const auto request = send(false);
  say_no_response(request);
  ASSERT_EQ(peer.sink.completions.size(), 1U);
  EXPECT_EQ(peer.sink.completions[0].status, ses::Status::Ok);
  say_no_response(request);
  say_final(request);
  EXPECT_EQ(peer.sink.completions.size(), 1U);
  expect_clear(request);
}

// SES-47, SES-48: once, and only by the response that follows, which is cleared.
TEST_F(NoResponse, Ses47_Ses48_DeliveryComplete_WaitsForAnswer) {
  for (const ReturnCode code : {ReturnCode::Ok, ReturnCode::Dropped}) {
    peer.sink.completions.clear();
    const auto request = send(true);
    say_no_response(request);
    EXPECT_TRUE(peer.sink.completions.empty());
    EXPECT_TRUE(peer.silent()) << "nothing to clear yet";
    say_final(request, code);
    ASSERT_EQ(peer.sink.completions.size(), 1U);
    const ses::Completion& completion = peer.sink.completions[0];
    EXPECT_EQ(completion.status,
              code == ReturnCode::Ok ? ses::Status::Ok : ses::Status::ReturnCode);
    EXPECT_EQ(completion.return_code, code == ReturnCode::Ok ? ReturnCode::Null : code);
    expect_clear(request);
    say_no_response(request);
    say_final(request, code);  // the CLEAR was lost
    EXPECT_EQ(peer.sink.completions.size(), 1U);
    expect_clear(request);
  }
}

// Requests sent meanwhile must not clear responses that the target still owes (SES-46).
TEST_F(NoResponse, Ses46_LaterRequestsClearNothingThatIsOwed) {
  const auto owed = send(true);
  say_no_response(owed);
  const auto later = send(false);
  EXPECT_EQ(later.psn, owed.psn + 1);
  EXPECT_EQ(later.clear_psn(), owed.psn - 1);
  say_no_response(later);
  EXPECT_EQ(peer.sink.completions.size(), 1U);
  say_final(owed);
  EXPECT_EQ(peer.sink.completions.size(), 2U);
}

// SES-85: nor are data there. The refusal that follows ends the read.
TEST_F(NoResponse, Ses47_ReadWaitsForWhatFollows) {
  const auto request = read();
  say_no_response(request);
  EXPECT_TRUE(peer.sink.completions.empty());
  say_final(request, ReturnCode::BadMkey);
  ASSERT_EQ(peer.sink.completions.size(), 1U);
  EXPECT_EQ(peer.sink.completions[0].return_code, ReturnCode::BadMkey);
  expect_clear(request);
}

// The other way round: a plain send that asks for delivery, which we cannot read.
// SES-46, SES-48, SES-110: answered when a receive has it; PDS-86: what comes behind it is taken,
// and CACK stays below.
TEST(NoResponseOfOurs, Ses46_Ses110_UnexpectedSend_AnsweredOnDelivery) {
  ForeignPeer peer;
  const std::vector<std::byte> data(100, std::byte{0x5A});
  const auto say = [&](std::uint32_t index, bool dc) {
    auto send = peer.to_context(wire::SesOpcode::Send, static_cast<std::uint16_t>(index + 1));
    send.som = send.eom = true;
    send.dc = dc;
    send.request_length = static_cast<std::uint32_t>(data.size());
    auto header = peer.request(index);
    header.clear_psn_offset = -1;
    header.ar = true;
    peer.say(header, send, data);
    return peer.hear();
  };
  const Answer first = say(0, true);
  EXPECT_EQ(first.ses_response().value().opcode, ResponseOpcode::NoResponse);
  EXPECT_EQ(first.ack().value().req, AckRequestCode::None);
  EXPECT_EQ(first.ack()->cack_psn, ForeignPeer::kStart - 1);
  peer.tpdcid = first.ack()->spdcid;
  const Answer second = say(1, false);
  EXPECT_EQ(second.ses_response().value().list, wire::List::Overflow);
  EXPECT_EQ(second.ack().value().cack_psn, ForeignPeer::kStart - 1);
  peer.wait(milliseconds(100));
  EXPECT_TRUE(peer.silent());

  std::vector<std::byte> room(100);
  const ses::IoSlice slice{room.data(), room.size()};
  ses::ReceiveOp receive;
  receive.local = {&slice, 1};
  ASSERT_TRUE(peer.fep().ses().receive(peer.context(), receive, peer.now()).ok());
  EXPECT_EQ(room, data);
  peer.wait(milliseconds(5));
  const Answer final = peer.hear();
  EXPECT_EQ(final.ack().value().ack_psn(), ForeignPeer::kStart);
  EXPECT_EQ(final.ack()->req, AckRequestCode::Clear);
  EXPECT_EQ(final.ses_response().value().opcode, ResponseOpcode::Response);
  EXPECT_EQ(final.ses_response()->return_code, ReturnCode::Ok);
  wire::ControlHeader clear;
  clear.ctl_type = CpType::Clear;
  clear.spdcid = ForeignPeer::kPdc;
  clear.dpdcid = peer.tpdcid;
  clear.payload = (ForeignPeer::kStart + 1).value;
  peer.say(clear);
  EXPECT_EQ(say(2, false).ack().value().cack_psn, ForeignPeer::kStart + 1);
}

}  // namespace
}  // namespace uet::sim
