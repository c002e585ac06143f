// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// WRITE and READ at the target.
#include "ses/target.h"

#include "unit/ses/harness.h"

namespace uet::ses::test {
namespace {

class TargetRmaTest : public TwoNodes {
 protected:
  TargetRmaTest() : region(8 * kMtu), key(b.expose(region)) {}
  SesRequest rma(SesOpcode opcode, std::uint32_t offset, std::uint32_t count,
                 std::uint32_t total) const {
    SesRequest request = b.request_for(opcode);
    request.match_bits = key.value;
    request.som = offset == 0;
    request.eom = offset + count == total;
    request.message_offset = offset;
    request.payload_length = count;
    request.request_length = total;
    return request;
  }
  void fill() {
    const Bytes bytes = pattern(region.size());
    std::copy(bytes.begin(), bytes.end(), region.begin());  // in place: the region is registered
  }
  bool untouched() const { return region == Bytes(region.size()); }

  Bytes region;
  Rkey key;
};

// SES-33
TEST_F(TargetRmaTest, Ses78_Write_LandsAtRegionPlusBothOffsets) {
  SesRequest second = rma(SesOpcode::Write, kMtu, 7, kMtu + 7);
  second.buffer_offset = 100;
  const pds::Response response = b.take(second, pattern(7, 2));
  EXPECT_EQ(header_of(response).opcode, wire::ResponseOpcode::DefaultResponse);
  EXPECT_FALSE(response.guaranteed);
  SesRequest first = rma(SesOpcode::Write, 0, kMtu, kMtu + 7);
  first.buffer_offset = 100;
  EXPECT_EQ(header_of(b.take(first, pattern(kMtu))).modified_length, kMtu + 7);
  Bytes expected(region.size());
  const Bytes parts[] = {pattern(kMtu), pattern(7, 2)};
  std::copy(parts[0].begin(), parts[0].end(), expected.begin() + 100);
  std::copy(parts[1].begin(), parts[1].end(), expected.begin() + 100 + kMtu);
  EXPECT_EQ(region, expected);
  EXPECT_TRUE(b.sink.all.empty()) << "no target completion (SES-79)";
  ASSERT_EQ(b.sink.accesses.size(), 1u);
  EXPECT_EQ(b.sink.accesses[0], std::make_pair(Kind::Write, std::uint64_t{kMtu + 7}));
  EXPECT_TRUE(b.ses.idle());
}

TEST_F(TargetRmaTest, RegionsOfADeviceAreCopiedByIt) {
  FakeDevice device;
  Bytes memory(16);
  key = b.expose(memory, ri::kRemoteRead | ri::kRemoteWrite, &device);
  b.take(rma(SesOpcode::Write, 0, 16, 16), pattern(16));
  Bytes found(16);
  device.fetch(found, memory.data());
  EXPECT_EQ(found, pattern(16));
  const pds::Response response = b.take(rma(SesOpcode::Read, 0, 16, 16));
  EXPECT_EQ(code_of(response), ReturnCode::Ok);
  EXPECT_TRUE(std::ranges::equal(header_of(response).payload, pattern(16)));
}

TEST_F(TargetRmaTest, Idea9_Ses79_Immediate_AfterTheLastByte) {
  const std::uint32_t total = 3 * kMtu;
  SesRequest som = rma(SesOpcode::Write, 0, kMtu, total);
  som.hd = true;
  som.header_data = 0xDA7A;
  for (const std::uint32_t offset : {2 * kMtu, 0u, kMtu}) {
    EXPECT_TRUE(b.sink.all.empty());
    b.take(offset == 0 ? som : rma(SesOpcode::Write, offset, kMtu, total), pattern(kMtu));
  }
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].kind, Kind::RemoteWrite);
  EXPECT_EQ(b.sink.all[0].data, 0xDA7Au);
  EXPECT_EQ(b.sink.all[0].length, total);
  EXPECT_EQ(b.sink.all[0].source, address_of(1));
  EXPECT_EQ(b.sink.all[0].source_initiator, InitiatorId{5});
  EXPECT_TRUE(b.sink.accesses.empty());
}

