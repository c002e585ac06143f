// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// NO_RESPONSE first and the real response later (SES-46, SES-49): what the source and the
// destination do between the two. PDS does not know the opcode; the client says what a response is
// worth.
#include "cms/rtt.h"
#include "pds/retransmit.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

using wire::AckRequestCode;
using wire::CpType;

class Provisional : public Bench {
 protected:
  static constexpr std::byte kNoResponse{0x03};
  static constexpr std::byte kReal{0x01};

  Provisional() { begin(test_parameters()); }
  void begin(const Parameters& parameters) {
    build(parameters);
    node->client.provisional = [](const Answer& answer) {
      return !answer.bytes.empty() && answer.bytes[0] == kNoResponse;
    };
  }
  // 70001 .. 70000 + count are outstanding on an established PDC.
  TestMessage& outstanding(std::uint32_t count) {
    open();
    TestMessage& message = send(count);
    turn();
    node->client.answered.clear();
    return message;
  }
  // The peer's SES has said NO_RESPONSE to `psn`; its CACK is held below (SES-48).
  std::vector<Sent> no_response(std::uint32_t cack, std::uint32_t psn) {
    wire::AckHeader header = ack(cack, psn);
    header.next_hdr = NextHdr::Response;
    receive(header, std::vector<std::byte>(12, kNoResponse));
    return turn();
  }
  std::vector<Sent> real_response(std::uint32_t cack, std::uint32_t psn) {
    wire::AckHeader header = ack(cack, psn);
    header.next_hdr = NextHdr::Response;
    header.req = AckRequestCode::Clear;
    receive(header, std::vector<std::byte>(12, kReal));
    return turn();
  }
  static std::size_t ack_requests(const std::vector<Sent>& sent) {
    const auto headers = controls(sent);
    return static_cast<std::size_t>(std::count_if(
        headers.begin(), headers.end(),
        [](const wire::ControlHeader& header) { return header.ctl_type == CpType::AckRequest; }));
  }
};

// PDS-22, SES-48: the provisional one ends nothing, the real one does, once. PDS-108 step 6 does
// not drop it. PDS-95, PDS-115: it is guaranteed and is cleared.
TEST_F(Provisional, Pds22_Pds108_TheResponseThatFollowsIsDelivered) {
  TestMessage& message = outstanding(1);
  EXPECT_TRUE(no_response(70000, 70001).empty());
  EXPECT_EQ(message.responses, 0U);
  EXPECT_FALSE(node->manager->find(pdc)->idle());
  real_response(70000, 70001);
  const auto sent = controls(after_clear_time());
  EXPECT_TRUE(Node::answered_once(message));
  ASSERT_EQ(node->client.answered.size(), 2U);
  EXPECT_EQ(node->client.answered[1].bytes[0], kReal);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].ctl_type, CpType::Clear);
  EXPECT_EQ(sent[0].payload, 70001U);
  EXPECT_EQ(node->packets.in_use(), 0U);
  real_response(70000, 70001);  // repeated: the CLEAR was lost
  EXPECT_TRUE(Node::answered_once(message));
}

// PDS-89, PDS-114: CLEAR_PSN stays below a PSN whose response is to come, whatever is answered
// above it, so that the peer cannot take its slot for cleared (SES-46).
TEST_F(Provisional, Pds114_ClearStaysBelowIt) {
  TestMessage& message = outstanding(3);
  no_response(70000, 70001);
  receive(ack(70000, 70002));
  receive(ack(70000, 70003));
  EXPECT_EQ(message.responses, 2U);
  send(1);
  const auto sent = requests(turn());
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].clear_psn(), Psn{70000});
  real_response(70000, 70001);
  EXPECT_TRUE(Node::answered_once(message));
}

// PDS-87: CACK over the PSN says that nothing more is to come.
TEST_F(Provisional, Pds87_CackOverItIsFinal) {
  TestMessage& message = outstanding(2);
  no_response(70000, 70001);
  receive(ack(70002, 70002));
  EXPECT_TRUE(Node::answered_once(message));
  EXPECT_EQ(node->packets.in_use(), 0U);
}

