// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Posting atomics, their one packet, and the old values that come back.
#include "ses/atomic_request.h"
#include "unit/ses/atomic_harness.h"

namespace uet::ses::test {
namespace {

using wire::AmoDatatype;
using wire::AmoOp;

class InitiatorAtomicTest : public AtomicNodes {
 protected:
  Error refused(const AtomicOp& op) {
    const auto posted = a.ses.initiator().post(*a.context, op, kNow);
    EXPECT_FALSE(posted.ok());
    EXPECT_TRUE(a.ses.idle()) << "nothing stays behind";
    return posted.error();
  }
};

TEST_F(InitiatorAtomicTest, Ses90_BaseAtomic_OnePacketBigEndian) {
  std::uint64_t values[] = {1, 0x0102030405060708};
  AtomicOp add = op(Kind::Atomic, AmoOp::Sum, {slice(values, 1), slice(values + 1, 1)});
  const std::vector<IoSlice> local = {slice(values, 1), slice(values + 1, 1)};
  add.local = local;
  add.remote_offset = 24;
  ASSERT_TRUE(a.ses.initiator().post(*a.context, add, kNow));
  values[0] = values[1] = 0;  // copied when posted
  const auto sent = a.packets();
  ASSERT_EQ(sent.size(), 1u);
  const SesRequest request = sent[0].request();
  EXPECT_EQ(request.opcode, SesOpcode::Atomic);
  EXPECT_TRUE(request.som && request.eom);
  EXPECT_EQ(request.buffer_offset, 24u);
  EXPECT_EQ(request.match_bits, key.value);
  EXPECT_EQ(request.request_length, 16u);
  EXPECT_EQ(request.atomic.op, AmoOp::Sum);
  EXPECT_EQ(request.atomic.datatype, AmoDatatype::Uint64);
  EXPECT_EQ(request.atomic.semantic_control, wire::kAtomicCpuCoherent);
  ASSERT_EQ(request.payload.size(), 16u);
  EXPECT_EQ(request.payload[7], std::byte{1});
  EXPECT_EQ(request.payload[8], std::byte{1});
  EXPECT_EQ(request.payload[15], std::byte{8});
  deliver(a, b, sent[0]);
  EXPECT_EQ(cells[3], 1u);
  EXPECT_EQ(cells[4], 0x0102030405060708u);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].kind, Kind::Atomic);
  EXPECT_EQ(a.sink.all[0].status, Status::Ok);
  expect_idle();
}

TEST_F(InitiatorAtomicTest, FetchPutsTheOldValuesIntoTheResultSlices) {
  cells[0] = 7;
  cells[1] = 8;
  cells[2] = 9;
  std::uint64_t add[] = {10, 10, 10};
  std::uint64_t old[3] = {};
  const std::vector<IoSlice> local = {slice(add, 3)};
  const std::vector<IoSlice> results = {slice(old, 1), slice(old + 1, 2)};
  ASSERT_TRUE(
      a.ses.initiator().post(*a.context, op(Kind::FetchAtomic, AmoOp::Sum, local, results), kNow));
  const auto sent = a.packets();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].request().opcode, SesOpcode::FetchingAtomic);
  EXPECT_EQ(a.delivery.locks, 1) << "the PDC stays until the values are here (SES-93)";
  deliver(a, b, sent[0]);
  EXPECT_EQ(old[0], 7u);
  EXPECT_EQ(old[1], 8u);
  EXPECT_EQ(old[2], 9u);
  EXPECT_EQ(cells[2], 19u);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].kind, Kind::FetchAtomic);
  expect_idle();
}

TEST_F(InitiatorAtomicTest, Ses97_ReadNeedsNoOperands) {
  cells[0] = 41;
  std::uint64_t old = 0;
  const std::vector<IoSlice> results = {slice(&old, 1)};
  ASSERT_TRUE(
      a.ses.initiator().post(*a.context, op(Kind::FetchAtomic, AmoOp::Read, {}, results), kNow));
  const auto sent = a.packets();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].request().opcode, SesOpcode::FetchingAtomic);
  EXPECT_EQ(sent[0].request().atomic.op, AmoOp::Read);
  deliver(a, b, sent[0]);
  EXPECT_EQ(old, 41u);
  EXPECT_EQ(cells[0], 41u);
  expect_idle();
}