// As many bytes as the message has are not enough: its first packet carries the immediate data.
TEST_F(TargetRmaTest, Ses30_WriteIsNotCompleteWithoutItsFirstPacket) {
  const SesRequest later = rma(SesOpcode::Write, kMtu, kMtu, 2 * kMtu);
  for (int copy = 0; copy < 2; ++copy) {
    EXPECT_EQ(code_of(b.take(later, pattern(kMtu))), ReturnCode::Ok);
    EXPECT_TRUE(b.sink.all.empty());
    EXPECT_TRUE(b.sink.accesses.empty());
    EXPECT_FALSE(b.ses.idle());
  }
  b.ses.client().pdc_closed(kPdc, {}, kNow);
}

TEST_F(TargetRmaTest, Ses79_FullQueue_RefusesCompletingPacket) {
  SesRequest request = rma(SesOpcode::Write, 0, 8, 8);
  request.hd = true;
  b.sink.room = false;
  EXPECT_EQ(b.take(request, pattern(8)).nack, pds::NackCode::NoResource);
  EXPECT_TRUE(untouched()) << "a refused packet leaves no trace";
  EXPECT_TRUE(b.ses.idle());
  SesRequest first = rma(SesOpcode::Write, 0, kMtu, 2 * kMtu);
  first.hd = true;
  first.message_id = MsgId{10};
  SesRequest last = rma(SesOpcode::Write, kMtu, kMtu, 2 * kMtu);
  last.message_id = MsgId{10};
  EXPECT_EQ(code_of(b.take(first, pattern(kMtu))), ReturnCode::Ok);
  EXPECT_EQ(b.take(last, pattern(kMtu)).nack, pds::NackCode::NoResource);
  b.sink.room = true;
  EXPECT_EQ(code_of(b.take(last, pattern(kMtu))), ReturnCode::Ok);
  EXPECT_EQ(code_of(b.take(request, pattern(8))), ReturnCode::Ok);
  EXPECT_EQ(b.sink.all.size(), 2u);
}

// A context whose receives immediate data take (FI_RX_CQ_DATA).
class TakingReceives : public TargetRmaTest {
 protected:
  static ContextConfig config() {
    ContextConfig config = small_config();
    config.data_takes_receive = true;
    return config;
  }
  SesRequest to(const Node& node, Rkey region_key) const {
    SesRequest request = node.request_for(SesOpcode::Write);
    request.match_bits = region_key.value;
    request.som = request.eom = request.hd = true;
    request.payload_length = request.request_length = 8;
    request.header_data = 0xDA7A;
    return request;
  }

  Node c{3, small_parameters(), config()};
  Rkey of_c = c.expose(region);
  Bytes room = Bytes(4);
  int first = 0;
  int second = 0;
};

TEST_F(TakingReceives, Ses79_WithoutAReceive_TheLastByteMustWait) {
  EXPECT_EQ(c.take(to(c, of_c), pattern(8)).nack, pds::NackCode::NoResource);
  EXPECT_TRUE(untouched());
  ASSERT_TRUE(c.receive({slice_of(room)}, 5, 0, &second)) << "a tagged receive is not for it";
  EXPECT_EQ(c.take(to(c, of_c), pattern(8)).nack, pds::NackCode::NoResource);
  EXPECT_TRUE(c.sink.all.empty());
  ASSERT_TRUE(c.receive({slice_of(room)}, {}, 0, &first));
  EXPECT_EQ(code_of(c.take(to(c, of_c), pattern(8))), ReturnCode::Ok);
  ASSERT_EQ(c.sink.all.size(), 1u);
  EXPECT_EQ(c.sink.all[0].context, &first);
}

TEST_F(TakingReceives, DataTakeTheOldestReceiveForTheirSource) {
  const Peer other{address_of(9), PidOnFep{2}, ResourceIndex{10}, InitiatorId{5}, true, {}};
  ASSERT_TRUE(c.receive({slice_of(room)}, {}, 0, &room, &other));
  ASSERT_TRUE(c.receive({slice_of(room)}, {}, 0, &first));
  ASSERT_TRUE(c.receive({slice_of(room)}, {}, 0, &second));
  for (const void* expected : {&first, &second}) {
    EXPECT_EQ(code_of(c.take(to(c, of_c), pattern(8))), ReturnCode::Ok);
    const Completion& last = c.sink.all.back();
    EXPECT_EQ(last.context, expected);
    EXPECT_EQ(last.kind, Kind::RemoteWrite);
    EXPECT_TRUE(last.took_receive);
    EXPECT_TRUE(last.has_data);
    EXPECT_EQ(last.data, 0xDA7Au);
    EXPECT_EQ(last.length, 8u);
  }
  EXPECT_EQ(room, Bytes(4)) << "the data are where the write says";
  EXPECT_EQ(c.take(to(c, of_c), pattern(8)).nack, pds::NackCode::NoResource);
  EXPECT_TRUE(c.ses.idle());
}

