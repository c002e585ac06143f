// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of PDS section 12.4: what each code does to the source that gets it, and when this
// destination sends it.
#include <set>

#include "pds/nack.h"

#include <algorithm>
#include <functional>
#include <string>

#include "unit/pds/pds_harness.h"

namespace uet::pds {
namespace {

struct Row {
  std::uint8_t code;
  NackAction action;
};

// PDS section 12.4, by number.
constexpr Row kRows[] = {
    {0x01, NackAction::RetransmitNow},   {0x02, NackAction::RetransmitNow},
    {0x03, NackAction::RetransmitNow},   {0x04, NackAction::RetransmitLater},
    {0x05, NackAction::RetransmitLater}, {0x06, NackAction::RetransmitLater},
    {0x07, NackAction::RetransmitLater}, {0x08, NackAction::RetransmitLater},
    {0x09, NackAction::RetransmitLater}, {0x0A, NackAction::RetransmitLater},
    {0x0B, NackAction::RetransmitLater}, {0x0D, NackAction::GoBack},
    {0x0E, NackAction::FailUnconsumed},  {0x0F, NackAction::FailUnconsumed},
    {0x10, NackAction::FailUnconsumed},  {0x11, NackAction::Fail},
    {0x12, NackAction::RetransmitNow},   {0x13, NackAction::Fail},
    {0x14, NackAction::RetransmitNow},   {0x15, NackAction::FailUnconsumed},
    {0x16, NackAction::FailUnconsumed},  {0x17, NackAction::Rebase},
    {0x18, NackAction::RestartRto},      {0x19, NackAction::FailUnconsumed},
    {0x1A, NackAction::RetransmitNow},   {0xFD, NackAction::RetransmitLater},
    {0xFE, NackAction::RetransmitLater}, {0xFF, NackAction::Fail},
};

// PDS-122: trims and loss reports are answered at once, shortages later. PDS-133: RCVR_INFER_LOSS
// is a report of loss like another. PDS-142: only some fatal codes leave the packet to a new PDC.
TEST(NackAction, Pds122_Pds133_Pds142_EveryCodeOfTheTable) {
  for (const Row& row : kRows) {
    EXPECT_EQ(nack_action(static_cast<NackCode>(row.code)), row.action) << int{row.code};
  }
}

TEST(NackAction, ReservedCodesAreIgnored) {
  for (int code = 0; code < 256; ++code) {
    bool listed = false;
    for (const Row& row : kRows) listed = listed || row.code == code;
    if (listed) continue;
    EXPECT_EQ(nack_action(static_cast<NackCode>(code)), NackAction::Ignore) << code;
  }
}

// PDS-142: which of the fatal codes leave the operation possibly done at the peer.
TEST(NackError, PeerClosedOrLostResponse_ClosedInError) {
  EXPECT_EQ(nack_error(NackCode::Closing), PdsError::ClosedInError);
  EXPECT_EQ(nack_error(NackCode::ClosingInErr), PdsError::ClosedInError);
  EXPECT_EQ(nack_error(NackCode::GtdRespUnavail), PdsError::ClosedInError);
}

TEST(NackError, ProtocolErrorForOtherFatalCodes) {
  for (const NackCode code :
       {NackCode::InvDpdcid, NackCode::PdcHdrMismatch, NackCode::InvalidSyn,
        NackCode::PdcModeMismatch, NackCode::UnexpEvent, NackCode::ExpFatal}) {
    EXPECT_EQ(nack_error(code), PdsError::ProtocolError) << static_cast<int>(code);
  }
}

TEST(NackError, NackExhaustedForShortage) {
  EXPECT_EQ(nack_error(NackCode::NoResource), PdsError::NackExhausted);
  EXPECT_EQ(nack_error(NackCode::NoPdcAvail), PdsError::NackExhausted);
}

}  // namespace

namespace testing {
namespace {

using wire::CpType;

// ---- the source -----------------------------------------------------------------------------

// 70001 to 70003 are outstanding, and a NACK names the second of them.
class NackSource : public Bench {
 protected:
  std::vector<std::uint32_t> psns_of(const std::vector<Sent>& sent) const {
    for (const auto& header : requests(sent)) EXPECT_TRUE(header.retx && header.ar);  // PDS-124
    return psns(requests(sent));
  }
  void outstanding(DeliveryMode mode) {
    build(test_parameters());
    open(mode);
    message_ = &send(3, mode);
    turn();
  }
  // Whatever a code did to it, a PDC that survives delivers.
  void expect_survives() {
    ASSERT_NE(node->manager->find(pdc), nullptr);
    EXPECT_EQ(node->manager->find(pdc)->state(), PdcState::Established);
    receive(ack(70003, 70003));
    turn();
    EXPECT_TRUE(Node::answered_once(*message_));
    EXPECT_TRUE(message_->errors.empty());
    EXPECT_EQ(node->packets.in_use(), 0U);
  }
  void expect_action(NackCode code);