// PDS-90: the peer is asked, and no copy is sent; each sign of life restarts the count, for as long
// as the application there takes (PDS-143 limits only the requests that its SES processes).
TEST_F(Provisional, Pds90_ThePeerIsAskedAndMayTakeAnyTime) {
  TestMessage& message = outstanding(1);
  no_response(70000, 70001);
  EXPECT_TRUE(after(test_parameters().keepalive_time).empty());
  std::size_t asked = 0;
  const Time end = now + 2 * test_parameters().ses_processing_timeout;
  while (now < end) {
    const std::vector<Sent> sent = after(milliseconds(10));
    EXPECT_TRUE(requests(sent).empty());
    if (ack_requests(sent) == 0) continue;
    ++asked;
    if (asked % 2 == 0) {
      no_response(70000, 70001);
    } else {
      receive(nack(NackCode::RcvdSesProcg, 70001));
    }
  }
  EXPECT_GE(asked, 60U);   // in 60 s
  EXPECT_LE(asked, 120U);  // one per keepalive_time
  EXPECT_TRUE(message.errors.empty());
  real_response(70000, 70001);
  EXPECT_TRUE(Node::answered_once(message));
}

// PDS-121, PDS-134.
TEST_F(Provisional, Pds121_Pds134_APeerThatDiesMeanwhileFailsThePdc) {
  TestMessage& message = outstanding(1);
  no_response(70000, 70001);
  for (int i = 0; i < 60 && message.errors.empty(); ++i) after(seconds(1));
  EXPECT_EQ(message.errors, (std::vector{PdsError::RtoExhausted}));
  EXPECT_TRUE(Node::answered_once(message));
  EXPECT_EQ(node->packets.in_use(), 0U);
}

// The time in which the peer owes no answer is no silence: a question that is lost comes again.
TEST_F(Provisional, Pds121_OneLostQuestionFailsNothing) {
  Parameters parameters = test_parameters();
  parameters.max_rto_retransmissions = 4;
  parameters.keepalive_time = 2 * time_to_failure(parameters);
  begin(parameters);
  TestMessage& message = outstanding(1);
  no_response(70000, 70001);
  std::size_t asked = 0;
  for (int i = 0; i < 60'000 && message.errors.empty(); ++i) {
    asked += ack_requests(after(milliseconds(1)));
  }
  EXPECT_EQ(message.errors, (std::vector{PdsError::RtoExhausted}));
  EXPECT_EQ(asked, 5U);
}

// PDS-156: the peer has forgotten it, which PKT_NOT_RCVD says: it is sent again.
TEST_F(Provisional, Pds156_PktNotRcvdBringsThePacketBack) {
  outstanding(1);
  no_response(70000, 70001);
  const auto sent = requests(answer_to(nack(NackCode::PktNotRcvd, 70001)));
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].psn, Psn{70001});
  EXPECT_TRUE(sent[0].retx);
}

TEST_F(Provisional, Pds134_AbortInCallback_PacketReportedOnce) {
  TestMessage& message = outstanding(2);
  node->client.on_answer = [&](const Answer&) { node->manager->abort(pdc, now); };
  no_response(70000, 70001);
  EXPECT_TRUE(Node::answered_once(message));
  EXPECT_EQ(message.errors.size(), 2U);
  EXPECT_EQ(node->packets.in_use(), 0U);
}

// ---- destination --------------------------------------------------------------------------------