TEST_F(TakingReceives, AMultiReceiveServesAgainAndAgain) {
  Bytes buffer(64);
  const IoSlice slice = slice_of(buffer);
  ReceiveOp op;
  op.local = {&slice, 1};
  op.multi = true;
  op.context = &first;
  ASSERT_TRUE(c.ses.receive(*c.context, op, kNow));
  c.sink.receive_room = 2;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(code_of(c.take(to(c, of_c), pattern(8))), ReturnCode::Ok);
    EXPECT_EQ(c.sink.all.back().context, &first);
    EXPECT_FALSE(c.sink.all.back().released);
  }
  EXPECT_EQ(c.take(to(c, of_c), pattern(8)).nack, pds::NackCode::NoResource) << "no CQ entry";
}

TEST_F(TakingReceives, WritesWithoutDataTakeNone) {
  ASSERT_TRUE(c.receive({slice_of(room)}, {}, 0, &first));
  SesRequest request = to(c, of_c);
  request.hd = false;
  EXPECT_EQ(code_of(c.take(request, pattern(8))), ReturnCode::Ok);
  EXPECT_TRUE(c.sink.all.empty());
  EXPECT_EQ(c.sink.accesses.size(), 1u);
}

TEST_F(TargetRmaTest, Ses162_PartOfAnOperationCountsOnlyWhereItEnds) {
  struct Observer final : ri::AccessObserver {
    void accessed(std::uint8_t, std::uint64_t) noexcept override { ++operations; }
    void accessed_part(std::uint8_t, std::uint64_t length) noexcept override { bytes += length; }
    int operations = 0;
    std::uint64_t bytes = 0;
  } observer;
  ri::MemoryRegion watched;
  watched.base = region.data();
  watched.length = region.size();
  watched.access = ri::kRemoteWrite;
  watched.observer = &observer;
  key = b.regions.add(watched).value();
  const auto write = [&](Part part) {
    SesRequest request = rma(SesOpcode::Write, 0, 8, 8);
    request.header_data = static_cast<std::uint64_t>(part);
    EXPECT_EQ(code_of(b.take(request, pattern(8))), ReturnCode::Ok);
  };
  write(Part::Inside);
  EXPECT_TRUE(b.sink.accesses.empty());
  EXPECT_EQ(observer.operations, 0);
  EXPECT_EQ(observer.bytes, 8U);
  write(Part::RegionEnd);
  EXPECT_TRUE(b.sink.accesses.empty());
  EXPECT_EQ(observer.operations, 1);
  EXPECT_EQ(b.sink.parts.size(), 2U);
  write(Part::Whole);
  EXPECT_EQ(b.sink.accesses.size(), 1U);
  EXPECT_EQ(observer.operations, 2);
  write(static_cast<Part>(3));
  EXPECT_EQ(b.sink.accesses.size(), 2U) << "an unknown value is that of a whole operation";
}

TEST_F(TargetRmaTest, Ses162_ImmediateDataAreNoPart) {
  SesRequest request = rma(SesOpcode::Write, 0, 8, 8);
  request.hd = true;
  request.header_data = static_cast<std::uint64_t>(Part::Inside);
  EXPECT_EQ(code_of(b.take(request, pattern(8))), ReturnCode::Ok);
  ASSERT_EQ(b.sink.all.size(), 1U);
  EXPECT_EQ(b.sink.all[0].data, 1U);
}

TEST_F(TargetRmaTest, Ses157_EmptyWriteWithData_OnlyCompletes) {
  SesRequest request = rma(SesOpcode::Write, 0, 0, 0);
  request.hd = true;
  request.header_data = 5;
  EXPECT_EQ(code_of(b.take(request)), ReturnCode::Ok);
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].data, 5u);
}

