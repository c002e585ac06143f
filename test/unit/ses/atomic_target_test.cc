// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ATOMIC and FETCHING_ATOMIC at the target.
#include <bit>
#include <limits>

#include "ses/atomic_target.h"
#include "unit/ses/atomic_harness.h"

namespace uet::ses::test {
namespace {

using wire::AmoDatatype;
using wire::AmoOp;

struct Observer final : ri::AccessObserver {
  void accessed(std::uint8_t access, std::uint64_t) noexcept override { all.push_back(access); }
  std::vector<std::uint8_t> all;
};

class TargetAtomicTest : public AtomicNodes {
 protected:
  // `count` operands of `value`.
  SesRequest request(SesOpcode opcode, AmoOp what, std::size_t count = 1) {
    SesRequest request = b.request_for(opcode);
    request.match_bits = key.value;
    request.atomic.op = what;
    request.atomic.datatype = AmoDatatype::Uint64;
    request.request_length = static_cast<std::uint32_t>(8 * count);
    return request;
  }
  SesRequest swap(std::uint64_t compare, std::uint64_t value) {
    SesRequest request = this->request(SesOpcode::FetchingAtomic, AmoOp::Cswap);
    request.request_length = 32;
    request.atomic.compare_value.low = compare;
    request.atomic.swap_value.low = value;
    return request;
  }
  static Bytes operands(std::uint64_t value, std::size_t count = 1) {
    Bytes bytes(8 * count);
    for (std::size_t i = 0; i < count; ++i) {
      wire::store(bytes.data() + 8 * i, wire::be64{value});
    }
    return bytes;
  }
  static std::uint64_t fetched(const pds::Response& response) {
    const auto header = header_of(response);
    EXPECT_EQ(header.next_hdr, NextHdr::ResponseData);
    EXPECT_EQ(header.payload_length, 8u);
    return wire::load<wire::be64>(header.payload);
  }
  // Everything as if nothing had happened.
  void expect_untouched() {
    EXPECT_EQ(cells, (std::array<std::uint64_t, kCells>{}));
    EXPECT_TRUE(b.sink.accesses.empty());
    EXPECT_TRUE(b.ses.idle());
  }
};

TEST_F(TargetAtomicTest, RegionsOfADeviceHaveNoAtomics) {
  FakeDevice device;
  Bytes memory(64);
  key = b.expose(memory, ri::kRemoteRead | ri::kRemoteWrite, &device);
  const auto response = b.take(request(SesOpcode::Atomic, AmoOp::Sum), operands(5));
  EXPECT_EQ(code_of(response), ReturnCode::AmoUnsupportedOp);
  EXPECT_EQ(memory, Bytes(64));
  expect_untouched();
}

// Memory of another process: bytes come and go by copies.
TEST_F(TargetAtomicTest, MemoryThatExecutesThemIsCopied) {
  struct Copied final : DeviceMemory {
    void place(std::byte* there, std::span<const std::byte> bytes) noexcept override {
      std::copy(bytes.begin(), bytes.end(), there);
    }
    void fetch(std::span<std::byte> bytes, const std::byte* there) noexcept override {
      std::copy_n(there, bytes.size(), bytes.begin());
    }
    bool executes_atomics() const noexcept override { return true; }
  } device;
  Bytes memory(64);
  memory[0] = std::byte{7};
  key = b.expose(memory, ri::kRemoteRead | ri::kRemoteWrite, &device);
  EXPECT_EQ(fetched(b.take(request(SesOpcode::FetchingAtomic, AmoOp::Sum), operands(5))), 7u);
  EXPECT_EQ(memory[0], std::byte{12});
  EXPECT_EQ(memory[8], std::byte{0});
}

TEST_F(TargetAtomicTest, Ses94_BaseAtomicNeedsNoStoredResponse) {
  const auto response = b.take(request(SesOpcode::Atomic, AmoOp::Sum), operands(5));
  EXPECT_EQ(header_of(response).opcode, wire::ResponseOpcode::DefaultResponse);
  EXPECT_FALSE(response.guaranteed);
  EXPECT_EQ(cells[0], 5u);
  ASSERT_EQ(b.sink.accesses.size(), 1u);
  EXPECT_EQ(b.sink.accesses[0], std::make_pair(Kind::Atomic, std::uint64_t{8}));
  EXPECT_TRUE(b.sink.all.empty());
}

TEST_F(TargetAtomicTest, Ses93_FetchedValue_IsGuaranteedResponse) {
  cells[2] = 40;
  SesRequest fetch = request(SesOpcode::FetchingAtomic, AmoOp::Sum);
  fetch.buffer_offset = 16;
  const auto response = b.take(fetch, operands(2));
  EXPECT_TRUE(response.guaranteed);  // PDS-111: results of fetching atomics
  EXPECT_EQ(fetched(response), 40u);
  EXPECT_EQ(header_of(response).read_request_message_id, fetch.message_id);
  EXPECT_EQ(cells[2], 42u);
  EXPECT_EQ(b.sink.accesses[0].first, Kind::FetchAtomic);
}

// PDS-194: nothing of what does not fit is in the ACK.
TEST_F(TargetAtomicTest, Pds204_FetchInTheAckNamesItsRequest) {
  const SesRequest fetch = request(SesOpcode::FetchingAtomic, AmoOp::Sum);
  const pds::Response response = b.take(fetch, operands(1));
  EXPECT_TRUE(response.guaranteed);
  EXPECT_EQ(response.request.message, fetch.message_id);
  EXPECT_EQ(response.request.job, fetch.job_id);
}

TEST_F(TargetAtomicTest, AckCarriesResultsThatFitAndNoOthers) {
  constexpr std::size_t kFits = (pds::Response::kMaxBytes - sizeof(wire::SesResponseData)) / 8;
  const auto rides =
      b.take(request(SesOpcode::FetchingAtomic, AmoOp::Sum, kFits), operands(1, kFits));
  EXPECT_TRUE(rides.guaranteed);
  EXPECT_TRUE(b.delivery.backlog.empty());
  const auto accepted =
      b.take(request(SesOpcode::FetchingAtomic, AmoOp::Sum, kFits + 1), operands(1, kFits + 1));
  EXPECT_FALSE(accepted.guaranteed);
  EXPECT_EQ(header_of(accepted).opcode, wire::ResponseOpcode::DefaultResponse);
  const auto back = b.packets();
  ASSERT_EQ(back.size(), 1u);
  wire::SesResponseHeader header;
  ASSERT_TRUE(wire::SesResponseHeader::decode(back[0].next_hdr, back[0].bytes, header));
  EXPECT_EQ(header.payload_length, 8 * (kFits + 1));
  EXPECT_EQ(wire::load<wire::be64>(header.payload).get(), 1u);
  EXPECT_EQ(cells[0], 2u);
  back[0].message->owner->rx_rsp(*back[0].message, back[0].tag, {}, kNow);
  EXPECT_TRUE(b.ses.idle());
}

TEST_F(TargetAtomicTest, AtomicWithoutAStateForItsAnswerIsNotExecuted) {
  Parameters parameters = small_parameters();
  parameters.return_messages = 1;
  Node node(3, parameters);
  const Rkey theirs = node.regions.add(region).value();
  SesRequest fetch = node.request_for(SesOpcode::FetchingAtomic);
  fetch.match_bits = theirs.value;
  fetch.atomic.op = AmoOp::Sum;
  fetch.atomic.datatype = AmoDatatype::Uint64;
  fetch.request_length = 800;
  EXPECT_EQ(code_of(node.take(fetch, operands(1, 100))), ReturnCode::Ok);
  EXPECT_EQ(node.take(fetch, operands(1, 100)).nack, pds::NackCode::NoResource);
  EXPECT_EQ(cells[0], 1u) << "a refused packet comes again; it must not count twice";
  const auto back = node.packets();
  back[0].message->owner->rx_rsp(*back[0].message, back[0].tag, {}, kNow);
  EXPECT_EQ(code_of(node.take(fetch, operands(1, 100))), ReturnCode::Ok);
  EXPECT_EQ(cells[0], 2u);
  node.delivery.pdc_gone = true;
  const auto gone = node.packets();
  gone[0].message->owner->rx_rsp(*gone[0].message, 0, {}, kNow);
  EXPECT_EQ(node.take(fetch, operands(1, 100)).nack, pds::NackCode::NoResource);
  EXPECT_EQ(cells[0], 2u);
  EXPECT_TRUE(node.ses.idle());
}

TEST_F(TargetAtomicTest, CompareAndSwapOfTheHeader) {
  cells[0] = 7;
  EXPECT_EQ(fetched(b.take(swap(6, 9))), 7u);
  EXPECT_EQ(cells[0], 7u);
  const auto swapped = b.take(swap(7, 9));
  EXPECT_EQ(fetched(swapped), 7u);
  EXPECT_EQ(header_of(swapped).modified_length, 32u) << "its request_length (WIRE 3.9)";
  EXPECT_EQ(cells[0], 9u);
  EXPECT_EQ(b.sink.accesses[1].first, Kind::CompareAtomic);
  SesRequest silent = swap(9, 10);
  silent.opcode = SesOpcode::Atomic;  // nothing comes back
  EXPECT_EQ(header_of(b.take(silent)).opcode, wire::ResponseOpcode::DefaultResponse);
  EXPECT_EQ(cells[0], 10u);
}

TEST_F(TargetAtomicTest, CompareAndSwapAtRegionEnd_CountsOneElement) {
  SesRequest last = swap(0, 1);
  last.buffer_offset = sizeof cells - 8;
  EXPECT_EQ(fetched(b.take(last)), 0u);
  EXPECT_EQ(cells.back(), 1u);
}

TEST_F(TargetAtomicTest, ReadWithOrWithoutOperandBytes) {
  cells[0] = 77;
  EXPECT_EQ(fetched(b.take(request(SesOpcode::FetchingAtomic, AmoOp::Read))), 77u);
  EXPECT_EQ(fetched(b.take(request(SesOpcode::FetchingAtomic, AmoOp::Read), operands(0))), 77u);
  EXPECT_EQ(cells[0], 77u);
}

TEST_F(TargetAtomicTest, MediumAndSmallHeadersAreAnsweredByPsn) {
  cells[0] = 3;
  SesRequest medium = request(SesOpcode::FetchingAtomic, AmoOp::Sum);
  medium.next_hdr = NextHdr::RequestMedium;
  const auto response = b.take(medium, operands(1));
  EXPECT_EQ(response.next_hdr, NextHdr::ResponseDataSmall);
  EXPECT_EQ(header_of(response).original_request_psn, Psn{1});
  EXPECT_EQ(wire::load<wire::be64>(header_of(response).payload).get(), 3u);
  EXPECT_EQ(cells[0], 4u);
}

TEST_F(TargetAtomicTest, Ses91_RegionMustAllowReadingAndWriting) {
  for (const std::uint8_t access : {ri::kRemoteRead, ri::kRemoteWrite}) {
    b.regions.find(key)->access = access;
    for (const AmoOp what : {AmoOp::Sum, AmoOp::Read, AmoOp::Write}) {
      EXPECT_EQ(code_of(b.take(request(SesOpcode::FetchingAtomic, what), operands(1))),
                ReturnCode::OpViolation);
    }
  }
  expect_untouched();
}

TEST_F(TargetAtomicTest, Ses92_SizeAndAlignment) {
  SesRequest atomic = request(SesOpcode::Atomic, AmoOp::Sum);
  atomic.request_length = 12;
  EXPECT_EQ(code_of(b.take(atomic, Bytes(12))), ReturnCode::AmoUnsupportedSize);
  atomic.request_length = 0;
  EXPECT_EQ(code_of(b.take(atomic)), ReturnCode::AmoUnsupportedSize);
  atomic.request_length = 8;
  atomic.buffer_offset = 4;
  EXPECT_EQ(code_of(b.take(atomic, operands(1))), ReturnCode::AmoUnaligned);
  SesRequest read = request(SesOpcode::FetchingAtomic, AmoOp::Read);
  read.request_length = 2 * kMtu;
  EXPECT_EQ(code_of(b.take(read)), ReturnCode::AmoUnsupportedSize) << "not one packet of data";
  expect_untouched();
}

TEST_F(TargetAtomicTest, Ses101_PairsThatAreNone) {
  SesRequest atomic = request(SesOpcode::Atomic, AmoOp::Bor);
  atomic.atomic.datatype = AmoDatatype::Double;
  EXPECT_EQ(code_of(b.take(atomic, operands(1))), ReturnCode::AmoUnsupportedOp);
  atomic.atomic.op = AmoOp::Inval;
  EXPECT_EQ(code_of(b.take(atomic, operands(1))), ReturnCode::AmoUnsupportedOp);
  atomic.atomic.op = AmoOp::Sum;
  atomic.atomic.datatype = static_cast<AmoDatatype>(0x40);
  EXPECT_EQ(code_of(b.take(atomic, operands(1))), ReturnCode::AmoUnsupportedDt);
  EXPECT_EQ(code_of(b.take(request(SesOpcode::Atomic, AmoOp::Read), operands(1))),
            ReturnCode::AmoUnsupportedOp);
  expect_untouched();
}

// NaN, overflow, underflow and inexact results are results like any other.
TEST_F(TargetAtomicTest, Ses102_FloatingPointConditionsAreNotTold) {
  constexpr double kMax = std::numeric_limits<double>::max();
  constexpr double kMin = std::numeric_limits<double>::denorm_min();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const struct {
    AmoOp op;
    double there, operand, result;
  } rows[] = {{AmoOp::Sum, kMax, kMax, kInfinity},
              {AmoOp::Prod, kMin, 0.25, 0},
              {AmoOp::Sum, 1, kMin, 1},
              {AmoOp::Sum, kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()}};
  for (const auto& row : rows) {
    cells[0] = std::bit_cast<std::uint64_t>(row.there);
    SesRequest atomic = request(SesOpcode::Atomic, row.op);
    atomic.atomic.datatype = AmoDatatype::Double;
    const auto response = b.take(atomic, operands(std::bit_cast<std::uint64_t>(row.operand)));
    EXPECT_EQ(code_of(response), ReturnCode::Ok);
    EXPECT_FALSE(response.guaranteed);
    const auto result = std::bit_cast<double>(cells[0]);
    EXPECT_TRUE(result == row.result || (result != result && row.result != row.result));
  }
}

TEST_F(TargetAtomicTest, Ses90_OnePacketWithoutImmediateData) {
  SesRequest atomic = request(SesOpcode::Atomic, AmoOp::Sum);
  atomic.hd = true;
  EXPECT_EQ(code_of(b.take(atomic, operands(1))), ReturnCode::OpViolation);
  atomic.hd = false;
  atomic.eom = false;
  EXPECT_EQ(code_of(b.take(atomic, operands(1))), ReturnCode::OpViolation);
  expect_untouched();
}

TEST_F(TargetAtomicTest, Idea3_WrongKeyOrBoundsTouchNothing) {
  SesRequest atomic = request(SesOpcode::Atomic, AmoOp::Sum, 2);
  atomic.buffer_offset = sizeof cells - 8;
  EXPECT_EQ(code_of(b.take(atomic, operands(1, 2))), ReturnCode::BadAddr);
  atomic.buffer_offset = UINT64_MAX - 7;
  EXPECT_EQ(code_of(b.take(atomic, operands(1, 2))), ReturnCode::BadAddr);
  atomic.match_bits = key.value + 1;
  EXPECT_EQ(code_of(b.take(atomic, operands(1, 2))), ReturnCode::BadMkey);
  expect_untouched();
}

TEST_F(TargetAtomicTest, AtomicsOnTaggedBuffersAreNotServed) {
  for (const SesOpcode opcode : {SesOpcode::TsendAtomic, SesOpcode::TsendFetchAtomic}) {
    EXPECT_EQ(code_of(b.take(request(opcode, AmoOp::Sum), operands(1))), ReturnCode::UnsupportedOp);
  }
}

// fi_mr(3): FI_REMOTE_WRITE counts what modifies the region.
TEST_F(TargetAtomicTest, ObserverOfTheRegionHearsWhatWasDone) {
  Observer observer;
  b.regions.find(key)->observer = &observer;
  b.take(request(SesOpcode::Atomic, AmoOp::Sum), operands(1));
  b.take(request(SesOpcode::FetchingAtomic, AmoOp::Sum), operands(1));
  b.take(request(SesOpcode::FetchingAtomic, AmoOp::Read), operands(1));
  b.take(request(SesOpcode::Atomic, AmoOp::Bor, 3), operands(1));  // refused
  SesRequest write = b.request_for(SesOpcode::Write);
  write.match_bits = key.value;
  write.request_length = 8;
  b.take(write, operands(1));
  SesRequest read = b.request_for(SesOpcode::Read);
  read.match_bits = key.value;
  read.request_length = 8;
  b.take(read);
  const std::uint8_t both = ri::kRemoteRead | ri::kRemoteWrite;
  EXPECT_EQ(observer.all, (std::vector<std::uint8_t>{ri::kRemoteWrite, both, ri::kRemoteRead,
                                                     ri::kRemoteWrite, ri::kRemoteRead}));
  for (const auto& sent : b.packets())
    sent.message->owner->rx_rsp(*sent.message, sent.tag, {}, kNow);
}

}  // namespace
}  // namespace uet::ses::test
