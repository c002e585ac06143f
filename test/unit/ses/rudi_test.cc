// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which operations use RUDI, and a target that executes them as often as they come.
#include "unit/ses/harness.h"

namespace uet::ses::test {
namespace {

constexpr Rkey kSafeKey{std::uint64_t{1} << 63 | 0x1234};
constexpr Rkey kPlainKey{0x1234};

Parameters with_rudi() {
  Parameters parameters = small_parameters();
  parameters.rudi = true;
  return parameters;
}

class RudiTest : public ::testing::Test {
 protected:
  RudiTest() {
    for (const Rkey key : {kSafeKey, kPlainKey}) {
      ri::MemoryRegion region;
      region.base = memory.data();
      region.length = memory.size();
      region.access = ri::kRemoteRead | ri::kRemoteWrite;
      EXPECT_TRUE(b.regions.add_with_key(region, key));
    }
    peer = b.peer();
    peer.hpc = true;
  }
  RmaOp op(Rkey key, Kind kind = Kind::Write) {
    RmaOp rma;
    rma.kind = kind;
    rma.peer = &peer;
    rma.local = local;
    rma.key = key;
    return rma;
  }
  DeliveryMode mode_of_last() const { return a.delivery.destination.mode; }
  // A RUDI request for node b.
  pds::Response arrive(NextHdr next_hdr, const Bytes& bytes) {
    pds::RequestView view;
    view.source = address_of(1);
    view.mode = DeliveryMode::Rudi;
    view.next_hdr = next_hdr;
    view.psn = Psn{0xCAFE};
    view.bytes = bytes;
    return b.ses.client().rx_req(view, kNow);
  }
  pds::Response arrive(const SesRequest& request, const Bytes& payload = {}) {
    Bytes bytes(request.encoded_bytes());
    request.encode(bytes.data());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    return arrive(request.next_hdr, bytes);
  }
  SesRequest request_for(SesOpcode opcode, std::size_t length, Rkey key = kSafeKey) {
    SesRequest request = b.request_for(opcode);
    request.match_bits = key.value;
    request.request_length = static_cast<std::uint32_t>(length);
    return request;
  }
  // The one RUDI response with data that b has made, as PDS would send it.
  Sent response_of_b() {
    Sent sent;
    if (b.delivery.responses.size() != 1) {
      ADD_FAILURE() << b.delivery.responses.size() << " responses";
      return sent;
    }
    sent.message = b.delivery.responses.front();
    b.delivery.responses.pop_front();
    Packet head;
    head.reset();
    pds::PreparedPacket prepared;
    EXPECT_EQ(sent.message->owner->next_packet(*sent.message, head, prepared),
              pds::PacketPlan::Last);
    sent.next_hdr = prepared.next_hdr;
    sent.bytes.assign(head.head().begin(), head.head().end());
    for (const Slice& part : head.payload) {
      sent.bytes.insert(sent.bytes.end(), part.data, part.data + part.length);
    }
    sent.message->owner->rx_rsp(*sent.message, prepared.tag, {}, kNow);  // the NIC has it
    return sent;
  }
  void answer(const Sent& request, const Sent& response) {
    request.message->owner->rx_rsp(*request.message, request.tag,
                                   {response.next_hdr, response.bytes, Psn{0xCAFE}}, kNow);
  }
  void answer(const Sent& request, const pds::Response& response) { a.answered(request, response); }

  Node a{1, with_rudi()};
  Node b{2};
  Bytes memory = pattern(8 * kMtu, 3);
  Bytes buffer = pattern(2 * kMtu + 100, 9);
  std::vector<IoSlice> local{slice_of(buffer)};
  Peer peer;
};

// ---- when it is used ----------------------------------------------------------------------------

TEST_F(RudiTest, Ses137_OnlyIdempotentSafeKeysUseRudi) {
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op(kSafeKey), kNow));
  EXPECT_EQ(mode_of_last(), DeliveryMode::Rudi);
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op(kSafeKey, Kind::Read), kNow));
  EXPECT_EQ(mode_of_last(), DeliveryMode::Rudi);
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op(kPlainKey), kNow));
  EXPECT_EQ(mode_of_last(), DeliveryMode::Rud);
  a.ses.close_context(*a.context, kNow);
}