  TestMessage* message_ = nullptr;
};

void NackSource::expect_action(NackCode code) {
  const NackAction action = nack_action(code);
  outstanding(action == NackAction::GoBack ? DeliveryMode::Rod : DeliveryMode::Rud);
  using Psns = std::vector<std::uint32_t>;
  const Duration tick = microseconds(64);
  const Duration pause = test_parameters().nack_retransmission_time + tick;
  const Duration rto = test_parameters().rto_init;
  now += milliseconds(5);
  receive(nack(code, 70002));
  const std::vector<Sent> at_once = turn();
  switch (action) {
    case NackAction::RetransmitNow:
      EXPECT_EQ(psns_of(at_once), Psns{70002});
      break;
    case NackAction::RetransmitLater:
      EXPECT_EQ(psns_of(at_once), Psns{});
      EXPECT_EQ(psns_of(after(pause - 2 * tick)), Psns{});
      EXPECT_EQ(psns_of(after(2 * tick)), Psns{70002});
      break;
    case NackAction::GoBack:
      EXPECT_EQ(psns_of(at_once), (Psns{70001, 70002, 70003}));
      break;
    case NackAction::RestartRto:
      EXPECT_EQ(psns_of(at_once), Psns{});
      EXPECT_EQ(psns_of(after(rto - tick)), (Psns{70001, 70003}));
      EXPECT_EQ(psns_of(after(2 * tick)), Psns{70002});
      break;
    case NackAction::Ignore:
    case NackAction::Rebase:  // in CREATING only (PDS-76)
      EXPECT_EQ(psns_of(at_once), Psns{});
      EXPECT_EQ(psns_of(after(pause)), Psns{});
      EXPECT_EQ(counters().nacks_ignored, 1U);
      break;
    case NackAction::Fail:
    case NackAction::FailUnconsumed: {
      std::vector<PdsError> errors(3, nack_error(code));
      if (action == NackAction::FailUnconsumed) errors[1] = PdsError::NotConsumed;  // PDS-142
      if (code == NackCode::Closing || code == NackCode::InvDpdcid) errors[2] = errors[1];
      EXPECT_EQ(message_->errors, errors);
      EXPECT_TRUE(Node::answered_once(*message_));
      EXPECT_EQ(node->manager->open_pdcs(), 0U);
      return;
    }
  }
  expect_survives();
}

// PDS-119, PDS-122, PDS-133, PDS-134, PDS-143: all 256 codes, acted on by their class.
TEST_F(NackSource, Pds119_EachCodeIsActedOnByItsClass) {
  for (int code = 0; code < 256; ++code) {
    SCOPED_TRACE(code);
    expect_action(static_cast<NackCode>(code));
  }
}

// The peer takes 128 PSNs, we began with more: what its window refuses comes again, without SYN
// once it can (PDS-54), and the message goes on.
TEST_F(NackSource, Pds46_InvalidSynBeyondSmallestWindow_NoEnd) {
  Parameters parameters = test_parameters();
  parameters.default_mpr = 2;
  for (const bool known : {false, true}) {
    build(parameters);
    message_ = &send(200);
    EXPECT_EQ(requests(turn()).size(), 200U);
    pdc = message_->pdc;
    if (known) receive(ack(70000, 70000));
    now += milliseconds(5);
    receive(nack(NackCode::InvalidSyn, 70150));
    ASSERT_NE(node->manager->find(pdc), nullptr);
    EXPECT_TRUE(message_->errors.empty());
    const auto again =
        psns(requests(after(parameters.nack_retransmission_time + microseconds(64))));
    // PDS-220: where no ACK has told the window, what is beyond the half waits for CACK.
    EXPECT_EQ(again, known ? std::vector<std::uint32_t>{70150} : std::vector<std::uint32_t>{});
    receive(nack(NackCode::InvalidSyn, 70010));  // that one was inside: another incarnation's PDC
    EXPECT_EQ(message_->errors.size(), known ? 199U : 200U);
  }
}

// The pseudo-payload is used for NEW_START_PSN only.
TEST_F(NackSource, Pds146_APayloadOfTrimmedOrRodOooIsNotBelieved) {
  for (const NackCode code : {NackCode::Trimmed, NackCode::RodOoo}) {
    outstanding(DeliveryMode::Rod);
    wire::NackHeader header = nack(code, 70002);
    header.payload = 70003;
    const auto first = psns_of(answer_to(header)).at(0);
    EXPECT_EQ(first, code == NackCode::Trimmed ? 70002U : 70001U);
    expect_survives();
  }
}

// The target holds responses whose CLEAR may have been lost: it is said again, at once.
TEST_F(NackSource, Pds113_Pds115_NoGtdDelAvailIsAnsweredWithTheClearPsn) {
  outstanding(DeliveryMode::Rud);
  receive(ack(70001, 70001));
  const auto sent = controls(answer_to(nack(NackCode::NoGtdDelAvail, 70003)));
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].ctl_type, CpType::Clear);
  EXPECT_EQ(sent[0].payload, 70001U);
}

// Time brings no second one; another ACK that asks does.
// A window of one packet would else go to the refused one each time, and the peer may lack what it
// holds for a message whose rest is the other one.
TEST_F(NackSource, Pds122_RefusedPacketsComeBehindLostOnes) {
  outstanding(DeliveryMode::Rud);
  receive(nack(NackCode::NoResource, 70001));
  turn();
  now += test_parameters().nack_retransmission_time + TimerWheel::kTick;
  receive(nack(NackCode::PktNotRcvd, 70002));
  const auto sent = requests(turn());
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0].psn, Psn{70002});
  EXPECT_EQ(sent[1].psn, Psn{70001});
}

