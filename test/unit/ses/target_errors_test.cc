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

TEST_F(TargetErrorsTest, Ses115_MalformedPacketIsUncor) {
  EXPECT_EQ(code_of(errors.malformed()), ReturnCode::Uncor);
  EXPECT_EQ(counters.malformed, 1u);
  EXPECT_EQ(counters.errors_answered, 1u);
}

}  // namespace
}  // namespace uet::ses::test
