// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/long_send_forms.h"

#include "unit/ses/operation_harness.h"

namespace uet::ses::test {
namespace {

constexpr std::uint64_t kEager = 8 * kMtu;

class LongSendFormsTest : public OperationTest {
 protected:
  LongSendFormsTest() : deferred(with_deferral(parameters), watches) {}
  static const Parameters& with_deferral(Parameters& parameters) {
    parameters.deferrable = true;
    parameters.deferrable_threshold_bytes = 1;
    return parameters;
  }
  TxMessage& rendezvous(std::uint64_t length = kEager) {
    TxMessage& message = open(length);
    message.header.opcode = SesOpcode::RendezvousSend;
    message.readable = true;
    return message;
  }
  SesOpcode chosen(TxMessage& message) {
    forms.choose(message);
    return message.header.opcode;
  }

  Watches watches;
  DeferredSends deferred;
  LongSendForms forms{kEager, deferred};
};

TEST_F(LongSendFormsTest, Ses161_OneRendezvousAtATimeGoesAsSend) {
  TxMessage& first = rendezvous();
  EXPECT_EQ(chosen(first), SesOpcode::Send);
  EXPECT_FALSE(first.readable);
  EXPECT_EQ(chosen(rendezvous()), SesOpcode::RendezvousSend);
  forms.end_trial(first);
  TxMessage& tagged = rendezvous();
  tagged.kind = Kind::TaggedSend;
  EXPECT_EQ(chosen(tagged), SesOpcode::TaggedSend);
}

TEST_F(LongSendFormsTest, Ses161_PeerWithLateReceivesGetsRendezvous) {
  TxMessage& first = rendezvous();
  forms.choose(first);
  forms.note_unexpected(first);
  forms.end_trial(first);
  EXPECT_EQ(chosen(rendezvous()), SesOpcode::RendezvousSend);
}

TEST_F(LongSendFormsTest, Ses161_LongerThanEagerOrWithDeliveryIsNoTrial) {
  EXPECT_EQ(chosen(rendezvous(kEager + 1)), SesOpcode::RendezvousSend);
  TxMessage& delivery_complete = rendezvous();
  delivery_complete.header.dc = true;
  EXPECT_EQ(chosen(delivery_complete), SesOpcode::RendezvousSend);
}

TEST_F(LongSendFormsTest, Wire312_PeerThatTakesPlainSendsOnlyGetsThem) {
  TxMessage& refused = rendezvous(kEager + 1);
  refused.plain = true;
  EXPECT_EQ(chosen(refused), SesOpcode::Send);
  EXPECT_EQ(chosen(rendezvous(kEager + 1)), SesOpcode::RendezvousSend) << "not known yet";
  forms.note_plain_answer(refused, true);
  EXPECT_EQ(chosen(rendezvous(kEager + 1)), SesOpcode::Send);
}

TEST_F(LongSendFormsTest, Wire312_PlainFormOfADeferrableSendHasNoTokens) {
  Peer peer;
  peer.ai_full = true;
  TxMessage& message = open(kMtu);
  deferred.offer(message, peer);
  ASSERT_EQ(message.header.opcode, SesOpcode::DeferrableSend);
  message.plain = true;
  EXPECT_EQ(chosen(message), SesOpcode::Send);
  EXPECT_EQ(message.header.buffer_offset, 0u);
  EXPECT_EQ(message.restart_token, 0u);
}

TEST_F(LongSendFormsTest, MessageThatItsTargetWillReadKeepsItsForm) {
  TxMessage& message = rendezvous();
  message.awaits_read = true;
  EXPECT_FALSE(LongSendForms::has_plain_form(message));
  EXPECT_EQ(chosen(message), SesOpcode::RendezvousSend);
  message.awaits_read = false;
}

}  // namespace
}  // namespace uet::ses::test