TEST_F(TargetRmaTest, Ses80_DataForAContextThatCannotReportThem) {
  ContextConfig config = small_config();
  config.remote_cq_data = false;
  Node node(3, small_parameters(), config);
  Bytes memory(8);
  SesRequest request = rma(SesOpcode::Write, 0, 8, 8);
  request.match_bits = node.expose(memory).value;
  request.hd = true;
  EXPECT_EQ(code_of(node.take(request, pattern(8))), ReturnCode::OpViolation);
  EXPECT_EQ(memory, Bytes(8));
}

// On RUD the packet that says so may not be the first to come.
TEST_F(TargetRmaTest, Ses80_DataThatComeLaterAreRefusedAsWell) {
  ContextConfig config = small_config();
  config.remote_cq_data = false;
  Node node(3, small_parameters(), config);
  Bytes memory(2 * kMtu);
  SesRequest second = rma(SesOpcode::Write, kMtu, kMtu, 2 * kMtu);
  second.match_bits = node.expose(memory).value;
  EXPECT_EQ(code_of(node.take(second, pattern(kMtu))), ReturnCode::Ok);
  SesRequest first = rma(SesOpcode::Write, 0, kMtu, 2 * kMtu);
  first.match_bits = second.match_bits;
  first.hd = true;
  EXPECT_EQ(code_of(node.take(first, pattern(kMtu))), ReturnCode::OpViolation);
  EXPECT_TRUE(std::all_of(memory.begin(), memory.begin() + kMtu,
                          [](std::byte byte) { return byte == std::byte{}; }));
  EXPECT_TRUE(node.sink.all.empty());
  EXPECT_TRUE(node.ses.idle());
}

TEST_F(TargetRmaTest, Idea3_WrongKeyJobOrBoundsTouchNothing) {
  SesRequest request = rma(SesOpcode::Write, 0, 8, 8);
  request.match_bits = key.value + 1;
  EXPECT_EQ(code_of(b.take(request, pattern(8))), ReturnCode::BadMkey);
  request = rma(SesOpcode::Write, 0, 8, 8);
  request.buffer_offset = region.size() - 7;
  EXPECT_EQ(code_of(b.take(request, pattern(8))), ReturnCode::BadAddr);
  request.buffer_offset = UINT64_MAX - 3;  // offset + length wraps 2^64 (SES-118)
  EXPECT_EQ(code_of(b.take(request, pattern(8))), ReturnCode::BadAddr);
  ri::MemoryRegion other;
  other.base = region.data();
  other.length = region.size();
  other.access = ri::kRemoteWrite;
  other.job = JobId{55};  // SES-17
  request = rma(SesOpcode::Write, 0, 8, 8);
  request.match_bits = b.regions.add(other).value().value;
  EXPECT_EQ(code_of(b.take(request, pattern(8))), ReturnCode::BadMkey);  // SES-119
  EXPECT_TRUE(untouched());
  EXPECT_TRUE(b.ses.idle());
}

TEST_F(TargetRmaTest, Ses135_RightsAndResourceIndexOfTheRegionCount) {
  const Rkey read_only = b.expose(region, ri::kRemoteRead);
  SesRequest request = rma(SesOpcode::Write, 0, 8, 8);
  request.match_bits = read_only.value;
  EXPECT_EQ(code_of(b.take(request, pattern(8))), ReturnCode::OpViolation);
  ri::MemoryRegion elsewhere;
  elsewhere.base = region.data();
  elsewhere.length = region.size();
  elsewhere.access = ri::kRemoteWrite;
  elsewhere.ri = ResourceIndex{99};
  request.match_bits = b.regions.add(elsewhere).value().value;
  EXPECT_EQ(code_of(b.take(request, pattern(8))), ReturnCode::BadMkey);
  EXPECT_TRUE(untouched());
}

TEST_F(TargetRmaTest, Ses117_EndsOutside_RefusedAtFirstPacket) {
  SesRequest request = rma(SesOpcode::Write, 0, kMtu, 8 * kMtu + 1);
  EXPECT_EQ(code_of(b.take(request, pattern(kMtu))), ReturnCode::BadAddr);
  EXPECT_TRUE(untouched());
  request = rma(SesOpcode::Write, kMtu, kMtu, 8 * kMtu + 1);
  EXPECT_EQ(code_of(b.take(request, pattern(kMtu))), ReturnCode::BadAddr);
  b.ses.client().pdc_closed(kPdc, {}, kNow);
}