// The packet that would end the peer's shortage may not have been made yet.
TEST_F(NackSource, Pds122_RefusedPacketsTakeTurnsWithNewOnes) {
  cms::Parameters narrow = open_window();
  narrow.fixed_window_bytes = narrow.mtu_bytes = 4096;
  build(test_parameters(), narrow);
  open();
  send(1);
  std::vector<Sent> sent = turn();
  send(3);
  std::set<std::uint32_t> seen;
  for (int round = 0; round < 12; ++round) {
    now += test_parameters().nack_retransmission_time + TimerWheel::kTick;
    // At the same time the window opens, and what was refused before may go again.
    for (const wire::RequestHeader& request : requests(sent)) {
      seen.insert(request.psn.value);
      receive(nack(NackCode::NoResource, request.psn.value));
    }
    sent = turn();
  }
  EXPECT_EQ(seen.size(), 4U) << "each of them has been sent";
}

TEST_F(NackSource, Pds118_LostClear_RepeatedOnlyForAskingAck) {
  open();
  send(1);
  turn();
  wire::AckHeader asks = ack(70000, 70001);
  asks.req = wire::AckRequestCode::Clear;
  receive(asks);
  EXPECT_EQ(controls(after_clear_time()).size(), 1U);
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(after(milliseconds(100)).empty());
  receive(asks);
  const auto again = controls(after_clear_time());
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].ctl_type, CpType::Clear);
  EXPECT_EQ(again[0].payload, 70001U);
}

