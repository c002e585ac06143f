// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Who is meant and who may: relative and absolute addresses beside each other, and jobs that reach
// neither memory nor receives of each other.
#include "unit/ses/harness.h"

namespace uet::ses::test {
namespace {

constexpr JobId kOwn{101};
constexpr JobId kOther{55};
constexpr Rkey kSafeKey{std::uint64_t{1} << 63 | 5};

ContextConfig config_for(JobId job, bool relative) {
  ContextConfig config = small_config();
  config.job = job;
  config.relative = relative;
  return config;
}

// One context for each job, and one for all, under the same PIDonFEP and resource index.
class SharedName : public ::testing::Test {
 protected:
  SharedName() {
    other = open(kOther, true, other_sink);
    absolute = open(kOwn, false, absolute_sink);
  }
  Context* open(JobId job, bool relative, Sink& sink) {
    Context* context = node.ses.open_context(config_for(job, relative), sink).value();
    node.ses.enable(*context);
    return context;
  }
  void post(Context& context) {
    ReceiveOp op;
    const IoSlice slice = slice_of(room);
    op.local = {&slice, 1};
    ASSERT_TRUE(node.ses.receive(context, op, kNow));
  }
  ReturnCode send(JobId job, bool relative) {
    SesRequest request = node.request_for(SesOpcode::Send);
    request.job_id = job;
    request.rel = relative;
    request.som = request.eom = true;
    request.request_length = 8;
    return code_of(node.take(request, pattern(8)));
  }
  std::vector<std::size_t> received() const {
    return {node.sink.all.size(), other_sink.all.size(), absolute_sink.all.size()};
  }

  using Counts = std::vector<std::size_t>;
  Bytes room = Bytes(8);
  Sink other_sink;
  Sink absolute_sink;
  Node node{2};
  Context* other = nullptr;
  Context* absolute = nullptr;
};

TEST_F(SharedName, Ses12_Ses13_ModeAndJobSayWhichContextIsMeant) {
  for (Context* context : {node.context, other, absolute}) post(*context);
  EXPECT_EQ(send(kOther, true), ReturnCode::Ok);
  EXPECT_EQ(received(), (Counts{0, 1, 0}));
  EXPECT_EQ(send(kOwn, true), ReturnCode::Ok);
  EXPECT_EQ(received(), (Counts{1, 1, 0}));
  EXPECT_EQ(send(JobId{1}, true), ReturnCode::BadJobId) << "SES-16: there is no such job";
  EXPECT_EQ(send(JobId{1}, false), ReturnCode::Ok) << "SES-13: whatever the job";
  EXPECT_EQ(received(), (Counts{1, 1, 1}));
}

// SES-12, SES-13: the same numbers in the other mode name another context, or none.
TEST_F(SharedName, Ses13_ClosedContext_OtherModeDoesNotAnswer) {
  node.ses.close_context(*absolute, kNow);
  EXPECT_EQ(send(kOwn, false), ReturnCode::BadPid);
  absolute = open(kOwn, false, absolute_sink);
  node.ses.close_context(*other, kNow);
  EXPECT_EQ(send(kOther, true), ReturnCode::BadJobId);
  post(*absolute);
  EXPECT_EQ(send(kOther, false), ReturnCode::Ok);
  EXPECT_EQ(received(), (Counts{0, 0, 1}));
}

// A node whose one context is absolute, with a region that names no job and one for kOther.
class AbsoluteNode : public ::testing::Test {
 protected:
  static ContextConfig config(bool own_job_only) {
    ContextConfig config = config_for(kOwn, false);
    config.own_job_only = own_job_only;
    return config;
  }
  void expose(Node& node) {
    ri::MemoryRegion region;
    region.base = memory.data();
    region.length = memory.size();
    region.access = ri::kRemoteRead | ri::kRemoteWrite;
    ASSERT_TRUE(node.regions.add_with_key(region, kSafeKey));
    region.job = kOther;
    for_other = node.regions.add(region).value();
  }
  static SesRequest request(Node& node, SesOpcode opcode, JobId job, Rkey key) {
    SesRequest request = node.request_for(opcode);
    request.job_id = job;
    request.match_bits = key.value;
    request.som = request.eom = true;
    request.request_length = 8;
    request.atomic.op = wire::AmoOp::Sum;
    request.atomic.datatype = wire::AmoDatatype::Uint64;
    return request;
  }
  ReturnCode access(Node& node, SesOpcode opcode, JobId job, Rkey key) {
    const Bytes payload = opcode == SesOpcode::Read ? Bytes{} : pattern(8);
    return code_of(node.take(request(node, opcode, job, key), payload));
  }
  // The same as a RUDI request.
  ReturnCode access_idempotent(Node& node, SesOpcode opcode, JobId job) {
    const SesRequest asked = request(node, opcode, job, kSafeKey);
    Bytes bytes(asked.encoded_bytes());
    asked.encode(bytes.data());
    const Bytes payload = opcode == SesOpcode::Read ? Bytes{} : pattern(8);
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    pds::RequestView view;
    view.source = address_of(1);
    view.mode = DeliveryMode::Rudi;
    view.next_hdr = asked.next_hdr;
    view.bytes = bytes;
    const ReturnCode code = code_of(node.ses.client().rx_req(view, kNow));
    for (pds::Message* response : node.delivery.responses) {
      response->owner->rx_rsp(*response, 0, {}, kNow);  // the NIC has it
    }
    node.delivery.responses.clear();
    return code;
  }