TEST_F(InitiatorAtomicTest, Ses97_WriteBringsNothingBack) {
  cells[0] = 41;
  std::uint64_t value = 42;
  const std::vector<IoSlice> local = {slice(&value, 1)};
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op(Kind::Atomic, AmoOp::Write, local), kNow));
  const auto sent = a.packets();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].request().opcode, SesOpcode::Atomic);
  EXPECT_EQ(sent[0].request().atomic.op, AmoOp::Write);
  EXPECT_EQ(header_of(deliver(a, b, sent[0])).opcode, wire::ResponseOpcode::DefaultResponse);
  EXPECT_EQ(cells[0], 42u);
  EXPECT_EQ(a.sink.all.size(), 1u);
  expect_idle();
}

TEST_F(InitiatorAtomicTest, CompareAndSwapCarriesItsOperandsInTheHeader) {
  cells[1] = 5;
  std::uint64_t swap = 9;
  std::uint64_t compare = 5;
  std::uint64_t old = 0;
  const std::vector<IoSlice> local = {slice(&swap, 1)};
  const std::vector<IoSlice> results = {slice(&old, 1)};
  const std::vector<IoSlice> comparison = {slice(&compare, 1)};
  AtomicOp cswap = op(Kind::CompareAtomic, AmoOp::Cswap, local, results, comparison);
  cswap.remote_offset = 8;
  ASSERT_TRUE(a.ses.initiator().post(*a.context, cswap, kNow));
  const auto sent = a.packets();
  ASSERT_EQ(sent.size(), 1u);
  const SesRequest request = sent[0].request();
  EXPECT_EQ(request.request_length, 32u);
  EXPECT_TRUE(request.payload.empty());
  EXPECT_EQ(request.atomic.compare_value, (wire::AtomicOperand{.high = 0, .low = 5}));
  EXPECT_EQ(request.atomic.swap_value, (wire::AtomicOperand{.high = 0, .low = 9}));
  deliver(a, b, sent[0]);
  EXPECT_EQ(cells[1], 9u);
  EXPECT_EQ(old, 5u);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].kind, Kind::CompareAtomic);
  expect_idle();
}

// More than an ACK holds comes by the return direction (PDS-194, PDS-195), before or after the ACK.
TEST_F(InitiatorAtomicTest, Pds199_ManyResultsMayComeBeforeTheAnswer) {
  std::array<std::uint64_t, 100> add;
  add.fill(3);
  std::array<std::uint64_t, 100> old{};
  cells.fill(11);
  const std::vector<IoSlice> local = {slice(add.data(), add.size())};
  const std::vector<IoSlice> results = {slice(old.data(), old.size())};
  for (const bool data_first : {false, true}) {
    a.sink.all.clear();
    cells.fill(11);
    old.fill(0);
    ASSERT_TRUE(a.ses.initiator().post(*a.context,
                                       op(Kind::FetchAtomic, AmoOp::Sum, local, results), kNow));
    const auto sent = a.packets();
    const pds::Response response = b.take(sent[0].next_hdr, sent[0].bytes, 1);
    EXPECT_FALSE(response.guaranteed);
    const auto back = b.packets();
    ASSERT_EQ(back.size(), 1u);
    if (!data_first) a.answered(sent[0], response);
    EXPECT_TRUE(a.sink.all.empty());
    deliver(b, a, back[0]);
    EXPECT_EQ(a.sink.all.size(), data_first ? 0u : 1u);
    if (data_first) a.answered(sent[0], response);
    ASSERT_EQ(a.sink.all.size(), 1u);
    EXPECT_EQ(a.sink.all[0].status, Status::Ok);
    EXPECT_EQ(old[99], 11u);
    EXPECT_EQ(cells[99], 14u);
    expect_idle();
  }
}

TEST_F(InitiatorAtomicTest, RefusedFetchCompletesOnceWithTheReturnCode) {
  std::uint64_t old = 1234;
  const std::vector<IoSlice> results = {slice(&old, 1)};
  AtomicOp read = op(Kind::FetchAtomic, AmoOp::Read, {}, results);
  read.key = Rkey{key.value + 1};
  ASSERT_TRUE(a.ses.initiator().post(*a.context, read, kNow));
  exchange();
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].return_code, ReturnCode::BadMkey);
  EXPECT_EQ(old, 1234u);
  expect_idle();
}