TEST_F(NackSource, Pds117_LeavingRequest_AnswersClearRequest) {
  open();
  receive(control(CpType::ClearRequest, 0));
  send(1);
  const auto sent = turn();
  EXPECT_TRUE(controls(sent).empty());
  ASSERT_EQ(requests(sent).size(), 1U);
  EXPECT_EQ(requests(sent)[0].clear_psn(), Psn{70000});
}

// PDS-74: the reference names no PDC; another target may name one, which has not taken anything
// and wants its SYN, so that it is not learnt from this NACK (PDS-55).
// It may name any packet that is outstanding.
TEST_F(NackSource, Pds74_Pds76_Pds77_NewStartPsnMovesEverything) {
  for (const std::uint32_t start : {500U, 70001U, 69990U, 70000U + 1024 * 7, 4294967294U}) {
    for (const auto& [spdcid, named] :
         {std::pair{PdcId{0}, 70003U}, std::pair{kPeerPdc, 70003U}, std::pair{PdcId{0}, 70004U}}) {
      SCOPED_TRACE(start);
      build(test_parameters());
      TestMessage& message = send(5);
      turn();
      pdc = message.pdc;
      wire::NackHeader header = nack(NackCode::NewStartPsn, named);
      header.spdcid = spdcid;
      header.payload = start;
      const auto sent = requests(answer_to(header));
      ASSERT_EQ(sent.size(), 5U);
      for (std::uint16_t i = 0; i < 5; ++i) {
        EXPECT_EQ(sent[i].psn, Psn{start} + i);
        EXPECT_TRUE(sent[i].syn);
        EXPECT_EQ(sent[i].psn_offset, i);
        EXPECT_EQ(sent[i].clear_psn(), Psn{start} - 1);
      }
      EXPECT_TRUE(answer_to(header).empty());  // the start in use already
      const std::uint32_t last = start + 4;
      receive(ack(last, last));
      EXPECT_TRUE(Node::answered_once(message));
      EXPECT_EQ(node->packets.in_use(), 0U);
      send(1);
      EXPECT_EQ(psns(requests(turn())), std::vector<std::uint32_t>{last + 1});
      // The return direction begins there too (PDS-32).
      peer_start = start;
      receive(request(start));
      EXPECT_EQ(node->client.delivered.size(), 1U);
    }
  }
}

TEST_F(NackSource, Pds77_Restart_ClearsRetriesUpdatesQueue) {
  TestMessage& message = send(2);
  turn();
  pdc = message.pdc;
  now += seconds(3);  // several time-outs
  for (int i = 0; i < 8; ++i) after(milliseconds(300));
  wire::NackHeader header = nack(NackCode::NewStartPsn, 70000);
  header.spdcid = PdcId{0};
  header.payload = 500;
  const auto moved = psns(requests(answer_to(header)));
  EXPECT_EQ(moved, (std::vector<std::uint32_t>{500, 501}));
  EXPECT_EQ(psns(requests(after(test_parameters().rto_init))), moved);  // not its doubled value
  header.nack_psn = Psn{500};
  header.payload = 900;
  send(1);
  node->turn(now);  // made as 502 and not taken by the NIC
  receive(header);
  EXPECT_EQ(psns(requests(turn())), (std::vector<std::uint32_t>{902, 900, 901}));
}

// The copy of a NACK that demanded an earlier start, late or replayed, does not lead back there:
// the target may have accepted the later one.
TEST_F(NackSource, Pds76_Pds141_NewStartPsnOfBeforeARebaseIsNone) {
  TestMessage& message = send(2);
  turn();
  pdc = message.pdc;
  wire::NackHeader first = nack(NackCode::NewStartPsn, 70000);
  first.spdcid = PdcId{0};
  first.payload = 500;
  wire::NackHeader second = first;
  second.nack_psn = Psn{500};
  second.payload = 900;
  answer_to(first);
  EXPECT_EQ(psns(requests(answer_to(second))), (std::vector<std::uint32_t>{900, 901}));
  EXPECT_TRUE(answer_to(first).empty());
  EXPECT_TRUE(answer_to(second).empty());
  receive(ack(901, 901));
  EXPECT_TRUE(Node::answered_once(message));
}

