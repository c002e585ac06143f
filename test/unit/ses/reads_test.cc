// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/reads.h"

#include "unit/ses/operation_harness.h"

namespace uet::ses::test {
namespace {

using std::chrono::seconds;

class ReadsTest : public OperationTest {
 protected:
  ReadsTest() : reads(with_timeout(parameters), counters) { reads.attach(delivery); }
  static const Parameters& with_timeout(Parameters& parameters) {
    parameters.read_timeout = seconds(30);
    return parameters;
  }
  // A read of `memory` that has asked for all its pieces.
  TxMessage& read(std::size_t pieces) {
    memory.assign(pieces * kMtu, std::byte{0});
    TxMessage& message = open(memory.size(), Kind::Read);
    message.iov[0] = slice_of(memory);
    message.iov_count = 1;
    for (std::size_t i = 0; i < pieces; ++i) {
      EXPECT_TRUE(reads.ask(message, kMtu));
      message.offset += kMtu;
    }
    return message;
  }
  static wire::SesResponseHeader promise() {
    wire::SesResponseHeader header;
    header.next_hdr = NextHdr::Response;
    header.return_code = ReturnCode::Ok;
    return header;
  }

  Bytes memory;
  Reads reads;
};

TEST_F(ReadsTest, Pds15_EachPieceLocksThePdcUntilItIsHere) {
  TxMessage& message = read(2);
  EXPECT_EQ(delivery.locks, 2);
  EXPECT_TRUE(reads.any(kPdc));
  const Bytes data = pattern(kMtu);
  reads.place(message, kMtu, data, kNow);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), memory.begin() + kMtu));
  EXPECT_EQ(delivery.locks, 1);
  reads.place(message, 0, data, kNow);
  EXPECT_EQ(delivery.locks, 0);
  EXPECT_FALSE(reads.any(kPdc));
  EXPECT_FALSE(reads.waits());
}

TEST_F(ReadsTest, PdcIsKickedWhenFewerBytesAreOutstanding) {
  TxMessage& message = read(4);  // the limit of small_parameters()
  EXPECT_FALSE(reads.ask(message, kMtu));
  EXPECT_EQ(delivery.kicks, 0);
  reads.resolve(message, 0);
  EXPECT_EQ(delivery.kicks, 1);
  EXPECT_TRUE(reads.ask(message, kMtu));
  reads.resolve_all(message);
  EXPECT_EQ(delivery.kicks, 1);
  EXPECT_EQ(delivery.locks, 0);
}

TEST_F(ReadsTest, Ses88_DataThatWereNotAskedForAreCounted) {
  TxMessage& message = read(1);
  reads.place(message, 7, pattern(kMtu), kNow);
  reads.place(message, kMtu, pattern(kMtu), kNow);
  EXPECT_EQ(counters.stray_responses, 2u);
  EXPECT_EQ(message.pieces_awaited, 1u);
  EXPECT_FALSE(message.failed());
  reads.resolve_all(message);
}

TEST_F(ReadsTest, Ses25_PieceOfAnotherLengthFailsTheRead) {
  TxMessage& message = read(1);
  reads.place(message, 0, pattern(kMtu / 2), kNow);
  EXPECT_EQ(message.return_code, ReturnCode::OpViolation);
  EXPECT_EQ(message.pieces_awaited, 0u);
}

TEST_F(ReadsTest, Ses86_PromisedDataMustArriveWithinReadTimeout) {
  TxMessage& message = read(2);
  EXPECT_EQ(reads.deadline(), kNever) << "the target has promised nothing yet";
  reads.on_answer(message, 0, promise(), kNow);
  EXPECT_EQ(reads.deadline(), kNow + seconds(30));
  reads.place(message, 0, pattern(kMtu), kNow + seconds(10));
  EXPECT_EQ(reads.deadline(), kNow + seconds(40));
  int ended = 0;
  const auto end = [&](TxMessage&) { ++ended; };
  reads.expire(kNow + seconds(39), end);
  EXPECT_EQ(ended, 0);
  reads.expire(kNow + seconds(40), end);
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(message.pds_error, pds::PdsError::RtoExhausted);
  EXPECT_EQ(message.pieces_awaited, 0u);
  EXPECT_EQ(delivery.locks, 0);
}

TEST_F(ReadsTest, ReadOfNoBytesIsResolvedByItsAnswer) {
  TxMessage& message = open(0, Kind::Read);
  ASSERT_TRUE(reads.ask(message, 0));
  reads.on_answer(message, 0, promise(), kNow);
  EXPECT_EQ(message.pieces_awaited, 0u);
  EXPECT_FALSE(reads.waits());
}

TEST_F(ReadsTest, Pds189_RudiAnswerWithoutDataFailsTheRead) {
  TxMessage& message = read(1);
  message.mode = DeliveryMode::Rudi;
  reads.on_answer(message, 0, promise(), kNow);
  EXPECT_EQ(message.return_code, ReturnCode::Uncor);
  EXPECT_FALSE(reads.waits()) << "PDS repeats the request until its answer comes";
  reads.drop(message);
  EXPECT_EQ(message.pieces_awaited, 0u);
  EXPECT_FALSE(reads.any(kPdc));
}

TEST_F(ReadsTest, DroppedReadKicksThePdc) {
  TxMessage& message = read(4);
  ASSERT_FALSE(reads.ask(message, kMtu));
  reads.drop(message);
  EXPECT_EQ(delivery.kicks, 1);
  EXPECT_FALSE(reads.any(kPdc));
}

}  // namespace
}  // namespace uet::ses::test