  static constexpr std::array kAccesses = {SesOpcode::Write, SesOpcode::Read, SesOpcode::Atomic,
                                           SesOpcode::FetchingAtomic};
  alignas(8) std::array<std::byte, 64> memory{};
  Rkey for_other;
};

TEST_F(AbsoluteNode, Ses17_ContextForItsJob_OthersReachNothing) {
  Node node(3, small_parameters(), config(true));
  expose(node);
  for (const SesOpcode opcode : kAccesses) {
    EXPECT_EQ(access(node, opcode, kOther, kSafeKey), ReturnCode::BadMkey);  // SES-119
  }
  for (const SesOpcode opcode : {SesOpcode::Write, SesOpcode::Read}) {
    EXPECT_EQ(access_idempotent(node, opcode, kOther), ReturnCode::BadMkey);
  }
  EXPECT_EQ(memory, decltype(memory){});
  EXPECT_TRUE(node.sink.accesses.empty());
  for (const SesOpcode opcode : kAccesses) {
    EXPECT_EQ(access(node, opcode, kOwn, kSafeKey), ReturnCode::Ok);
  }
  EXPECT_EQ(access_idempotent(node, SesOpcode::Read, kOwn), ReturnCode::Ok);
  EXPECT_NE(memory, decltype(memory){});
  EXPECT_TRUE(node.ses.idle());
}

TEST_F(AbsoluteNode, Ses16_RegionThatNamesAJobDecidesForItself) {
  for (const bool own_job_only : {false, true}) {
    Node node(3, small_parameters(), config(own_job_only));
    expose(node);
    for (const SesOpcode opcode : kAccesses) {
      EXPECT_EQ(access(node, opcode, kOther, for_other), ReturnCode::Ok);
      EXPECT_EQ(access(node, opcode, kOwn, for_other), ReturnCode::BadMkey);
    }
  }
}

TEST_F(AbsoluteNode, Ses16_OthersAreOpenToEveryJob) {
  Node node(3, small_parameters(), config(false));
  expose(node);
  for (const SesOpcode opcode : kAccesses) {
    EXPECT_EQ(access(node, opcode, kOther, kSafeKey), ReturnCode::Ok);
  }
  EXPECT_EQ(access_idempotent(node, SesOpcode::Write, kOther), ReturnCode::Ok);
}

}  // namespace
}  // namespace uet::ses::test
