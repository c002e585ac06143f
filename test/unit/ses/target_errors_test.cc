// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Error answers: what they say, and that later packets of a message get them, too.
#include "ses/target_errors.h"

#include "unit/ses/receiver_harness.h"

namespace uet::ses::test {
namespace {

class TargetErrorsTest : public ReceiverTest {
 protected:
  TargetErrors errors{messages, counters};
};

TEST_F(TargetErrorsTest, AnswerIsGuaranteedAndCounted) {
  const pds::Response response =
      errors.answer(request_of(7, 100), ReturnCode::BadMkey, RiGeneration{3});
  EXPECT_TRUE(response.guaranteed);
  const wire::SesResponseHeader header = header_of(response);
  EXPECT_EQ(header.return_code, ReturnCode::BadMkey);
  EXPECT_EQ(header.ri_generation, RiGeneration{3});
  EXPECT_EQ(header.message_id, MsgId{7});
  EXPECT_EQ(counters.errors_answered, 1u);
  EXPECT_EQ(messages.in_use(), 0u);
}

TEST_F(TargetErrorsTest, Ses35_RefusedMessageIsRememberedUntilItsEnd) {
  errors.refuse(view, request_of(7, 2 * kMtu), context, ReturnCode::BadMkey);
  RxMessage* refused = messages.find(kPdc, MsgId{7});
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->state, RxState::Error);
  EXPECT_EQ(refused->return_code, ReturnCode::BadMkey);
  messages.release(*refused);
  errors.refuse(view, request_of(8, 100), context, ReturnCode::BadMkey);
  EXPECT_EQ(messages.in_use(), 0u) << "one packet has no later ones";
}

// After an answer that is not remembered the next packet would open a state that waits for this
// one.
TEST_F(TargetErrorsTest, Ses35_RefusalThatCannotBeRememberedIsANack) {
  std::uint16_t id = 1;
  for (; messages.refuse(view, request_of(id, 2 * kMtu), context, ReturnCode::BadMkey); ++id) {
  }
  const std::size_t full = messages.in_use();
  const pds::Response response =
      errors.refuse(view, request_of(id, 2 * kMtu), context, ReturnCode::BadMkey);
  EXPECT_EQ(response.nack, pds::NackCode::NoSesMsgAvail);
  EXPECT_EQ(counters.errors_answered, 0u);
  EXPECT_EQ(code_of(errors.refuse(view, request_of(id, 100), context, ReturnCode::BadMkey)),
            ReturnCode::BadMkey)
      << "one packet needs no state";
  EXPECT_EQ(messages.in_use(), full);
  messages.for_each([&](RxMessage& message) { messages.release(message); });
}

TEST_F(TargetErrorsTest, Ses115_MalformedPacketIsUncor) {
  EXPECT_EQ(code_of(errors.malformed()), ReturnCode::Uncor);
  EXPECT_EQ(counters.malformed, 1u);
  EXPECT_EQ(counters.errors_answered, 1u);
}

}  // namespace
}  // namespace uet::ses::test
