// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What an initiator says of its own failure: a packet whose data are bad (IE), and a message that
// it gives up (MSG_ERROR).
#include "unit/ses/atomic_harness.h"
#include "unit/ses/harness.h"

namespace uet::ses::test {
namespace {

class TargetErrorTest : public TwoNodes {
 protected:
  TargetErrorTest() : key(b.expose(region)) {}
  pds::Response part_with_bad_data(SesRequest request, std::uint32_t offset, std::size_t count) {
    request.ie = true;
    return take_part(request, message, offset, count);
  }
  SesRequest send() const { return b.request_for(SesOpcode::Send); }
  SesRequest write(bool with_data) const {
    SesRequest request = b.request_for(SesOpcode::Write);
    request.match_bits = key.value;
    request.hd = with_data;
    return request;
  }
  SesRequest end_at(std::uint32_t offset) const {
    return part(b.request_for(SesOpcode::MsgError), offset, 0,
                static_cast<std::uint32_t>(message.size()));
  }
  void post() { ASSERT_TRUE(b.receive({slice_of(buffer)}, {}, 0, &buffer)); }
  // The next message is whole, and goes to the receive that the one before has left.
  void expect_receive_waits() {
    const Bytes next = pattern(100, 9);
    EXPECT_EQ(code_of(b.take(part(send(), 0, 100, 100), next)), ReturnCode::Ok);
    ASSERT_FALSE(b.sink.all.empty());
    EXPECT_EQ(b.sink.all.back().status, Status::Ok);
    EXPECT_EQ(b.sink.all.back().context, &buffer);
    EXPECT_TRUE(std::equal(next.begin(), next.end(), buffer.begin()));
  }

  const Bytes message = pattern(3 * kMtu);
  Bytes buffer = Bytes(message.size());
  Bytes region = Bytes(message.size());
  Rkey key;
};

// ---- IE ----------------------------------------------------------------------------------------

TEST_F(TargetErrorTest, Ses112_BadMiddlePacket_FailsPlacesNothing) {
  post();
  take_part(send(), message, 0, kMtu);
  const pds::Response answer = part_with_bad_data(send(), kMtu, kMtu);
  EXPECT_EQ(code_of(answer), ReturnCode::InitiatorErr);
  EXPECT_TRUE(answer.guaranteed) << "SES-105: the first that fails";
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::Abandoned);
  EXPECT_EQ(b.sink.all[0].length, kMtu);
  EXPECT_TRUE(std::equal(message.begin(), message.begin() + kMtu, buffer.begin()));
  EXPECT_TRUE(std::all_of(buffer.begin() + kMtu, buffer.end(),
                          [](std::byte byte) { return byte == std::byte{}; }));
  const pds::Response later = take_part(send(), message, 2 * kMtu, kMtu);
  EXPECT_EQ(code_of(later), ReturnCode::InitiatorErr);  // SES-35
  EXPECT_FALSE(later.guaranteed);
  expect_idle();
}

TEST_F(TargetErrorTest, Ses112_BadMessageOfOnePacketTakesNoReceive) {
  post();
  SesRequest request = part(send(), 0, 100, 100);
  request.ie = true;
  EXPECT_EQ(code_of(b.take(request, pattern(100))), ReturnCode::InitiatorErr);
  EXPECT_TRUE(b.sink.all.empty());
  EXPECT_EQ(buffer, Bytes(buffer.size()));
  expect_receive_waits();
}

TEST_F(TargetErrorTest, Ses112_BadUnexpectedMessageIsNotKept) {
  take_part(send(), message, 0, kMtu);
  EXPECT_EQ(code_of(part_with_bad_data(send(), 2 * kMtu, kMtu)), ReturnCode::InitiatorErr);
  EXPECT_EQ(b.buffers.in_use(), 0u);
  take_part(send(), message, kMtu, kMtu);
  expect_idle();
  post();
  EXPECT_TRUE(b.sink.all.empty());
  expect_receive_waits();
}

TEST_F(TargetErrorTest, Ses112_BadWritePacket_NoDataForTarget) {
  take_part(write(true), message, 0, kMtu);
  EXPECT_EQ(code_of(part_with_bad_data(write(false), 2 * kMtu, kMtu)), ReturnCode::InitiatorErr);
  take_part(write(false), message, kMtu, kMtu);
  EXPECT_TRUE(b.sink.all.empty()) << "SES-79: only of a message that was placed whole";
  EXPECT_TRUE(b.sink.accesses.empty());
  EXPECT_TRUE(std::equal(message.begin(), message.begin() + kMtu, region.begin()));
  EXPECT_TRUE(std::all_of(region.begin() + kMtu, region.end(),
                          [](std::byte byte) { return byte == std::byte{}; }));
  expect_idle();
}

// SES-116
TEST_F(TargetErrorTest, Ses112_BadReadIsNotAnswered) {
  SesRequest request = b.request_for(SesOpcode::Read);
  request.match_bits = key.value;
  request.request_length = kMtu;
  request.ie = true;
  const pds::Response answer = b.take(request);
  EXPECT_EQ(code_of(answer), ReturnCode::InitiatorErr);
  EXPECT_TRUE(answer.guaranteed);
  EXPECT_TRUE(b.delivery.backlog.empty());
  EXPECT_TRUE(b.sink.accesses.empty());
}

using TargetErrorAtomicTest = AtomicNodes;

TEST_F(TargetErrorAtomicTest, Ses112_BadAtomicIsNotExecuted) {
  for (const SesOpcode opcode : {SesOpcode::Atomic, SesOpcode::FetchingAtomic}) {
    SesRequest request = b.request_for(opcode);
    request.match_bits = key.value;
    request.request_length = 8;
    request.atomic = {.op = wire::AmoOp::Sum, .datatype = wire::AmoDatatype::Uint64};
    request.ie = true;
    const pds::Response answer = b.take(request, pattern(8));
    EXPECT_EQ(code_of(answer), ReturnCode::InitiatorErr);
    EXPECT_TRUE(answer.guaranteed);
    EXPECT_EQ(cells[0], 0u);
    EXPECT_TRUE(b.sink.accesses.empty());
  }
}

// ---- MSG_ERROR ---------------------------------------------------------------------------------

TEST_F(TargetErrorTest, Ses113_WriteGivenUp_RegionStaysUsable) {
  take_part(write(true), message, 0, kMtu);
  EXPECT_EQ(code_of(b.take(end_at(kMtu))), ReturnCode::Ok);
  EXPECT_TRUE(b.sink.all.empty());
  EXPECT_TRUE(b.sink.accesses.empty());
  expect_idle();
  for (const std::uint32_t offset : {0U, kMtu, 2 * kMtu}) {
    take_part(write(offset == 0), message, offset, kMtu);
  }
  EXPECT_EQ(region, message);
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_TRUE(b.sink.all[0].has_data);
}

// The receive keeps its place before those that were posted later (SES-40).
TEST_F(TargetErrorTest, Ses113_ReceivePutBackIsStillTheFirst) {
  Bytes short_buffer(10);
  ASSERT_TRUE(b.receive({slice_of(short_buffer)}, {}, 0, &short_buffer));
  post();
  take_part(send(), message, kMtu, kMtu);  // bound to the first, behind its end: nothing placed
  b.take(end_at(kMtu));
  EXPECT_TRUE(b.sink.all.empty());
  EXPECT_EQ(code_of(b.take(part(send(), 0, 10, 10), pattern(10))), ReturnCode::Ok);
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].context, &short_buffer);
  expect_receive_waits();
}

}  // namespace
}  // namespace uet::ses::test
