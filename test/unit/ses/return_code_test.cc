// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The checks of SES-115 one by one.
#include "ses/return_code.h"

#include "unit/ses/harness.h"

namespace uet::ses {
namespace {

using test::Bytes;
using test::header_of;
using test::kMtu;
using wire::NextHdr;
using wire::ReturnCode;
using wire::SesOpcode;
using wire::SesRequest;

class ReturnCodeTest : public ::testing::Test {
 protected:
  ReturnCodeTest() {
    request.message_id = MsgId{1};
    request.opcode = SesOpcode::Send;
  }
  void payload(std::size_t count) { request.payload = std::span(memory).first(count); }
  ReturnCode context_code() const { return check_context(context, request, kMtu); }

  Bytes memory = Bytes(4 * kMtu);
  SesRequest request;
  test::Sink sink;
  ContextConfig config;
  Context context{config, sink};
};

// WIRE 3.7: 0x10 and 0x11 among them.
TEST_F(ReturnCodeTest, Ses1_OpcodesThatAreNotServedAreUnsupported) {
  for (const SesOpcode served :
       {SesOpcode::NoOp, SesOpcode::Write, SesOpcode::Read, SesOpcode::Send,
        SesOpcode::DeferrableSend, SesOpcode::TaggedSend, SesOpcode::DeferrableTsend,
        SesOpcode::RendezvousSend, SesOpcode::RendezvousTsend, SesOpcode::Atomic,
        SesOpcode::FetchingAtomic, SesOpcode::DeferrableRtr, SesOpcode::MsgError}) {
    request.opcode = served;
    EXPECT_EQ(check_opcode(request), ReturnCode::Ok) << int(served);
  }
  for (const int other : {0x07, 0x0D, 0x0E, 0x10, 0x11, 0x3F}) {
    request.opcode = static_cast<SesOpcode>(other);
    EXPECT_EQ(check_opcode(request), ReturnCode::UnsupportedOp) << other;
  }
}

// SES-3: a small request has no match bits; nor, like a medium one, a message id.
TEST_F(ReturnCodeTest, Ses3_SmallHasNoTag) {
  request.next_hdr = NextHdr::RequestSmall;
  EXPECT_EQ(check_opcode(request), ReturnCode::Ok);
  request.opcode = SesOpcode::TaggedSend;
  EXPECT_EQ(check_opcode(request), ReturnCode::UnsupportedOp);
}

TEST_F(ReturnCodeTest, Ses7_MsgErrorNeedsAMessageId) {
  request.opcode = SesOpcode::MsgError;
  request.next_hdr = NextHdr::RequestMedium;
  EXPECT_EQ(check_opcode(request), ReturnCode::UnsupportedOp);
}

TEST_F(ReturnCodeTest, Ses27_MessageIdZeroIsNotValidInStandardOnly) {
  request.message_id = MsgId{0};
  EXPECT_EQ(check_opcode(request), ReturnCode::OpViolation);
  request.next_hdr = NextHdr::RequestMedium;
  EXPECT_EQ(check_opcode(request), ReturnCode::Ok);
}

TEST_F(ReturnCodeTest, Ses115_Step3And4_AddressVerdicts) {
  EXPECT_EQ(check_address(ri::RiVerdict::Ok), ReturnCode::Ok);
  EXPECT_EQ(check_address(ri::RiVerdict::BadPid), ReturnCode::BadPid);
  EXPECT_EQ(check_address(ri::RiVerdict::BadIndex), ReturnCode::BadIndex);
  EXPECT_EQ(check_address(ri::RiVerdict::BadJob), ReturnCode::BadJobId);
}

TEST_F(ReturnCodeTest, Ses115_Steps6To10_FirstFailureWins) {
  request.ie = true;
  request.ri_generation = RiGeneration{3};
  request.request_length = 7;
  payload(6);
  context.generation.enabled = false;
  EXPECT_EQ(context_code(), ReturnCode::Disabled);
  context.enabled = true;
  EXPECT_EQ(context_code(), ReturnCode::OpViolation);
  payload(7);
  EXPECT_EQ(context_code(), ReturnCode::DisabledGen);
  context.generation.enabled = true;
  EXPECT_EQ(context_code(), ReturnCode::BadGeneration);
  context.generation.value = RiGeneration{3};
  EXPECT_EQ(context_code(), ReturnCode::InitiatorErr);
  request.ie = false;
  EXPECT_EQ(context_code(), ReturnCode::Ok);
}

TEST_F(ReturnCodeTest, Ses116_Read_PieceAndIeBeforeGeneration) {
  request.opcode = SesOpcode::Read;
  request.som = false;
  request.request_length = 100;
  request.message_offset = 60;
  request.payload_length = 41;
  request.ie = true;
  request.ri_generation = RiGeneration{3};
  context.generation.enabled = false;
  EXPECT_EQ(context_code(), ReturnCode::Disabled);
  context.enabled = true;
  EXPECT_EQ(context_code(), ReturnCode::OpViolation);
  request.payload_length = 40;
  EXPECT_EQ(context_code(), ReturnCode::InitiatorErr);
  request.ie = false;
  EXPECT_EQ(context_code(), ReturnCode::DisabledGen);
  context.generation.enabled = true;
  EXPECT_EQ(context_code(), ReturnCode::BadGeneration);
  request.ri_generation = {};
  EXPECT_EQ(context_code(), ReturnCode::Ok);
}

// SES-25: both ends agree on the MTU.
TEST_F(ReturnCodeTest, Ses26_FirstPayloadIsTheMessageOrOneMtu) {
  request.request_length = 3 * kMtu;
  request.eom = false;
  payload(kMtu);
  EXPECT_EQ(check_first_packet(request, kMtu), ReturnCode::Ok);
  payload(kMtu - 1);
  EXPECT_EQ(check_first_packet(request, kMtu), ReturnCode::OpViolation);
  payload(2 * kMtu);
  EXPECT_EQ(check_first_packet(request, kMtu), ReturnCode::OpViolation);
  payload(kMtu);
  request.eom = true;  // claims to be all of it
  EXPECT_EQ(check_first_packet(request, kMtu), ReturnCode::OpViolation);
  request.som = false;  // no rule for later ones
  payload(5);
  EXPECT_EQ(check_first_packet(request, kMtu), ReturnCode::Ok);
}

TEST_F(ReturnCodeTest, Ses119_KeyOfAnotherJobLooksLikeNoKey) {
  EXPECT_EQ(check_access(ri::MrVerdict::BadJob), ReturnCode::BadMkey);
  EXPECT_EQ(check_access(ri::MrVerdict::BadKey), ReturnCode::BadMkey);
  EXPECT_EQ(check_access(ri::MrVerdict::NoRight), ReturnCode::OpViolation);
  EXPECT_EQ(check_access(ri::MrVerdict::OutOfBounds), ReturnCode::BadAddr);
}

TEST_F(ReturnCodeTest, Ses115_Step13_PayloadLiesInsideTheMessage) {
  request.som = false;
  request.request_length = 2 * kMtu;
  request.message_offset = 2 * kMtu - 10;
  payload(10);
  EXPECT_EQ(check_extent(request, kMtu), ReturnCode::Ok);
  payload(11);
  EXPECT_EQ(check_extent(request, kMtu), ReturnCode::OpViolation);
  request.message_offset = UINT32_MAX;  // offset + length wraps 32 bits (SES-118)
  payload(10);
  EXPECT_EQ(check_extent(request, kMtu), ReturnCode::OpViolation);
}

TEST_F(ReturnCodeTest, Ses21_PayloadIsAtMostOneMtu) {
  request.request_length = 2 * kMtu;
  payload(kMtu + 1);
  EXPECT_EQ(check_extent(request, kMtu), ReturnCode::OpViolation);
}

TEST_F(ReturnCodeTest, Ses22_LaterPacket_CarriesDataBehindFirst) {
  request.som = false;
  request.request_length = 2 * kMtu;
  request.message_offset = kMtu;
  payload(0);
  EXPECT_EQ(check_extent(request, kMtu), ReturnCode::OpViolation);
  request.message_offset = 0;
  payload(1);
  EXPECT_EQ(check_extent(request, kMtu), ReturnCode::OpViolation);
}

TEST_F(ReturnCodeTest, Ses80_DataNeedACqThatReportsThem) {
  request.hd = true;
  EXPECT_EQ(check_data(config, request), ReturnCode::Ok);
  config.remote_cq_data = false;
  EXPECT_EQ(check_data(config, request), ReturnCode::OpViolation);
  request.hd = false;
  EXPECT_EQ(check_data(config, request), ReturnCode::Ok);
}

TEST_F(ReturnCodeTest, Ses23_LaterPacketsRepeatTheFirst) {
  RxMessage message;
  message.opcode = SesOpcode::Send;
  message.request_length = 100;
  message.expected = 100;
  request.request_length = 100;
  payload(10);
  EXPECT_EQ(check_same_message(message, request), ReturnCode::Ok);
  SesRequest other = request;
  other.opcode = SesOpcode::Write;
  EXPECT_EQ(check_same_message(message, other), ReturnCode::PermViolation);
  other = request;
  other.request_length = 101;
  EXPECT_EQ(check_same_message(message, other), ReturnCode::PermViolation);
  other = request;
  other.match_bits = 1;
  EXPECT_EQ(check_same_message(message, other), ReturnCode::PermViolation);
  other = request;
  other.job_id = JobId{1};
  EXPECT_EQ(check_same_message(message, other), ReturnCode::PermViolation);
  other = request;
  other.initiator = InitiatorId{1};
  EXPECT_EQ(check_same_message(message, other), ReturnCode::PermViolation);
  other = request;
  other.buffer_offset = 1;
  EXPECT_EQ(check_same_message(message, other), ReturnCode::PermViolation);
  message.received = 91;
  EXPECT_EQ(check_same_message(message, request), ReturnCode::OpViolation);
}

TEST_F(ReturnCodeTest, Ses89_FirstReadPacketAsksForOneMtuOrLess) {
  request.opcode = SesOpcode::Read;
  request.request_length = 100;
  EXPECT_EQ(read_piece(request, kMtu).length, 100u);
  request.eom = false;
  request.request_length = 3 * kMtu;
  EXPECT_EQ(read_piece(request, kMtu).length, kMtu);
  request.eom = true;
  EXPECT_EQ(read_piece(request, kMtu).code, ReturnCode::OpViolation);
  request.eom = false;  // SES-25: who asks in several packets where one would do has another MTU
  request.request_length = kMtu;
  EXPECT_EQ(read_piece(request, kMtu).code, ReturnCode::OpViolation);
  request.eom = true;
  EXPECT_EQ(read_piece(request, kMtu).code, ReturnCode::Ok);
}

TEST_F(ReturnCodeTest, Ses116_ReadPieceLiesInsideTheRequest) {
  request.opcode = SesOpcode::Read;
  request.som = false;
  request.request_length = 3 * kMtu;
  request.message_offset = 2 * kMtu;
  request.payload_length = kMtu;
  EXPECT_EQ(read_piece(request, kMtu).code, ReturnCode::Ok);
  EXPECT_EQ(read_piece(request, kMtu).offset, 2 * kMtu);
  request.message_offset = 2 * kMtu + 1;
  EXPECT_EQ(read_piece(request, kMtu).code, ReturnCode::OpViolation);
  request.message_offset = UINT32_MAX;
  EXPECT_EQ(read_piece(request, kMtu).code, ReturnCode::OpViolation);
  request.message_offset = kMtu;
  request.payload_length = kMtu + 1;
  EXPECT_EQ(read_piece(request, kMtu).code, ReturnCode::OpViolation);
  request.payload_length = 0;
  EXPECT_EQ(read_piece(request, kMtu).code, ReturnCode::OpViolation);
}

TEST_F(ReturnCodeTest, Ses107_NullCountsAsSuccess) {
  EXPECT_TRUE(is_success(ReturnCode::Null));
  EXPECT_TRUE(is_success(ReturnCode::Ok));
  EXPECT_FALSE(is_success(ReturnCode::NoMatch));
}

TEST_F(ReturnCodeTest, Ses106_ResponseRepeatsMessageIdAndJob) {
  request.message_id = MsgId{0x1234};
  request.job_id = JobId{101};
  request.ri_generation = RiGeneration{7};
  for (const wire::List list : {wire::List::Expected, wire::List::Overflow}) {
    const pds::Response response =
        explicit_response(request, ReturnCode::BadGeneration, list, 5, RiGeneration{8}, true);
    const wire::SesResponseHeader header = header_of(response);
    EXPECT_TRUE(response.guaranteed);
    EXPECT_EQ(header.list, list);
    EXPECT_EQ(header.opcode, wire::ResponseOpcode::Response);
    EXPECT_EQ(header.return_code, ReturnCode::BadGeneration);
    EXPECT_EQ(header.message_id, request.message_id);
    EXPECT_EQ(header.job_id, request.job_id);
    EXPECT_EQ(header.ri_generation, RiGeneration{8});
    EXPECT_EQ(header.modified_length, 5u);
  }
  const wire::SesResponseHeader header = header_of(default_response(request, 6));
  EXPECT_EQ(header.list, wire::List::Expected);
  EXPECT_EQ(header.message_id, request.message_id);
  EXPECT_EQ(header.job_id, request.job_id);
  EXPECT_EQ(header.ri_generation, RiGeneration{7});
  EXPECT_EQ(header.modified_length, 6u);
}

TEST_F(ReturnCodeTest, Ses104_OkIsADefaultResponseAndNotGuaranteed) {
  const pds::Response response = default_response(request, 16384);
  EXPECT_FALSE(response.guaranteed);
  EXPECT_EQ(header_of(response).opcode, wire::ResponseOpcode::DefaultResponse);
  EXPECT_EQ(header_of(response).return_code, ReturnCode::Ok);
  EXPECT_EQ(header_of(response).modified_length, 16384u);
}

TEST_F(ReturnCodeTest, Ses5_SmallRequestNamesAnOptimisedKey) {
  request.next_hdr = NextHdr::RequestSmall;
  request.resource_index = ResourceIndex{0x123};
  const ri::MrTable regions(1, {});
  EXPECT_EQ(memory_key(request, regions).value, (std::uint64_t{1} << 62) + 0x123);
}

}  // namespace
}  // namespace uet::ses
