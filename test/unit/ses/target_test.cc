// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The checks of request packets and what is remembered of refused messages.
#include "ses/target.h"

#include "unit/ses/harness.h"

namespace uet::ses::test {
namespace {

using TargetTest = TwoNodes;

TEST_F(TargetTest, Ses9_OtherVersionIsUncor) {
  SesRequest request = b.request_for(SesOpcode::Send);
  request.version = 1;
  const pds::Response response = b.take(request);
  EXPECT_EQ(code_of(response), ReturnCode::Uncor);
  EXPECT_TRUE(response.guaranteed);  // SES-104; PDS-111: errors
}

TEST_F(TargetTest, Ses115_Step1_TooShortIsUncor) {
  const Bytes bytes = pattern(sizeof(wire::SesStandard));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(code_of(b.take(NextHdr::RequestStd,
                             Bytes(bytes.begin(), bytes.begin() + static_cast<int>(length)), 1)),
              ReturnCode::Uncor);
  }
  EXPECT_EQ(b.ses.counters().malformed, bytes.size());
}

TEST_F(TargetTest, Ses16_Ses17_AbsoluteContext_ReceivesOfItsJobOnly) {
  ContextConfig config = small_config();
  config.relative = false;
  for (const bool own_job_only : {false, true}) {
    config.own_job_only = own_job_only;
    Node node(3, small_parameters(), config);
    Bytes buffer(8);
    ASSERT_TRUE(node.receive({slice_of(buffer)}));
    SesRequest request = node.request_for(SesOpcode::Send);
    request.som = request.eom = true;
    request.request_length = 8;
    request.job_id = JobId{55};
    const ReturnCode code = code_of(node.take(request, pattern(8)));
    EXPECT_EQ(code, own_job_only ? ReturnCode::BadJobId : ReturnCode::Ok);
    EXPECT_EQ(buffer, own_job_only ? Bytes(8) : pattern(8)) << "refused before a byte is placed";
    if (!own_job_only) continue;
    request.job_id = config.job;
    EXPECT_EQ(code_of(node.take(request, pattern(8))), ReturnCode::Ok);
    EXPECT_EQ(buffer, pattern(8));
  }
}

TEST_F(TargetTest, NoOpIsAnsweredAndTouchesNothing) {
  SesRequest request = b.request_for(SesOpcode::NoOp);
  request.pid_on_fep = PidOnFep{999};
  EXPECT_EQ(code_of(b.take(request)), ReturnCode::Ok);
  EXPECT_TRUE(b.ses.idle());
}

TEST_F(TargetTest, Ses115_Steps2To4_WrongAddress) {
  SesRequest request = b.request_for(SesOpcode::TsendAtomic);
  EXPECT_EQ(code_of(b.take(request)), ReturnCode::UnsupportedOp);
  request.opcode = SesOpcode::Send;
  request.pid_on_fep = PidOnFep{999};
  EXPECT_EQ(code_of(b.take(request)), ReturnCode::BadPid);
  request = b.request_for(SesOpcode::Send);
  request.resource_index = ResourceIndex{999};
  EXPECT_EQ(code_of(b.take(request)), ReturnCode::BadIndex);
  request = b.request_for(SesOpcode::Send);
  request.job_id = JobId{999};  // SES-16
  EXPECT_EQ(code_of(b.take(request)), ReturnCode::BadJobId);
  EXPECT_EQ(b.ses.counters().errors_answered, 4u);
  EXPECT_TRUE(b.ses.idle());
}

TEST_F(TargetTest, Ses13And16_AbsoluteContextTakesAnyJob) {
  ContextConfig config = small_config();
  config.relative = false;
  Node absolute(3, small_parameters(), config);
  Bytes memory(4);
  ASSERT_TRUE(absolute.receive({slice_of(memory)}));
  SesRequest request = part(absolute.request_for(SesOpcode::Send), 0, 4, 4);
  request.job_id = JobId{999};
  EXPECT_EQ(code_of(absolute.take(request, pattern(4))), ReturnCode::Ok);
  request.rel = true;
  EXPECT_EQ(code_of(absolute.take(request, pattern(4))), ReturnCode::BadPid);
}

TEST_F(TargetTest, Ses106_BadGenerationNamesTheRightOne) {
  ContextConfig config = small_config();
  config.generation = RiGeneration{4};
  Node node(3, small_parameters(), config);
  SesRequest request = node.request_for(SesOpcode::Send);
  request.ri_generation = RiGeneration{3};
  const pds::Response response = node.take(request);
  EXPECT_EQ(code_of(response), ReturnCode::BadGeneration);
  EXPECT_EQ(header_of(response).ri_generation, RiGeneration{4});
}

TEST_F(TargetTest, Ses35And105_LaterPacketsOfRefused_SameCode) {
  SesRequest request = b.request_for(SesOpcode::Send);
  request.ie = true;  // SES-112
  const Bytes message = pattern(3 * kMtu);
  Bytes memory(message.size());
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  const pds::Response first = take_part(request, message, 0, kMtu);
  EXPECT_EQ(code_of(first), ReturnCode::InitiatorErr);
  EXPECT_TRUE(first.guaranteed);
  request.ie = false;
  const pds::Response second = take_part(request, message, kMtu, kMtu);
  EXPECT_EQ(code_of(second), ReturnCode::InitiatorErr);
  EXPECT_FALSE(second.guaranteed);
  EXPECT_FALSE(b.ses.idle());
  take_part(request, message, 2 * kMtu, kMtu);  // SES-36: ends with the message
  EXPECT_TRUE(b.ses.idle());
  EXPECT_TRUE(b.sink.all.empty());
  EXPECT_EQ(memory, Bytes(message.size()));
  EXPECT_EQ(code_of(take_part(request, message, 0, kMtu)), ReturnCode::Ok) << "the id is free";
  b.ses.client().pdc_closed(kPdc, {}, kNow);
}

TEST_F(TargetTest, Ses36_RememberedError_EndsWithMsgErrorOrPdc) {
  SesRequest request = b.request_for(SesOpcode::Send);
  request.ie = true;
  const Bytes message = pattern(9 * kMtu);
  take_part(request, message, 0, kMtu);
  take_part(request, message, kMtu, kMtu);
  SesRequest end = part(b.request_for(SesOpcode::MsgError), 2 * kMtu, 0, 9 * kMtu);
  EXPECT_EQ(code_of(b.take(end)), ReturnCode::Ok);
  EXPECT_TRUE(b.ses.idle());
  take_part(request, message, 0, kMtu);
  EXPECT_FALSE(b.ses.idle());
  b.ses.client().pdc_closed(kPdc, pds::PdsError::RtoExhausted, kNow);
  EXPECT_TRUE(b.ses.idle());
}

TEST_F(TargetTest, Ses36_RememberedError_SparesTheNextMessage) {
  SesRequest request = b.request_for(SesOpcode::Send);
  request.ie = true;
  take_part(request, pattern(9 * kMtu), 0, kMtu);  // its end never comes
  request.ie = false;
  Bytes memory(2 * kMtu);
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  const Bytes message = pattern(2 * kMtu);
  EXPECT_EQ(code_of(take_part(request, message, 0, kMtu)), ReturnCode::Ok);
  EXPECT_EQ(code_of(take_part(request, message, kMtu, kMtu)), ReturnCode::Ok);
  EXPECT_EQ(memory, message);
  EXPECT_TRUE(b.ses.idle());
}

TEST_F(TargetTest, Ses115_Step15_LaterPacketDiffers_Fails) {
  const Bytes message = pattern(3 * kMtu);
  Bytes memory(message.size());
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  SesRequest request = b.request_for(SesOpcode::Send);
  take_part(request, message, 0, kMtu);
  request.job_id = JobId{999};
  EXPECT_EQ(code_of(take_part(request, message, kMtu, kMtu)), ReturnCode::PermViolation);
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::Abandoned);
  EXPECT_TRUE(std::equal(message.begin(), message.begin() + kMtu, memory.begin()));
  EXPECT_EQ(memory[kMtu], std::byte{0});
  b.ses.client().pdc_closed(kPdc, {}, kNow);
}

// Step 7 holds for a first packet that does not come first, too.
TEST_F(TargetTest, Ses26_FirstPacketThatComesLaterIsOneMtuAsWell) {
  const Bytes message = pattern(3 * kMtu);
  Bytes memory(message.size());
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  const SesRequest request = b.request_for(SesOpcode::Send);
  EXPECT_EQ(code_of(take_part(request, message, kMtu, kMtu)), ReturnCode::Ok);
  EXPECT_EQ(code_of(take_part(request, message, 0, kMtu - 1)), ReturnCode::OpViolation);
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::Abandoned);
  EXPECT_EQ(memory[0], std::byte{0});
  b.ses.client().pdc_closed(kPdc, {}, kNow);
}

TEST_F(TargetTest, MsgErrorForNoMessageIsAnswered) {
  EXPECT_EQ(code_of(b.take(part(b.request_for(SesOpcode::MsgError), kMtu, 0, 4 * kMtu))),
            ReturnCode::Ok);
  EXPECT_TRUE(b.ses.idle());
}

}  // namespace
}  // namespace uet::ses::test