// SES-151
TEST_F(RudiTest, Ses138_DataWritesAndOtherProfiles_NoRudi) {
  RmaOp with_data = op(kSafeKey);
  with_data.data = 7;
  ASSERT_TRUE(a.ses.initiator().post(*a.context, with_data, kNow));
  EXPECT_EQ(mode_of_last(), DeliveryMode::Rud);
  peer.hpc = false;
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op(kSafeKey), kNow));
  EXPECT_EQ(mode_of_last(), DeliveryMode::Rud);
  a.ses.close_context(*a.context, kNow);
}

// Whatever the key promises: repeated it would count twice.
TEST_F(RudiTest, Ses95_Ses138_NeverForAtomics) {
  std::uint64_t value = 0;
  std::uint64_t old = 0;
  const std::vector<IoSlice> operand{{reinterpret_cast<std::byte*>(&value), sizeof value}};
  const std::vector<IoSlice> result{{reinterpret_cast<std::byte*>(&old), sizeof old}};
  for (const Kind form : {Kind::Atomic, Kind::FetchAtomic, Kind::CompareAtomic}) {
    AtomicOp atomic;
    atomic.peer = &peer;
    atomic.local = operand;
    atomic.key = kSafeKey;
    atomic.kind = form;
    atomic.op = form == Kind::CompareAtomic ? wire::AmoOp::Cswap : wire::AmoOp::Write;
    atomic.datatype = wire::AmoDatatype::Uint64;
    if (form != Kind::Atomic) atomic.results = result;
    if (form == Kind::CompareAtomic) atomic.compare = operand;
    a.delivery.destination.mode = DeliveryMode::Rudi;
    ASSERT_TRUE(a.ses.initiator().post(*a.context, atomic, kNow));
    EXPECT_EQ(mode_of_last(), DeliveryMode::Rud);
  }
  a.ses.close_context(*a.context, kNow);
}

TEST_F(RudiTest, NotUnlessItIsSwitchedOnAndNotWhereOrderIsKept) {
  Node off{3};
  ASSERT_TRUE(off.ses.initiator().post(*off.context, op(kSafeKey), kNow));
  EXPECT_EQ(off.delivery.destination.mode, DeliveryMode::Rud);
  off.ses.close_context(*off.context, kNow);
  ContextConfig ordered = small_config();
  ordered.mode = DeliveryMode::Rod;
  Node rod{4, with_rudi(), ordered};
  ASSERT_TRUE(rod.ses.initiator().post(*rod.context, op(kSafeKey), kNow));
  EXPECT_EQ(rod.delivery.destination.mode, DeliveryMode::Rod);
  rod.ses.close_context(*rod.context, kNow);
}

// ---- both ends ----------------------------------------------------------------------------------

TEST_F(RudiTest, Pds184_AWriteIsPlacedAsOftenAsItsPacketsCome) {
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op(kSafeKey), kNow));
  const std::vector<Sent> sent = a.packets();
  ASSERT_EQ(sent.size(), 3u);
  for (const std::size_t i : {2u, 0u, 0u, 1u, 2u}) {
    const pds::Response response = arrive(sent[i].next_hdr, sent[i].bytes);
    EXPECT_EQ(code_of(response), ReturnCode::Ok);
  }
  EXPECT_TRUE(std::equal(buffer.begin(), buffer.end(), memory.begin()));
  EXPECT_TRUE(b.sink.all.empty());
  EXPECT_TRUE(b.sink.accesses.empty());
  EXPECT_TRUE(b.ses.idle());
  for (const Sent& packet : sent) answer(packet, arrive(packet.next_hdr, packet.bytes));
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Ok);
  EXPECT_TRUE(a.ses.idle());
}