TEST_F(TargetRmaTest, Ses140_ClosedRegionStopsARunningMessage) {
  EXPECT_EQ(code_of(b.take(rma(SesOpcode::Write, 0, kMtu, 3 * kMtu), pattern(kMtu))),
            ReturnCode::Ok);
  ASSERT_TRUE(b.regions.remove(key));
  const pds::Response second = b.take(rma(SesOpcode::Write, kMtu, kMtu, 3 * kMtu), pattern(kMtu));
  EXPECT_EQ(code_of(second), ReturnCode::BadMkey);
  EXPECT_TRUE(second.guaranteed);
  EXPECT_EQ(region[kMtu], std::byte{0});
  const pds::Response third =
      b.take(rma(SesOpcode::Write, 2 * kMtu, kMtu, 3 * kMtu), pattern(kMtu));
  EXPECT_EQ(code_of(third), ReturnCode::BadMkey);
  EXPECT_FALSE(third.guaranteed);
  EXPECT_TRUE(b.ses.idle());
  EXPECT_TRUE(b.sink.accesses.empty());
}

TEST_F(TargetRmaTest, Ses115_Step13_PayloadBeyondMessage_Refused) {
  SesRequest request = rma(SesOpcode::Write, kMtu, 100, 2 * kMtu);
  request.request_length = kMtu + 50;
  EXPECT_EQ(code_of(b.take(request, pattern(100))), ReturnCode::OpViolation);
  EXPECT_TRUE(untouched());
  b.ses.client().pdc_closed(kPdc, {}, kNow);
}

// A write that fails every check, which is mended in their order.
TEST_F(TargetRmaTest, Ses115_Steps9To14_FirstFailureOfAWriteWins) {
  ContextConfig config = small_config();
  config.remote_cq_data = false;
  config.generation = RiGeneration{4};
  Node node(3, small_parameters(), config);
  ri::MemoryRegion restricted;
  restricted.base = region.data();
  restricted.length = region.size();
  restricted.access = ri::kRemoteRead;
  restricted.job = JobId{55};
  const Rkey theirs = node.regions.add(restricted).value();
  SesRequest request = part(node.request_for(SesOpcode::Write), 0, 8, 8);
  request.ri_generation = RiGeneration{3};
  request.ie = request.hd = true;
  request.match_bits = theirs.value + 1;
  request.buffer_offset = region.size();
  const auto code = [&] { return code_of(node.take(request, pattern(8))); };
  EXPECT_EQ(code(), ReturnCode::BadGeneration);
  request.ri_generation = RiGeneration{4};
  EXPECT_EQ(code(), ReturnCode::InitiatorErr);
  request.ie = false;
  EXPECT_EQ(code(), ReturnCode::BadMkey);
  request.match_bits = theirs.value;
  EXPECT_EQ(code(), ReturnCode::BadMkey) << "SES-119: of another job";
  node.regions.find(theirs)->job.reset();
  EXPECT_EQ(code(), ReturnCode::OpViolation) << "to be read only";
  node.regions.find(theirs)->access = ri::kRemoteWrite;
  EXPECT_EQ(code(), ReturnCode::BadAddr);
  request.buffer_offset = 0;
  EXPECT_EQ(code(), ReturnCode::OpViolation) << "no context can report the data";
  EXPECT_TRUE(untouched());
  request.hd = false;
  EXPECT_EQ(code(), ReturnCode::Ok);
  EXPECT_TRUE(node.ses.idle());
}

TEST_F(TargetRmaTest, Ses5_SmallWriteUsesTheOptimisedKey) {
  ri::MemoryRegion small;
  small.base = region.data();
  small.length = region.size();
  small.access = ri::kRemoteWrite;
  SesRequest request = b.request_for(SesOpcode::Write);
  request.next_hdr = NextHdr::RequestSmall;
  request.resource_index = ResourceIndex{0x123};
  request.request_length = 8;
  EXPECT_EQ(code_of(b.take(request, pattern(8))), ReturnCode::BadMkey);
  EXPECT_TRUE(untouched());
  for (const std::uint64_t flags : {1, 3}) {  // OPTIMIZED, also with IDEMPOTENT_SAFE
    const Rkey small_key{(flags << 62) + 0x123};
    ASSERT_TRUE(b.regions.add_with_key(small, small_key));
    request.buffer_offset = 16 * flags;
    EXPECT_EQ(code_of(b.take(request, pattern(8))), ReturnCode::Ok);
    const Bytes payload = pattern(8);
    EXPECT_TRUE(std::equal(payload.begin(), payload.end(),
                           region.begin() + static_cast<std::ptrdiff_t>(16 * flags)));
    ASSERT_TRUE(b.regions.remove(small_key));
  }
}