// A target that names another one each time does not keep us for ever.
TEST_F(NackSource, Pds77_EndlessRebasesFailThePdc) {
  TestMessage& message = send(1);
  turn();
  pdc = message.pdc;
  wire::NackHeader header = nack(NackCode::NewStartPsn, 70000);
  header.spdcid = PdcId{0};
  for (header.payload = 1; header.payload < 100 && message.errors.empty(); ++header.payload) {
    answer_to(header);
    header.nack_psn = Psn{header.payload};
  }
  EXPECT_EQ(message.errors, (std::vector{PdsError::NackExhausted}));
  EXPECT_EQ(header.payload, test_parameters().max_rto_retransmissions + 2);
}

// ---- the destination ------------------------------------------------------------------------

class NackDestination : public Bench {
 protected:
  struct Situation {
    std::string what;
    NackCode code;
    bool without_pdc;  // SPDCID 0
    std::uint32_t psn;
    std::function<void()> happens;
  };
  void retransmitted(std::uint32_t psn) { receive(retransmission(psn)); }
  void trimmed(wire::RequestHeader header, bool last_hop = false) {
    std::vector<std::byte> bytes(wire::pds_header_bytes(header.type));
    header.encode(bytes.data());
    bytes.resize(24 - 8);  // PDS-148: what remains besides UDP
    node->manager->demultiplexer().on_packet({.bytes = bytes,
                                              .source = peer,
                                              .entropy = rx_entropy,
                                              .trimmed = true,
                                              .trimmed_last_hop = last_hop},
                                             now);
  }
  void rod() {
    build(test_parameters());
    accept(333, DeliveryMode::Rod);
    node->drain();
  }
  void close() { receive(control(CpType::Close, 334)); }
  void refusing(NackCode code) {
    node->client.respond = [code](const Delivered&) { return refusal(code); };
    receive(request(334));
  }
  std::vector<Situation> situations();
  void another_peer_pdc();
  std::vector<Situation> situations_without_pdc();
};

// Each begins with a PDC from the peer on which 333 is finished.
std::vector<NackDestination::Situation> NackDestination::situations() {
  return {
      {"PDS-149", NackCode::Trimmed, false, 334, [&] { trimmed(request(334)); }},
      {"PDS-149", NackCode::TrimmedLastHop, false, 334, [&] { trimmed(request(334), true); }},
      {"SES", NackCode::NoPktBuffer, false, 334, [&] { refusing(NackCode::NoPktBuffer); }},
      {"SES", NackCode::NoSesMsgAvail, false, 334, [&] { refusing(NackCode::NoSesMsgAvail); }},
      {"SES", NackCode::NoResource, false, 334, [&] { refusing(NackCode::NoResource); }},
      {"PDS-46", NackCode::PsnOorWindow, false, 333 + 1025, [&] { receive(request(333 + 1025)); }},
      {"PDS-163", NackCode::RodOoo, false, 335,
       [&] {
         rod();
         receive(request(335));
       }},
      {"PDS-26", NackCode::PdcHdrMismatch, true, 334,
       [&] {
         wire::RequestHeader header = request(334);
         header.spdcid = PdcId{901};
         receive(header);
       }},
      {"PDS-176", NackCode::Closing, false, 335,
       [&] {
         close();
         turn();
         receive(request(335));
       }},
      {"section 6.4", NackCode::ClosingInErr, false, 334,
       [&] {
         TestMessage& data = node->message(1);
         EXPECT_TRUE(node->manager->send_on(pdc, data, now).ok());
         turn();
         close();
       }},
      {"PDS-156", NackCode::PktNotRcvd, false, 340,
       [&] { receive(control(CpType::AckRequest, 340)); }},
      {"PDS-46", NackCode::InvalidSyn, false, 333 + 1025,
       [&] { receive(request(333 + 1025, true)); }},
      {"PDS-67", NackCode::InvalidSyn, false, 334,
       [&] {
         wire::RequestHeader header = request(334, true);
         header.psn_offset = 0;
         receive(header);
       }},
      {"PDS-5", NackCode::PdcModeMismatch, false, 334,
       [&] {
         wire::RequestHeader header = request(334);
         header.type = wire::PdsType::RodReq;
         receive(header);
       }},
      {"PDS-205", NackCode::RcvdSesProcg, false, 335,
       [&] {
         rod();
         receive(request(335));
         node->drain();
         retransmitted(335);
       }},
      {"PDS-157", NackCode::UnexpEvent, false, 334,
       [&] { receive(control(static_cast<CpType>(13), 334)); }},
      {"PDS-169", NackCode::UnexpEvent, false, 334,
       [&] { receive(control(CpType::CloseRequest, 334)); }},
  };
}