TEST_F(RudiTest, Pds189_ReadDataComeInsideTheResponses) {
  const Bytes expected(memory.begin(), memory.begin() + static_cast<std::ptrdiff_t>(buffer.size()));
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op(kSafeKey, Kind::Read), kNow));
  std::vector<Sent> sent = a.packets();
  ASSERT_EQ(sent.size(), 3u);
  std::swap(sent[0], sent[2]);
  for (const Sent& packet : sent) {
    EXPECT_FALSE(arrive(packet.next_hdr, packet.bytes).nack.has_value());
    answer(packet, response_of_b());
  }
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Ok);
  EXPECT_EQ(buffer, expected);
  EXPECT_TRUE(a.ses.idle());
  EXPECT_TRUE(b.ses.idle());
  EXPECT_TRUE(b.sink.accesses.empty());
}

TEST_F(RudiTest, ReadsStopAtTheLimitOfOutstandingBytes) {
  Bytes large(8 * kMtu);
  local = {slice_of(large)};
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op(kSafeKey, Kind::Read), kNow));
  std::vector<Sent> sent = a.packets();
  EXPECT_EQ(sent.size(), 4u);
  const int kicks = a.delivery.kicks;
  arrive(sent[0].next_hdr, sent[0].bytes);
  answer(sent[0], response_of_b());
  EXPECT_EQ(a.delivery.kicks, kicks + 1);
  EXPECT_EQ(a.packets().size(), 1u);
  a.ses.close_context(*a.context, kNow);
}

// ---- the target refuses -------------------------------------------------------------------------

TEST_F(RudiTest, Idea11_Ses139_NoPromise_IsAViolation) {
  const Bytes payload = pattern(16);
  const Bytes before = memory;
  EXPECT_EQ(code_of(arrive(request_for(SesOpcode::Write, 16, kPlainKey), payload)),
            ReturnCode::OpViolation);
  EXPECT_EQ(code_of(arrive(request_for(SesOpcode::Read, 16, kPlainKey))), ReturnCode::OpViolation);
  EXPECT_EQ(memory, before);
}

// WIRE 3.4: a small header carries no bit 63; the region knows whether it has it.
TEST_F(RudiTest, Ses139_SmallHeader_OnlyWithThePromise) {
  ri::MemoryRegion region;
  region.base = memory.data();
  region.length = memory.size();
  region.access = ri::kRemoteWrite;
  SesRequest request = b.request_for(SesOpcode::Write);
  request.next_hdr = NextHdr::RequestSmall;
  request.resource_index = ResourceIndex{0x77};
  request.request_length = 16;
  for (const bool safe : {false, true}) {
    const Rkey key{std::uint64_t{safe ? 3U : 1U} << 62 | 0x77};
    ASSERT_TRUE(b.regions.add_with_key(region, key));
    EXPECT_EQ(code_of(arrive(request, pattern(16))),
              safe ? ReturnCode::Ok : ReturnCode::OpViolation);
    ASSERT_TRUE(b.regions.remove(key));
  }
  EXPECT_TRUE(std::equal(memory.begin(), memory.begin() + 16, pattern(16).begin()));
}

TEST_F(RudiTest, Ses95_OnlyWritesAndReadsUseRudi) {
  for (unsigned opcode = 0; opcode < 64; ++opcode) {
    const auto code = static_cast<SesOpcode>(opcode);
    if (code == SesOpcode::Write || code == SesOpcode::Read) continue;
    const Bytes payload = pattern(200);
    EXPECT_EQ(code_of(arrive(request_for(code, 16), payload)), ReturnCode::UnsupportedOp) << opcode;
  }
  EXPECT_TRUE(b.ses.idle());
}