// ---- reads -------------------------------------------------------------------------------------

// WIRE 3.12: the data in the return direction.
// PDS-194: the small last piece too, on the PDC that the request came on.
TEST_F(TargetRmaTest, Ses82_EachReadPacket_HasOneReturnPacket) {
  fill();
  const std::uint32_t total = kMtu + 3;
  constexpr PdcId kOfTheRequest{0x99};
  const pds::Response response = b.take(rma(SesOpcode::Read, 0, kMtu, total), {}, 1, kOfTheRequest);
  EXPECT_EQ(code_of(response), ReturnCode::Ok);  // PDS-195
  EXPECT_FALSE(response.guaranteed);
  b.take(rma(SesOpcode::Read, kMtu, 3, total), {}, 1, kOfTheRequest);
  const std::vector<Sent> sent = b.packets();
  ASSERT_EQ(sent.size(), 2u);
  for (std::uint32_t i = 0; i < 2; ++i) {
    wire::SesResponseHeader header;
    EXPECT_EQ(sent[i].message->pdc, kOfTheRequest);
    EXPECT_EQ(sent[i].next_hdr, NextHdr::ResponseData);
    ASSERT_TRUE(wire::SesResponseHeader::decode(sent[i].next_hdr, sent[i].bytes, header));
    EXPECT_EQ(header.opcode, wire::ResponseOpcode::ResponseWData);
    EXPECT_EQ(header.return_code, ReturnCode::Ok);
    EXPECT_EQ(header.read_request_message_id, MsgId{9});  // SES-83
    EXPECT_EQ(header.message_offset, i * kMtu);
    EXPECT_EQ(header.payload_length, i == 0 ? kMtu : 3u);
    EXPECT_EQ(header.job_id, small_config().job);
    EXPECT_EQ(header.modified_length, total);  // WIRE 5.1: of the whole read
    EXPECT_TRUE(std::equal(header.payload.begin(), header.payload.end(),
                           region.begin() + static_cast<std::ptrdiff_t>(i * kMtu)));
    b.answered(sent[i], {});
  }
  ASSERT_EQ(b.sink.accesses.size(), 1u);
  EXPECT_EQ(b.sink.accesses[0], std::make_pair(Kind::Read, std::uint64_t{total}));
  expect_idle();
}

// PDS-194: what is too long for the ACK by one byte goes in the return direction whole.
TEST_F(TargetRmaTest, Idea10_Ses82_Ses104_FewDataRideInTheAckGuaranteed) {
  fill();
  constexpr std::uint32_t kMost = pds::Response::kMaxBytes - sizeof(wire::SesResponseData);
  for (const std::uint32_t count : {std::uint32_t{1}, kMost}) {
    const pds::Response response = b.take(rma(SesOpcode::Read, 0, count, count));
    EXPECT_TRUE(response.guaranteed);  // PDS-111: data in the ACK
    EXPECT_EQ(response.next_hdr, NextHdr::ResponseData);
    const wire::SesResponseHeader header = header_of(response);
    EXPECT_EQ(header.read_request_message_id, MsgId{9});
    const Bytes data(header.payload.begin(), header.payload.end());
    EXPECT_EQ(data, Bytes(region.begin(), region.begin() + count));
    EXPECT_TRUE(b.packets().empty());
  }
  const pds::Response response = b.take(rma(SesOpcode::Read, 0, kMost + 1, kMost + 1));
  EXPECT_EQ(response.next_hdr, NextHdr::Response) << "all of it goes in the return direction";
  const std::vector<Sent> sent = b.packets();
  ASSERT_EQ(sent.size(), 1u);
  b.answered(sent[0], {});
  EXPECT_EQ(b.sink.accesses.size(), 3u);
  expect_idle();
}