// The peer opens a PDC that no situation is about.
void NackDestination::another_peer_pdc() {
  wire::RequestHeader other = request(333, true);
  other.spdcid = PdcId{901};
  receive(other);
  node->drain();
}

std::vector<NackDestination::Situation> NackDestination::situations_without_pdc() {
  return {
      {"PDS-62", NackCode::Trimmed, true, 334, [&] { trimmed(request(334, true)); }},
      {"PDS-62", NackCode::TrimmedLastHop, true, 334, [&] { trimmed(request(334, true), true); }},
      {"PDS-66", NackCode::NoPdcAvail, true, 334,
       [&] {
         Parameters parameters = test_parameters();
         parameters.pdc_count = 1;
         build(parameters);
         another_peer_pdc();
         receive(request(334, true));
       }},
      {"PDS-66", NackCode::NoBitmap, true, 334,
       [&] {
         Parameters parameters = test_parameters();
         parameters.bitmap_count = 1;
         build(parameters);
         another_peer_pdc();
         receive(request(334, true));
       }},
      {"PDS-66", NackCode::NoCccAvail, true, 334,
       [&] {
         Parameters parameters = test_parameters();
         parameters.ccc_count = 1;
         build(parameters);
         peer_mode = DeliveryMode::Rod;  // each PDC has its own context
         another_peer_pdc();
         peer_start = 334;
         receive(request(334, true));
       }},
      {"PDS-61", NackCode::RodOoo, true, 334,
       [&] {
         peer_mode = DeliveryMode::Rod;
         receive(request(334, true));
       }},
      {"PDS-210", NackCode::InvDpdcid, true, 334,
       [&] {
         pdc = PdcId{77};
         receive(request(334));
       }},
      {"PDS-65", NackCode::PdcHdrMismatch, true, 334,
       [&] {
         wire::RequestHeader header = request(334, true);
         header.next_hdr = NextHdr::Response;
         receive(header);
       }},
      {"PDS-64", NackCode::PdcModeMismatch, true, 334,
       [&] {
         wire::ControlHeader header = control(CpType::Close, 334);
         header.syn = true;
         receive(header);
       }},
      {"PDS-63", NackCode::InvalidSyn, false, 334,
       [&] {
         open();  // from here to that very PDC
         receive(request(334, true));
       }},
  };
}

