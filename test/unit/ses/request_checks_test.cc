// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/request_checks.h"

#include "unit/ses/operation_harness.h"

namespace uet::ses::test {
namespace {

bool add(ri::RiTable& table, Context& context) {
  bool added = true;
  context.for_each_key([&](const ri::RiKey& key) { return added = table.add(key, &context).ok(); });
  return added;
}

class RequestChecksTest : public OperationTest {
 protected:
  RequestChecksTest() {
    context.enabled = true;
    EXPECT_TRUE(add(contexts, context));
  }
  // A write of one packet to the whole region under `key`.
  SesRequest request(SesOpcode opcode, Rkey key = Rkey{}) {
    SesRequest made;
    made.opcode = opcode;
    made.som = made.eom = true;
    made.rel = context.config.relative;
    made.job_id = context.config.job;
    made.pid_on_fep = context.config.pid_on_fep;
    made.resource_index = context.config.resource_index;
    made.match_bits = key.value;
    made.request_length = static_cast<std::uint32_t>(memory.size());
    made.payload_length = made.request_length;
    made.payload = memory;
    return made;
  }
  Rkey expose(std::uint8_t access, std::optional<ResourceIndex> index = {}) {
    ri::MemoryRegion region;
    region.base = memory.data();
    region.length = memory.size();
    region.access = access;
    region.ri = index;
    return regions.add(region).value();
  }

  Bytes memory = pattern(64);
  ri::MrTable regions{8, {}};
  ri::RiTable contexts{8};
  RequestChecks checks{kMtu, regions, contexts};
};

TEST_F(RequestChecksTest, Ses115_AddressNamesJobProcessAndIndex) {
  SesRequest send = request(SesOpcode::Send);
  EXPECT_EQ(checks.address(send).context, &context);
  send.job_id = JobId{7};
  EXPECT_NE(checks.address(send).code, ReturnCode::Ok);
  send = request(SesOpcode::Send);
  send.resource_index = ResourceIndex{11};
  EXPECT_NE(checks.address(send).code, ReturnCode::Ok);
}

TEST_F(RequestChecksTest, Ses5_SmallRequestComesThroughItsRegion) {
  Context other(small_config(), sink);
  other.config.resource_index = ResourceIndex{4};
  ASSERT_TRUE(add(contexts, other));
  const Rkey key{std::uint64_t{1} << 62 | 0x123};
  ri::MemoryRegion region;
  region.base = memory.data();
  region.length = memory.size();
  region.ri = context.config.resource_index;
  ASSERT_TRUE(regions.add_with_key(region, key));
  SesRequest small = request(SesOpcode::Write);
  small.next_hdr = NextHdr::RequestSmall;
  small.resource_index = ResourceIndex{0x123};
  EXPECT_EQ(checks.address(small).context, &context);
  regions.find(checks.key(small))->ri.reset();
  EXPECT_EQ(checks.address(small).context, &other) << "the lowest index of the process";
}

TEST_F(RequestChecksTest, Ses115_WriteNeedsKeyRightAndRangeInThisOrder) {
  const SesRequest unknown = request(SesOpcode::Write, Rkey{5});
  EXPECT_EQ(checks.write(unknown, context).code, ReturnCode::BadMkey);
  const SesRequest forbidden = request(SesOpcode::Write, expose(ri::kRemoteRead));
  EXPECT_EQ(checks.write(forbidden, context).code, ReturnCode::OpViolation);
  SesRequest write = request(SesOpcode::Write, expose(ri::kRemoteWrite));
  const RequestChecks::Permission granted = checks.write(write, context);
  EXPECT_EQ(granted.code, ReturnCode::Ok);
  EXPECT_EQ(granted.memory.address, memory.data());
  EXPECT_EQ(checks.later_write(write, context).code, ReturnCode::Ok);
  write.buffer_offset = 1;
  EXPECT_EQ(checks.write(write, context).code, ReturnCode::BadAddr);
  EXPECT_EQ(checks.later_write(write, context).code, ReturnCode::BadAddr);
}

TEST_F(RequestChecksTest, Ses80_DataNeedACompletionQueue) {
  SesRequest write = request(SesOpcode::Write, expose(ri::kRemoteWrite));
  write.hd = true;
  EXPECT_EQ(checks.write(write, context).code, ReturnCode::Ok);
  context.config.remote_cq_data = false;
  EXPECT_NE(checks.write(write, context).code, ReturnCode::Ok);
}

TEST_F(RequestChecksTest, Ses17_OtherJobsReachRegionsThatNameThemOnly) {
  context.config.own_job_only = true;
  const Rkey key = expose(ri::kRemoteRead);
  SesRequest read = request(SesOpcode::Read, key);
  EXPECT_EQ(checks.read(read, context).code, ReturnCode::Ok);
  read.job_id = JobId{7};
  EXPECT_EQ(checks.read(read, context).code, ReturnCode::BadMkey);
  regions.find(key)->job = JobId{7};
  EXPECT_EQ(checks.read(read, context).code, ReturnCode::Ok);
}

TEST_F(RequestChecksTest, Ses137_RudiNeedsAnIdempotentSafeKey) {
  const SesRequest write = request(SesOpcode::Write, expose(ri::kRemoteWrite));
  EXPECT_EQ(checks.rudi(write, context).code, ReturnCode::OpViolation);
  const Rkey safe{std::uint64_t{1} << 63 | 5};
  ri::MemoryRegion region;
  region.base = memory.data();
  region.length = memory.size();
  region.access = ri::kRemoteWrite;
  ASSERT_TRUE(regions.add_with_key(region, safe));
  SesRequest again = request(SesOpcode::Write, safe);
  EXPECT_EQ(checks.rudi(again, context).code, ReturnCode::Ok);
  again.hd = true;
  EXPECT_EQ(checks.rudi(again, context).code, ReturnCode::OpViolation);
}

TEST_F(RequestChecksTest, Ses90_AtomicIsOnePacketOfAlignedElements) {
  SesRequest atomic = request(SesOpcode::Atomic, expose(ri::kRemoteRead | ri::kRemoteWrite));
  atomic.atomic.op = wire::AmoOp::Sum;
  atomic.atomic.datatype = wire::AmoDatatype::Uint64;
  const auto code = [&] {
    return checks.atomic(atomic, context, atomic_extent(atomic, kMtu)).code;
  };
  EXPECT_EQ(code(), ReturnCode::Ok);
  atomic.eom = false;
  EXPECT_EQ(code(), ReturnCode::OpViolation);
  atomic.eom = true;
  atomic.buffer_offset = 4;
  atomic.request_length = atomic.payload_length = 8;
  atomic.payload = atomic.payload.first(8);
  EXPECT_EQ(code(), ReturnCode::AmoUnaligned);
}

TEST_F(RequestChecksTest, Ses77_DatagramIsOnePacketToADatagramContext) {
  SesRequest datagram = request(SesOpcode::DatagramSend);
  EXPECT_FALSE(checks.datagram(datagram, context));
  context.config.mode = DeliveryMode::Uud;
  EXPECT_TRUE(checks.datagram(datagram, context));
  datagram.request_length += 1;
  EXPECT_FALSE(checks.datagram(datagram, context));
}

}  // namespace
}  // namespace uet::ses::test