// WIRE 3.10: some initiators find their read by response_message_id.
TEST_F(TargetRmaTest, AnswerHasTheMessageIdOfItsRead) {
  for (const std::uint16_t id : {1, 9, 0xFFFF}) {
    SesRequest read = rma(SesOpcode::Read, 0, 1, 1);
    read.message_id = MsgId{id};
    const auto header = header_of(b.take(read));
    EXPECT_EQ(header.response_message_id, MsgId{id});
    EXPECT_EQ(header.read_request_message_id, MsgId{id});
  }
}

TEST_F(TargetRmaTest, Ses82_ReadsOfEverySizeBringTheirData) {
  fill();
  for (const std::size_t count :
       {std::size_t{1}, std::size_t{64}, std::size_t{77}, std::size_t{kMtu}, std::size_t{kMtu + 1},
        5 * std::size_t{kMtu}}) {
    Bytes memory(count);
    ASSERT_TRUE(a.read(b, {slice_of(memory)}, key));
    exchange();
    EXPECT_TRUE(std::equal(memory.begin(), memory.end(), region.begin())) << count;
    ASSERT_EQ(a.sink.all.size(), 1u);
    EXPECT_EQ(a.sink.all[0].status, Status::Ok);
    a.sink.all.clear();
  }
  expect_idle();
}

TEST_F(TargetRmaTest, Ses126_ReadBeforeWrite_TakesOldBytes) {
  fill();
  const Bytes before(region.begin(), region.begin() + 100);
  b.take(rma(SesOpcode::Read, 0, 100, 100));
  b.take(rma(SesOpcode::Write, 0, 8, 8), pattern(8, 9));
  const Sent sent = b.packets().at(0);
  wire::SesResponseHeader header;
  ASSERT_TRUE(wire::SesResponseHeader::decode(sent.next_hdr, sent.bytes, header));
  EXPECT_TRUE(std::equal(before.begin(), before.end(), header.payload.begin()));
  b.answered(sent, {});
}

TEST_F(TargetRmaTest, Ses6_ReadWithoutMessageIdIsAnsweredByPsn) {
  SesRequest request = rma(SesOpcode::Read, 0, 100, 100);
  request.next_hdr = NextHdr::RequestMedium;
  Bytes bytes(request.encoded_bytes());
  request.encode(bytes.data());
  EXPECT_EQ(code_of(b.take(request.next_hdr, bytes, 1, kPdc, 4711)), ReturnCode::Ok);
  const Sent sent = b.packets().at(0);
  wire::SesResponseHeader header;
  ASSERT_TRUE(wire::SesResponseHeader::decode(sent.next_hdr, sent.bytes, header));
  EXPECT_EQ(sent.next_hdr, NextHdr::ResponseDataSmall);
  EXPECT_EQ(header.original_request_psn, Psn{4711});
  b.answered(sent, {});
}

TEST_F(TargetRmaTest, Ses116_ReadErrorsAreGuaranteedResponses) {
  SesRequest request = rma(SesOpcode::Read, 0, 8, 8);
  request.buffer_offset = region.size() - 7;
  const pds::Response response = b.take(request);
  EXPECT_EQ(code_of(response), ReturnCode::BadAddr);
  EXPECT_TRUE(response.guaranteed);
  request = rma(SesOpcode::Read, 0, 8, 8);
  request.match_bits = b.expose(region, ri::kRemoteWrite).value;
  EXPECT_EQ(code_of(b.take(request)), ReturnCode::OpViolation);
  request = rma(SesOpcode::Read, 0, 2 * kMtu, 2 * kMtu);  // one packet for two MTUs
  EXPECT_EQ(code_of(b.take(request)), ReturnCode::OpViolation);
  EXPECT_TRUE(b.packets().empty());
  expect_idle();
}