// PDS-210, PDS-211, PDS-212: each is answered with exactly this NACK, and not delivered.
// TRIMMED_ACK is reserved in 1.0.3. ACK_WITH_DATA and GTD_RESP_UNAVAIL are never sent: guaranteed
// responses are stored (PDS-112). NEW_START_PSN belongs to transport security.
TEST_F(NackDestination, Pds210_EachSituationHasItsCode) {
  for (const bool with_pdc : {true, false}) {
    const auto all = with_pdc ? situations() : situations_without_pdc();
    for (const Situation& situation : all) {
      SCOPED_TRACE(situation.what + " " + std::to_string(static_cast<int>(situation.code)));
      build(test_parameters());
      peer_mode = DeliveryMode::Rud;
      peer_start = 333;
      if (with_pdc) accept(333);
      node->drain();
      situation.happens();
      const auto sent = nacks(node->drain());
      ASSERT_EQ(sent.size(), 1U);
      EXPECT_EQ(sent[0].nack_code, situation.code);
      EXPECT_EQ(sent[0].nack_psn, Psn{situation.psn});
      EXPECT_EQ(sent[0].spdcid.value == 0, situation.without_pdc);
      EXPECT_EQ(sent[0].dpdcid,
                situation.code == NackCode::PdcHdrMismatch && with_pdc ? PdcId{901} : kPeerPdc);
      EXPECT_EQ(counters().nacks_sent[static_cast<std::size_t>(situation.code)], 1U);
      for (const std::uint32_t psn : delivered_psns()) EXPECT_EQ(psn, 333U);
    }
  }
}

// PDS-147, PDS-154: the mark comes with the packet, from a back end that sees it or from a test.
TEST_F(NackDestination, Pds147_Pds148_Pds154_ATrimmedPacketComesAgainWhole) {
  accept(333);
  node->drain();
  trimmed(request(334));
  EXPECT_EQ(nacks(node->drain()).at(0).nack_code, NackCode::Trimmed);
  wire::RequestHeader with_credit = request(334);  // the longest header: nothing else remains
  with_credit.type = wire::PdsType::RudCcReq;
  trimmed(with_credit);
  EXPECT_EQ(nacks(node->drain()).at(0).nack_psn, Psn{334});
  retransmitted(334);
  EXPECT_EQ(delivered_psns(), (std::vector<std::uint32_t>{333, 334}));
  trimmed(retransmission(334));  // PDS-150
  EXPECT_TRUE(nacks(node->drain()).empty());
}

// The time-out of what it answered recovers.
TEST_F(NackDestination, Pds151_ATrimmedAckIsDroppedWithoutANack) {
  open();
  TestMessage& message = send(1);
  turn();
  rx_trimmed = true;
  EXPECT_TRUE(answer_to(ack(70001, 70001)).empty());
  EXPECT_EQ(message.responses, 0U);
  EXPECT_EQ(counters().trimmed_received, 1U);
  rx_trimmed = false;
  receive(ack(70001, 70001));
  EXPECT_EQ(message.responses, 1U);
}

// Trimmable_ACK_Size is 10240 bytes: none of our ACKs carries so much, so that each has the DSCP of
// control packets (PDS-160).
TEST_F(NackDestination, Pds152_AcksAndNacksAreNotTrimmable) {
  static_assert(Response::kMaxBytes < 10240);
  node->client.respond = [](const Delivered&) {
    Response response = guaranteed_response();
    response.length = Response::kMaxBytes;
    return response;
  };
  peer_start = 333;
  receive(request(333, true));
  pdc = node->client.delivered.back().pdc;
  receive(request(333 + 1025));
  const auto sent = node->drain();
  ASSERT_EQ(sent.size(), 2U);
  for (const Sent& packet : sent) EXPECT_EQ(packet.dscp, test_parameters().dscp_control);
}

TEST_F(NackDestination, Pds160_DscpsOfDataAndControl_AreConfigured) {
  Parameters parameters = test_parameters();
  parameters.dscp_data = 12;
  parameters.dscp_control = 40;
  build(parameters);
  accept(333);
  node->drain();
  receive(retransmission(334));               // an ACK
  receive(request(333 + 2000));               // a NACK
  receive(control(CpType::ClearRequest, 0));  // a control packet
  EXPECT_TRUE(node->manager->send_on(pdc, node->message(1), now).ok());
  int data = 0;
  int others = 0;
  for (const Sent& packet : turn()) {
    ++(packet.request() ? data : others);
    EXPECT_EQ(packet.dscp, packet.request() ? 12 : 40);
  }
  EXPECT_EQ(data, 1);
  EXPECT_EQ(others, 2);  // the data's CLEAR_PSN answers the Clear Request
}

