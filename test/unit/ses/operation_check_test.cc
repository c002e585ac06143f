// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/operation_check.h"

#include <gtest/gtest.h>

#include <array>

#include "ses/parameters.h"

namespace uet::ses {
namespace {

constexpr OperationLimits kLimits{.inject_bytes = 64, .payload_mtu = 1024, .rendezvous = true};

class OperationCheck : public testing::Test {
 protected:
  template <class Op>
  std::optional<Error> refusal(const Op& op, DeliveryMode mode = DeliveryMode::Rud) {
    const auto result = check_operation(op, mode, kLimits);
    return result ? std::nullopt : std::optional(result.error());
  }
  template <class Op>
  Op of(std::size_t bytes) {
    slices_[0] = {memory_.data(), bytes};
    Op op;
    op.peer = &peer_;
    op.local = std::span(slices_.data(), 1);
    return op;
  }

  Peer peer_;
  std::array<std::byte, 8> memory_{};
  std::array<IoSlice, 1> slices_;
};

TEST_F(OperationCheck, OrdinaryOperationsArePossible) {
  EXPECT_EQ(refusal(of<SendOp>(1 << 20)), std::nullopt);
  EXPECT_EQ(refusal(of<RmaOp>(kMaxMessageBytes)), std::nullopt);
}

TEST_F(OperationCheck, BytesNeedAnAddress) {
  auto op = of<SendOp>(1);
  slices_[0].data = nullptr;
  EXPECT_EQ(refusal(op), Error::Invalid);
  slices_[0].length = 0;
  EXPECT_EQ(refusal(op), std::nullopt);
  op.peer = nullptr;
  EXPECT_EQ(refusal(op), Error::Invalid);
}

TEST_F(OperationCheck, InjectedBytesAreLimited) {
  auto op = of<SendOp>(65);
  op.inject = true;
  EXPECT_EQ(refusal(op), Error::TooLong);
  slices_[0].length = 64;
  EXPECT_EQ(refusal(op), std::nullopt);
}

TEST_F(OperationCheck, APeerOfOneMtuGetsNoMore) {
  peer_.one_mtu = true;
  EXPECT_EQ(refusal(of<SendOp>(1025)), Error::TooLong);
  EXPECT_EQ(refusal(of<RmaOp>(1024)), std::nullopt);
}

TEST_F(OperationCheck, Ses164_OnlyHpcPeersGetLongerSends) {
  EXPECT_EQ(refusal(of<SendOp>(kMaxMessageBytes + 1)), Error::TooLong);
  peer_.hpc = true;
  EXPECT_EQ(refusal(of<SendOp>(kMaxMessageBytes + 1)), std::nullopt);
  EXPECT_EQ(refusal(of<RmaOp>(kMaxMessageBytes + 1)), Error::TooLong);
}

TEST_F(OperationCheck, Ses77_DatagramsAreShortAndPlain) {
  EXPECT_EQ(refusal(of<SendOp>(1024), DeliveryMode::Uud), std::nullopt);
  EXPECT_EQ(refusal(of<SendOp>(1025), DeliveryMode::Uud), Error::TooLong);
  auto tagged = of<SendOp>(1);
  tagged.tag = 1;
  EXPECT_EQ(refusal(tagged, DeliveryMode::Uud), Error::Invalid);
  EXPECT_EQ(refusal(of<RmaOp>(1), DeliveryMode::Uud), Error::Invalid);
}

TEST_F(OperationCheck, ReadsCarryNoData) {
  auto read = of<RmaOp>(8);
  read.kind = Kind::Read;
  EXPECT_EQ(refusal(read), std::nullopt);
  read.data = 1;
  EXPECT_EQ(refusal(read), Error::Invalid);
}

TEST_F(OperationCheck, Ses90_AtomicsFitAPacket) {
  auto atomic = of<AtomicOp>(1024);
  atomic.op = wire::AmoOp::Sum;
  atomic.datatype = wire::AmoDatatype::Uint64;
  EXPECT_EQ(refusal(atomic), std::nullopt);
  slices_[0].length = 1032;
  EXPECT_EQ(refusal(atomic), Error::TooLong);
  slices_[0].length = 0;
  EXPECT_EQ(refusal(atomic), Error::Invalid);
}

}  // namespace
}  // namespace uet::ses