TEST_F(RudiTest, Ses115_TheOtherChecksHoldAsWell) {
  const Bytes payload = pattern(16);
  const SesRequest good = request_for(SesOpcode::Write, 16);
  SesRequest bad = good;
  bad.resource_index = ResourceIndex{99};
  EXPECT_EQ(code_of(arrive(bad, payload)), ReturnCode::BadIndex);
  bad = good;
  bad.ri_generation = RiGeneration{9};
  EXPECT_EQ(code_of(arrive(bad, payload)), ReturnCode::BadGeneration);
  bad = good;
  bad.match_bits ^= 1;
  EXPECT_EQ(code_of(arrive(bad, payload)), ReturnCode::BadMkey);
  bad.match_bits = 0xDEAD;  // nor does it promise anything: 12a comes before 12d
  EXPECT_EQ(code_of(arrive(bad, payload)), ReturnCode::BadMkey);
  bad = request_for(SesOpcode::Write, 16, kPlainKey);
  bad.buffer_offset = memory.size();  // 12d comes before 12e
  EXPECT_EQ(code_of(arrive(bad, payload)), ReturnCode::OpViolation);
  bad = good;
  bad.buffer_offset = memory.size() - 15;
  EXPECT_EQ(code_of(arrive(bad, payload)), ReturnCode::BadAddr);
  bad = good;
  bad.ie = true;  // SES-112
  EXPECT_EQ(code_of(arrive(bad, payload)), ReturnCode::InitiatorErr);
  bad = request_for(SesOpcode::Read, 16);
  bad.ie = true;
  EXPECT_EQ(code_of(arrive(bad)), ReturnCode::InitiatorErr);
  bad = good;
  bad.hd = true;
  EXPECT_EQ(code_of(arrive(bad, payload)), ReturnCode::OpViolation);
  bad = good;
  bad.som = false;
  bad.message_offset = 8;
  bad.payload_length = 16;
  EXPECT_EQ(code_of(arrive(bad, payload)), ReturnCode::OpViolation);  // behind its own end
  EXPECT_EQ(code_of(arrive(NextHdr::RequestStd, Bytes(10))), ReturnCode::Uncor);
  EXPECT_TRUE(b.ses.idle());
  EXPECT_EQ(code_of(arrive(good, payload)), ReturnCode::Ok);
}

TEST_F(RudiTest, ReadWithoutMemoryForItsDataIsRefusedForNow) {
  b.delivery.refuse = true;
  EXPECT_EQ(arrive(request_for(SesOpcode::Read, 16)).nack, pds::NackCode::NoResource);
  EXPECT_TRUE(b.ses.idle());
}

// ---- the initiator gives up ---------------------------------------------------------------------

TEST_F(RudiTest, AnErrorEndsTheWholeOperationAtOnce) {
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op(kSafeKey), kNow));
  const Sent first = a.packet().value();
  SesRequest refused = first.request();
  refused.match_bits ^= 1;
  answer(first,
         arrive(refused, Bytes(first.request().payload.begin(), first.request().payload.end())));
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].return_code, ReturnCode::BadMkey);
  EXPECT_TRUE(a.delivery.backlog.empty());  // no MSG_ERROR: the target has no state of it
  EXPECT_TRUE(a.ses.idle());
}

TEST_F(RudiTest, AReadAnsweredWithoutItsDataFails) {
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op(kSafeKey, Kind::Read), kNow));
  const std::vector<Sent> sent = a.packets();
  pds::Response plain;
  plain.next_hdr = NextHdr::None;
  answer(sent[1], plain);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].return_code, ReturnCode::Uncor);
}

TEST_F(RudiTest, ClosingTheContextWithdrawsOutstandingReads) {
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op(kSafeKey, Kind::Read), kNow));
  a.delivery.backlog.push_back(a.packets().front().message);  // PDS still has its packets
  a.ses.close_context(*a.context, kNow);
  EXPECT_TRUE(a.ses.idle());
  EXPECT_TRUE(a.delivery.backlog.empty());
  EXPECT_EQ(a.delivery.aborts, 0);
}

}  // namespace
}  // namespace uet::ses::test