class Owing : public Bench {
 protected:
  static Response response(std::byte kind, bool provisional) {
    Response response;
    response.next_hdr = NextHdr::Response;
    response.guaranteed = true;
    response.provisional = provisional;
    response.length = 12;
    response.bytes[0] = kind;
    return response;
  }
  // 333 .. 336 arrive, those of `owed` are answered with NO_RESPONSE; what that leaves behind.
  void owe(const std::vector<std::uint32_t>& owed) {
    accept(333);
    node->client.respond = [owed](const Delivered& delivered) {
      const bool owes = std::find(owed.begin(), owed.end(), delivered.psn.value) != owed.end();
      return owes ? response(kNoResponse, true) : default_response();
    };
    for (std::uint32_t psn = 334; psn <= 336; ++psn) receive(request(psn));
    turn();
  }
  // The only ACK that answers a repeated packet.
  wire::AckHeader repeated(std::uint32_t psn) {
    const auto sent = acks(answer_to(retransmission(psn)));
    EXPECT_EQ(sent.size(), 1U);
    return sent.empty() ? wire::AckHeader{} : sent[0];
  }
  std::vector<wire::AckHeader> finally(std::uint32_t psn) {
    node->manager->answer(pdc, Psn{psn}, response(kReal, false));
    return acks(turn());
  }
  // The peer clears all up to here; CACK afterwards.
  Psn cleared(std::uint32_t up_to) {
    wire::ControlHeader clear = control(CpType::Clear, 0);
    clear.payload = up_to;
    receive(clear);
    return repeated(333).cack_psn;
  }

  static constexpr std::byte kNoResponse{0x03};
  static constexpr std::byte kReal{0x01};
};

// WIRE 2.4: the answer took as long as an application did, which is no delay of the host.
TEST_F(Owing, Cms712_LateAnswerMeasuresNoServiceTime) {
  owe({335});
  now += milliseconds(3);
  const auto sent = finally(335);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].service_time, cms::kServiceTimeInvalid);
}

// SES-46: nothing clears it before the real response exists, whatever the peer believes. PDS-86.
TEST_F(Owing, Ses46_HoldsCackUntilItsAnswerIsCleared) {
  owe({334});
  EXPECT_EQ(repeated(334).cack_psn, Psn{333});
  EXPECT_EQ(repeated(334).req, AckRequestCode::None) << "there is nothing to clear yet";
  EXPECT_EQ(cleared(336), Psn{333});
  const auto sent = finally(334);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].ack_psn(), Psn{334});
  EXPECT_EQ(sent[0].req, AckRequestCode::Clear);
  EXPECT_EQ(sent[0].cack_psn, Psn{333}) << "the CLEAR that came before was none of this response";
  EXPECT_EQ(repeated(334).req, AckRequestCode::Clear);
  EXPECT_EQ(cleared(334), Psn{336});
}

// PDS-204, PDS-156: repeated as it stands, before and after.
TEST_F(Owing, Pds156_Pds204_WhatIsStoredIsRepeated) {
  owe({335});
  const auto told = [this] {
    const auto sent = answer_to(control(CpType::AckRequest, 335));
    return sent.size() == 1 ? sent[0].body()[0] : std::byte{};
  };
  EXPECT_EQ(told(), kNoResponse);
  finally(335);
  EXPECT_EQ(told(), kReal);
}

TEST_F(Owing, AnswersMayComeInAnyOrder) {
  owe({334, 335, 336});
  finally(335);
  EXPECT_EQ(cleared(335), Psn{333});
  finally(334);
  EXPECT_EQ(cleared(335), Psn{335});
  finally(336);
  EXPECT_EQ(cleared(336), Psn{336});
}

TEST_F(Owing, AnswerToWhatIsNotOwedChangesNothing) {
  owe({334});
  EXPECT_TRUE(finally(335).empty());
  EXPECT_TRUE(finally(333).empty());
  EXPECT_EQ(finally(334).size(), 1U);
  EXPECT_TRUE(finally(334).empty());
  node->manager->abort(pdc, now);
  EXPECT_TRUE(finally(334).empty());
}

class LostClear : public Bench {};

// The CLEAR was lost, and with the window closed no request can repeat it.
TEST_F(LostClear, Pds118_AWindowThatStaysClosedIsClearedAgain) {
  Parameters parameters = test_parameters();
  parameters.default_mpr = 1;
  build(parameters);
  open();
  send(128);
  turn();
  answer_with_held_responses();
  send(1);
  turn();
  const auto asked = controls(after(milliseconds(20)));
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].ctl_type, CpType::AckRequest);
  wire::AckHeader still = ack(70000, 70128);
  still.mpr = 1;
  const auto again = controls(answer_to(still));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].ctl_type, CpType::Clear);
  EXPECT_EQ(again[0].payload, 70128U);
}

}  // namespace
}  // namespace uet::pds::testing
