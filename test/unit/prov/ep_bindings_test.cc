// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fi_ep_bind(3) of CQs and counters, and the slots of operations in progress.
#include "objects/ep_bindings.h"

#include <gtest/gtest.h>

#include "domain_testing.h"

namespace uet::prov {
namespace {

struct Bindings : ::testing::Test {
  OpenDomain domain;
  Owned<fid_cq> cq = domain.open_cq();
  Owned<fid_cntr> counter = domain.open_counter();

  EpBindings of(EndpointRole role) { return {domain.engine(), role}; }
  int bind(EpBindings& bindings, std::uint64_t flags) {
    return bindings.bind_cq(Cq::from(cq.get()), flags);
  }
  int count(EpBindings& bindings, std::uint64_t flags) {
    return bindings.bind_counter(Cntr::from(counter.get()), flags);
  }
};

TEST_F(Bindings, EachSideHasOneCq) {
  EpBindings bindings = of(EndpointRole::Both);
  EXPECT_EQ(bind(bindings, 0), -FI_EINVAL);
  EXPECT_EQ(bind(bindings, FI_TRANSMIT | FI_SELECTIVE_COMPLETION), 0);
  EXPECT_EQ(bind(bindings, FI_TRANSMIT), -FI_EINVAL);
  EXPECT_FALSE(bindings.report_receives());
  EXPECT_EQ(bind(bindings, FI_RECV), 0);
  EXPECT_TRUE(bindings.report_sends());
  EXPECT_TRUE(bindings.report_receives());
  EXPECT_EQ(bindings.tx_always(), 0U);
  EXPECT_EQ(bindings.rx_always(), FI_COMPLETION);
  EXPECT_EQ(bindings.queue_of(ses::Kind::RemoteWrite), &Cq::from(cq.get()));
}

TEST_F(Bindings, ContextHasOneSide) {
  EpBindings transmits = of(EndpointRole::Transmit);
  EXPECT_EQ(bind(transmits, FI_RECV), -FI_EINVAL);
  EXPECT_EQ(count(transmits, FI_RECV), -FI_EINVAL);
  EXPECT_EQ(count(transmits, FI_SEND | FI_WRITE), 0);
  EpBindings receives = of(EndpointRole::Receive);
  EXPECT_EQ(bind(receives, FI_TRANSMIT), -FI_EINVAL);
  EXPECT_EQ(count(receives, FI_READ), -FI_EINVAL);
  EXPECT_EQ(count(receives, FI_REMOTE_WRITE), 0);
}

TEST_F(Bindings, CounterCountsTheKindsOfItsFlags) {
  EpBindings bindings = of(EndpointRole::Both);
  EXPECT_EQ(count(bindings, FI_WRITE | FI_RECV), 0);
  EXPECT_EQ(count(bindings, FI_WRITE), -FI_EINVAL) << "bound already";
  EXPECT_EQ(bindings.counter_of(ses::Kind::Atomic), &Cntr::from(counter.get()));
  EXPECT_EQ(bindings.counter_of(ses::Kind::Read), nullptr);
  EXPECT_EQ(bindings.counter(kRemoteWrite), nullptr);
  EXPECT_TRUE(bindings.count_sends());
  EXPECT_TRUE(bindings.report_receives());
}

TEST_F(Bindings, ObjectsOfAnotherDomainAreRefused) {
  OpenDomain other;
  EpBindings bindings(other.engine(), EndpointRole::Both);
  EXPECT_EQ(bind(bindings, FI_RECV), -FI_EDOMAIN);
  EXPECT_EQ(count(bindings, FI_RECV), -FI_EDOMAIN);
}

TEST_F(Bindings, BoundCqCannotBeClosed) {
  auto bindings = std::make_unique<EpBindings>(domain.engine(), EndpointRole::Both);
  ASSERT_EQ(bind(*bindings, FI_RECV), 0);
  EXPECT_EQ(fi_close(&cq->fid), -FI_EBUSY);
  bindings.reset();
  EXPECT_EQ(fi_close(&cq.release()->fid), 0);
}

// SES-80: a peer's immediate data need a CQ or a counter of the receiving side.
TEST_F(Bindings, Ses80_CqDataNeedsAReport) {
  EXPECT_TRUE(of(EndpointRole::Transmit).report_cq_data());
  EpBindings bindings = of(EndpointRole::Both);
  EXPECT_FALSE(bindings.report_cq_data());
  EXPECT_EQ(count(bindings, FI_SEND), 0);
  EXPECT_FALSE(bindings.report_cq_data());
  EXPECT_EQ(count(bindings, FI_REMOTE_WRITE), 0);
  EXPECT_TRUE(bindings.report_cq_data());
}

TEST_F(Bindings, SharedContextBoundsOperationsInProgress) {
  fi_tx_attr attr{};
  attr.size = 2;
  Owned<fid_stx> stx;
  OpenDomain::open(
      stx, [&](auto** out) { return fi_stx_context(domain.domain.get(), &attr, out, nullptr); });
  EpBindings bindings = of(EndpointRole::Both);
  EXPECT_TRUE(bindings.take_tx());
  const std::shared_ptr<TxSlots> shared = Stx::from(&stx->fid).slots();
  bindings.share_tx(shared);
  EXPECT_EQ(shared->left(), 1U) << "the operation in progress counts";
  EXPECT_TRUE(bindings.take_tx());
  EXPECT_FALSE(bindings.take_tx());
  bindings.finish_tx();
  EXPECT_TRUE(bindings.take_tx());
  bindings.return_all();
  EXPECT_EQ(shared->left(), 2U);
}

TEST_F(Bindings, LateCqTakesOverWhatIsPosted) {
  EpBindings bindings = of(EndpointRole::Both);
  ASSERT_TRUE(bindings.take_rx());
  ASSERT_EQ(bind(bindings, FI_RECV), 0);
  Cq::Entry entry;
  entry.fields.len = 5;
  bindings.finish_rx();
  bindings.queue_of(ses::Kind::Receive)->push(entry);  // asserts that an entry is reserved
  fi_cq_tagged_entry read{};
  EXPECT_EQ(fi_cq_read(cq.get(), &read, 1), 1);
  EXPECT_EQ(read.len, 5U);
  EXPECT_EQ(bindings.rx_in_progress(), 0U);
}

}  // namespace
}  // namespace uet::prov
