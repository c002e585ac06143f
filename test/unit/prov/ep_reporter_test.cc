// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which completions become CQ entries and counts, and what is in them.
#include "objects/ep_reporter.h"

#include <gtest/gtest.h>
#include <rdma/fi_tagged.h>

#include "domain_testing.h"
#include "objects/trigger.h"

namespace uet::prov {
namespace {

struct Reporter : ::testing::Test {
  Reporter() {
    EXPECT_EQ(Identity::take(Domain::from(domain.domain.get()), *domain.info, 1, identity), 0);
    reporter.emplace(state, bindings, *identity, &endpoint_context);
    EXPECT_EQ(bindings.bind_counter(Cntr::from(counter.get()), FI_SEND | FI_RECV | FI_REMOTE_READ),
              0);
  }
  void bind(std::uint64_t flags) {
    ASSERT_EQ(bindings.bind_cq(Cq::from(cq.get()), FI_TRANSMIT | FI_RECV | flags), 0);
  }
  ses::Completion of(ses::Kind kind, std::uint64_t flags = 0) {
    EXPECT_TRUE(is_receive(kind) ? bindings.take_rx() : bindings.take_tx());
    ses::Completion completion;
    completion.kind = kind;
    completion.status = ses::Status::Ok;
    completion.context = &operation_context;
    completion.user_flags = flags;
    completion.length = 9;
    completion.tag = 17;
    return completion;
  }
  // 1, 0 or -FI_EAVAIL.
  ssize_t read() {
    const ssize_t result = fi_cq_read(cq.get(), &entry, 1);
    return result == -FI_EAGAIN ? 0 : result;
  }

  OpenDomain domain;
  Owned<fid_cq> cq = domain.open_cq();
  Owned<fid_cntr> counter = domain.open_counter();
  std::shared_ptr<Identity> identity;
  EpState state{.engine = domain.engine(), .caps = FI_MSG | FI_TAGGED};
  EpBindings bindings{domain.engine(), EndpointRole::Both};
  std::optional<EpReporter> reporter;
  int endpoint_context = 0;
  int operation_context = 0;
  fi_cq_tagged_entry entry{};
};

TEST_F(Reporter, SuccessIsReportedIfTheCallWantsIt) {
  bind(FI_SELECTIVE_COMPLETION);
  reporter->complete(of(ses::Kind::Send));
  EXPECT_EQ(read(), 0);
  reporter->complete(of(ses::Kind::Send, FI_COMPLETION));
  EXPECT_EQ(read(), 1);
  EXPECT_EQ(entry.op_context, &operation_context);
  EXPECT_EQ(entry.flags, FI_SEND | FI_MSG);
  EXPECT_EQ(fi_cntr_read(counter.get()), 2U);
  EXPECT_EQ(bindings.tx_in_progress(), 0U);
}

TEST_F(Reporter, ReceivesFollowTheBinding) {
  bind(0);
  reporter->complete(of(ses::Kind::TaggedReceive));
  EXPECT_EQ(read(), 1);
  EXPECT_EQ(entry.len, 9U);
  EXPECT_EQ(entry.tag, 17U);
  reporter->complete(of(ses::Kind::TaggedReceive, kUncounted));
  EXPECT_EQ(read(), 0) << "posted without knowing this endpoint";
  EXPECT_EQ(fi_cntr_read(counter.get()), 1U);
}

TEST_F(Reporter, ErrorIsAlwaysReported) {
  bind(FI_SELECTIVE_COMPLETION);
  ses::Completion completion = of(ses::Kind::Send);
  completion.status = ses::Status::Cancelled;
  completion.context = nullptr;
  reporter->complete(completion);
  EXPECT_EQ(read(), -FI_EAVAIL);
  fi_cq_err_entry error{};
  EXPECT_EQ(fi_cq_readerr(cq.get(), &error, 0), 1);
  EXPECT_EQ(error.err, FI_ECANCELED);
  EXPECT_EQ(error.op_context, &endpoint_context) << "fi_endpoint(3): the endpoint's context";
  EXPECT_EQ(fi_cntr_readerr(counter.get()), 1U);
}

TEST_F(Reporter, ReleasedBufferIsReportedWithItsLastMessage) {
  bind(FI_SELECTIVE_COMPLETION);
  ASSERT_TRUE(bindings.take_rx());  // the slot of the release
  ses::Completion completion = of(ses::Kind::Receive);
  completion.multi = completion.released = true;
  reporter->complete(completion);
  EXPECT_EQ(read(), 1);
  EXPECT_EQ(entry.flags, FI_RECV | FI_MSG | FI_MULTI_RECV);
  EXPECT_EQ(entry.len, 9U);
  EXPECT_EQ(bindings.rx_in_progress(), 0U);
}

TEST_F(Reporter, ReleaseWithoutAMessageHasNoLength) {
  bind(FI_SELECTIVE_COMPLETION);
  ses::Completion completion = of(ses::Kind::Receive);
  completion.released = true;
  reporter->complete(completion);
  EXPECT_EQ(read(), 1);
  EXPECT_EQ(entry.flags, FI_MULTI_RECV);
  EXPECT_EQ(entry.len, 0U);
  EXPECT_EQ(fi_cntr_read(counter.get()), 0U);
}

TEST_F(Reporter, RemoteReadsAreCountedApart) {
  EXPECT_TRUE(reporter->counts_reads());
  reporter->remote_access(ses::Kind::Read, 8);
  reporter->remote_access(ses::Kind::FetchAtomic, 8);
  reporter->remote_access(ses::Kind::Write, 8);
  EXPECT_EQ(fi_cntr_read(counter.get()), 2U);
}

}  // namespace
}  // namespace uet::prov