// The CLEAR of a response is late after 2 x PDS_Clear_Time, not at that time.
TEST_F(NackDestination, Pds118_AClearIsLateAfterTheTimeNotAtIt) {
  Parameters parameters = test_parameters();
  constexpr Duration kUnit{1024};  // of the times that a PDC keeps of such events
  parameters.clear_time = 1000 * kUnit;
  build(parameters);
  node->client.respond = [](const Delivered&) { return guaranteed_response(); };
  accept(333);
  for (std::uint32_t psn = 334; psn <= 333 + 512; ++psn) receive(request(psn));
  node->drain();
  const auto asked_after = [&](Duration time) {
    now += time;
    receive(request(node->client.delivered.back().psn.value + 1));
    return std::ranges::count(controls(node->drain()), CpType::ClearRequest,
                              &wire::ControlHeader::ctl_type);
  };
  EXPECT_EQ(asked_after(2000 * kUnit), 0);
  EXPECT_EQ(asked_after(kUnit), 1);
}

// More than half of the window is held by responses whose CLEAR does not come: it is asked for, not
// more often than every 2 x PDS_Clear_Time.
TEST_F(NackDestination, Pds117_Pds118_LateClearIsAskedFor) {
  const auto clear_requests = [&] {
    auto sent = controls(node->drain());
    std::erase_if(sent, [](const auto& header) { return header.ctl_type != CpType::ClearRequest; });
    return sent;
  };
  node->client.respond = [](const Delivered&) { return guaranteed_response(); };
  accept(333);
  const std::uint32_t half = 333 + 512;
  for (std::uint32_t psn = 334; psn < half; ++psn) receive(request(psn));
  now += milliseconds(3);
  EXPECT_TRUE(clear_requests().empty());
  receive(request(half));
  receive(request(half + 1));
  const auto sent = clear_requests();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].payload, half);
  EXPECT_EQ(sent[0].psn, Psn{0});
  EXPECT_FALSE(sent[0].ar);
  now += milliseconds(3);
  receive(request(half + 2));
  EXPECT_EQ(clear_requests().size(), 1U);
  now += test_parameters().keepalive_time;  // and when nothing arrives any more
  node->turn(now);
  EXPECT_EQ(clear_requests().size(), 1U);
  wire::ControlHeader clear = control(CpType::Clear, 0);
  clear.payload = half + 2;
  receive(clear);
  now += test_parameters().keepalive_time;
  node->turn(now);
  EXPECT_TRUE(clear_requests().empty());
}

TEST_F(NackDestination, Pds133_InferredLossIsReportedOncePerGap) {
  Parameters parameters = test_parameters();
  parameters.receiver_infers_loss_psns = 4;
  build(parameters);
  accept(333);
  node->drain();
  for (std::uint32_t psn = 335; psn < 338; ++psn) receive(request(psn));
  EXPECT_TRUE(nacks(node->drain()).empty());
  for (std::uint32_t psn = 338; psn < 345; ++psn) receive(request(psn));
  const auto sent = nacks(node->drain());
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].nack_code, NackCode::RcvrInferLoss);
  EXPECT_EQ(sent[0].nack_psn, Psn{334});
  EXPECT_EQ(sent[0].spdcid, pdc);
  retransmitted(334);
  receive(request(350));  // another gap
  EXPECT_EQ(nacks(node->drain()).at(0).nack_psn, Psn{345});
}

// A response that waits for its CLEAR holds CACK, and is no gap.
TEST_F(NackDestination, Pds133_AHeldResponseIsNoLoss) {
  Parameters parameters = test_parameters();
  parameters.receiver_infers_loss_psns = 4;
  build(parameters);
  node->client.respond = [](const Delivered&) { return guaranteed_response(); };
  accept(333);
  for (std::uint32_t psn = 334; psn < 345; ++psn) receive(request(psn));
  EXPECT_TRUE(nacks(node->drain()).empty());
}

}  // namespace
}  // namespace testing
}  // namespace uet::pds
