// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Calls that the transmit side refuses before it posts anything; the end-to-end tests post.
#include "objects/tx_side.h"

#include <gtest/gtest.h>

#include "domain_testing.h"

namespace uet::prov {
namespace {

struct Tx : ::testing::Test {
  OpenDomain domain;
  Owned<fid_ep> ep = domain.open_endpoint();
  Endpoint& endpoint = EndpointFid::from(ep.get()).endpoint();
  EpState state{.engine = domain.engine(), .caps = FI_MSG};
  EpBindings bindings{domain.engine(), EndpointRole::Both};
  EpOptions options{{.max_msg_size = 100, .max_atomic_size = 100, .inject_size = 10}, 0};
  TxSide tx{state, bindings, options, endpoint.reporter(), endpoint};
  std::array<char, 200> buffer{};
  std::array<iovec, 8> pieces{};

  // A send of one piece.
  ssize_t send(std::size_t length, std::uint64_t flags = 0, std::size_t count = 1) {
    pieces.fill({buffer.data(), 0});
    pieces[0].iov_len = length;
    TxCall call;
    call.iov = pieces.data();
    call.count = count;
    call.flags = flags;
    return tx.post(call, ses::SendOp{});
  }
};

TEST_F(Tx, NothingIsSentBeforeItIsEnabled) { EXPECT_EQ(send(1), -FI_EOPBADSTATE); }

TEST_F(Tx, LimitsAreThoseOfTheOptions) {
  state.may_send = true;
  EXPECT_EQ(send(101), -FI_EMSGSIZE);
  EXPECT_EQ(send(11, FI_INJECT), -FI_EINVAL);
  const std::size_t less = 5;
  ASSERT_EQ(options.set(kOptMaxMsgSize, &less, sizeof less), 0);
  EXPECT_EQ(send(6), -FI_EMSGSIZE);
}

TEST_F(Tx, WrongArgumentsAreRefused) {
  state.may_send = true;
  EXPECT_EQ(send(1, FI_PEEK), -FI_EINVAL);
  EXPECT_EQ(send(1, 0, ses::kMaxIoSlices + 1), -FI_EINVAL);
  pieces[0] = {nullptr, 5};
  TxCall call;
  call.iov = pieces.data();
  call.count = 1;
  EXPECT_EQ(tx.post(call, ses::RmaOp{}), -FI_EINVAL) << "a length without an address";
  pieces[0] = {buffer.data(), SIZE_MAX};
  pieces[1] = {buffer.data(), 2};
  call.count = 2;
  ses::RmaOp read;
  read.kind = ses::Kind::Read;
  EXPECT_EQ(tx.post(call, ses::RmaOp(read)), -FI_EINVAL) << "more than 2^64 bytes";
}

TEST_F(Tx, TriggeredOperationsNeedTheCapability) {
  EXPECT_EQ(send(1, FI_TRIGGER), -FI_EOPBADSTATE);
  state.enabled = true;
  EXPECT_EQ(send(1, FI_TRIGGER), -FI_EINVAL);
}

TEST_F(Tx, SizeLeftCountsOperationsInProgress) {
  EXPECT_EQ(tx.size_left(), -FI_EOPBADSTATE);
  state.may_send = true;
  state.config.tx_size = 3;
  EXPECT_TRUE(bindings.take_tx());
  EXPECT_EQ(tx.size_left(), 2);
}

}  // namespace
}  // namespace uet::prov