TEST_F(InitiatorAtomicTest, BrokenPdcEndsAFetch) {
  std::uint64_t old = 0;
  const std::vector<IoSlice> results = {slice(&old, 1)};
  ASSERT_TRUE(
      a.ses.initiator().post(*a.context, op(Kind::FetchAtomic, AmoOp::Read, {}, results), kNow));
  const auto sent = a.packets();
  sent[0].message->owner->pds_error(*sent[0].message, sent[0].tag, pds::PdsError::RtoExhausted,
                                    kNow);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::PdsError);
  expect_idle();
}

TEST_F(InitiatorAtomicTest, ResultsOfAnotherLengthAreNobodys) {
  std::uint64_t old = 5;
  const std::vector<IoSlice> results = {slice(&old, 1)};
  ASSERT_TRUE(
      a.ses.initiator().post(*a.context, op(Kind::FetchAtomic, AmoOp::Read, {}, results), kNow));
  const auto sent = a.packets();
  wire::SesResponseHeader header;
  header.next_hdr = NextHdr::ResponseData;
  header.opcode = wire::ResponseOpcode::ResponseWData;
  header.return_code = ReturnCode::Ok;
  header.read_request_message_id = sent[0].request().message_id;
  header.payload_length = 4;
  Bytes bytes(sizeof(wire::SesResponseData) + 4);
  header.encode(bytes.data());
  a.take(NextHdr::ResponseData, bytes, 2);
  EXPECT_EQ(old, 5u);
  EXPECT_EQ(a.ses.counters().stray_responses, 1u);
  deliver(a, b, sent[0]);
  EXPECT_EQ(a.sink.all.size(), 1u);
  expect_idle();
}

TEST_F(InitiatorAtomicTest, ImpossibleArgumentsAreRefused) {
  std::uint64_t values[2] = {};
  std::uint64_t old[2] = {};
  const std::vector<IoSlice> one = {slice(values, 1)};
  const std::vector<IoSlice> two = {slice(values, 2)};
  const std::vector<IoSlice> part = {{reinterpret_cast<std::byte*>(values), 12}};
  const std::vector<IoSlice> one_old = {slice(old, 1)};
  const std::vector<IoSlice> two_old = {slice(old, 2)};
  EXPECT_EQ(refused(op(Kind::Atomic, AmoOp::Sum, {})), Error::Invalid) << "no element";
  EXPECT_EQ(refused(op(Kind::Atomic, AmoOp::Sum, part)), Error::Invalid) << "half an element";
  EXPECT_EQ(refused(op(Kind::Atomic, AmoOp::Read, one)), Error::Invalid) << "nothing comes back";
  EXPECT_EQ(refused(op(Kind::FetchAtomic, AmoOp::Sum, two, one_old)), Error::Invalid);
  EXPECT_EQ(refused(op(Kind::CompareAtomic, AmoOp::Cswap, one, one_old, two)), Error::Invalid);
  EXPECT_EQ(refused(op(Kind::CompareAtomic, AmoOp::Cswap, two, two_old, two)), Error::TooLong)
      << "the extension holds one element";
  AtomicOp with_data = op(Kind::Atomic, AmoOp::Sum, one);
  with_data.data = 1;
  EXPECT_EQ(refused(with_data), Error::Invalid);
  std::vector<std::uint64_t> many(a.ses.max_atomic_bytes() / 8 + 1);
  const std::vector<IoSlice> too_many = {slice(many.data(), many.size())};
  EXPECT_EQ(refused(op(Kind::Atomic, AmoOp::Sum, too_many)), Error::TooLong);
  const std::vector<IoSlice> most = {slice(many.data(), many.size() - 1)};
  EXPECT_TRUE(a.ses.initiator().post(*a.context, op(Kind::Atomic, AmoOp::Sum, most), kNow));
  exchange();
  expect_idle();
}

TEST_F(InitiatorAtomicTest, OutstandingResultsCountAgainstTheReadLimit) {
  std::vector<std::uint64_t> old(kMtu / 8);
  const std::vector<IoSlice> results = {slice(old.data(), old.size())};
  for (int i = 0; i < 6; ++i) {  // the limit is 4 packets
    ASSERT_TRUE(
        a.ses.initiator().post(*a.context, op(Kind::FetchAtomic, AmoOp::Read, {}, results), kNow));
  }
  EXPECT_EQ(a.packets().size(), 4u);
  for (int round = 0; round < 6; ++round) a.ses.client().pdc_closed(kPdc, {}, kNow);
}

}  // namespace
}  // namespace uet::ses::test