// A read that fails every check, which is mended in their order.
TEST_F(TargetRmaTest, Ses116_FirstFailureOfAReadWins) {
  SesRequest request = rma(SesOpcode::Read, kMtu, 8, kMtu + 7);
  request.eom = true;
  request.ie = true;
  request.ri_generation = RiGeneration{1};
  request.match_bits = key.value + 1;
  request.buffer_offset = region.size();
  const auto code = [&] { return code_of(b.take(request)); };
  EXPECT_EQ(code(), ReturnCode::OpViolation);
  request.payload_length = 7;
  EXPECT_EQ(code(), ReturnCode::InitiatorErr);
  request.ie = false;
  EXPECT_EQ(code(), ReturnCode::BadGeneration);
  request.ri_generation = {};
  EXPECT_EQ(code(), ReturnCode::BadMkey);
  request.match_bits = b.expose(region, ri::kRemoteWrite).value;
  EXPECT_EQ(code(), ReturnCode::OpViolation);
  request.match_bits = key.value;
  EXPECT_EQ(code(), ReturnCode::BadAddr);
  EXPECT_TRUE(b.packets().empty());
  EXPECT_TRUE(b.sink.accesses.empty());
  request.buffer_offset = 0;
  EXPECT_EQ(code(), ReturnCode::Ok);
  for (const Sent& sent : b.packets()) b.answered(sent, {});
}

TEST_F(TargetRmaTest, ReadWithoutABufferIsRefusedForNow) {
  Node tight(3, small_parameters(), small_config(), 1);
  Bytes memory = pattern(2 * kMtu);
  SesRequest request = rma(SesOpcode::Read, 0, kMtu, kMtu);
  request.match_bits = tight.expose(memory).value;
  EXPECT_EQ(code_of(tight.take(request)), ReturnCode::Ok);
  EXPECT_EQ(tight.take(request).nack, pds::NackCode::NoResource);
  const Sent sent = tight.packets().at(0);
  sent.message->owner->pds_error(*sent.message, sent.tag, pds::PdsError::RtoExhausted, kNow);
  EXPECT_EQ(code_of(tight.take(request)), ReturnCode::Ok);
  tight.delivery.backlog.front()->owner->message_failed(*tight.delivery.backlog.front(),
                                                        pds::PdsError::LocalClose, kNow);
  EXPECT_TRUE(tight.ses.idle());
}

// The application hears of no read, and orders nothing behind one: no copy is needed.
TEST_F(TargetRmaTest, UnobservedRead_IsAnsweredFromTheRegion) {
  fill();
  b.sink.counts = false;
  EXPECT_EQ(code_of(b.take(rma(SesOpcode::Read, 0, kMtu, kMtu))), ReturnCode::Ok);
  const std::vector<Sent> sent = b.packets();
  ASSERT_EQ(sent.size(), 1u);
  const auto& answer = static_cast<const ReadAnswer&>(*sent[0].message);
  EXPECT_EQ(answer.payload[0].data, region.data());
  b.answered(sent[0], {});
  expect_idle();
}

TEST_F(TargetRmaTest, ObservedRead_IsAnsweredFromCopy) {
  fill();
  EXPECT_EQ(code_of(b.take(rma(SesOpcode::Read, 0, kMtu, kMtu))), ReturnCode::Ok);
  const std::vector<Sent> sent = b.packets();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_NE(static_cast<const ReadAnswer&>(*sent[0].message).payload[0].data, region.data());
  b.answered(sent[0], {});
}

TEST_F(TargetRmaTest, OneHostCannotTakeAllReadAnswers) {
  Parameters parameters = small_parameters();
  parameters.return_messages = 16;
  Node target(3, parameters);
  Bytes memory(kMtu);
  SesRequest request = target.request_for(SesOpcode::Read);
  request.match_bits = target.expose(memory).value;
  request.request_length = kMtu;
  std::size_t taken = 0;
  while (!target.take(request).nack) ++taken;
  EXPECT_EQ(taken, 12u) << "3/4 of them";
  EXPECT_FALSE(target.take(request, {}, 7).nack.has_value()) << "another host has a share";
}

TEST_F(TargetRmaTest, ReadOnALostPdcLeavesNothing) {
  b.delivery.pdc_gone = true;
  EXPECT_TRUE(b.take(rma(SesOpcode::Read, 0, 100, 100)).nack.has_value());
  expect_idle();
}

TEST_F(TargetRmaTest, ReadOfNothingNeedsNoDataPacket) {
  EXPECT_EQ(code_of(b.take(rma(SesOpcode::Read, 0, 0, 0))), ReturnCode::Ok);
  EXPECT_TRUE(b.packets().empty());
}

}  // namespace
}  // namespace uet::ses::test
