// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "objects/completion_kind.h"

#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_eq.h>

namespace uet::prov {
namespace {

using ses::Kind;

ses::Completion of(Kind kind) {
  ses::Completion completion;
  completion.kind = kind;
  return completion;
}

// fi_cq(3), "Completion Flags".
TEST(CompletionKind, EntryFlagsNameTheOperation) {
  EXPECT_EQ(entry_flags(of(Kind::Send)), FI_SEND | FI_MSG);
  EXPECT_EQ(entry_flags(of(Kind::TaggedSend)), FI_SEND | FI_TAGGED);
  EXPECT_EQ(entry_flags(of(Kind::Write)), FI_WRITE | FI_RMA);
  EXPECT_EQ(entry_flags(of(Kind::Read)), FI_READ | FI_RMA);
  EXPECT_EQ(entry_flags(of(Kind::Atomic)), FI_WRITE | FI_ATOMIC);
  EXPECT_EQ(entry_flags(of(Kind::FetchAtomic)), FI_READ | FI_ATOMIC);
  EXPECT_EQ(entry_flags(of(Kind::CompareAtomic)), FI_READ | FI_ATOMIC);
  EXPECT_EQ(entry_flags(of(Kind::Receive)), FI_RECV | FI_MSG);
  EXPECT_EQ(entry_flags(of(Kind::TaggedReceive)), FI_RECV | FI_TAGGED);
  EXPECT_EQ(entry_flags(of(Kind::RemoteWrite)), FI_REMOTE_WRITE | FI_RMA);
}

TEST(CompletionKind, OnlyTheReceivingSideReportsImmediateData) {
  for (const Kind kind : {Kind::Receive, Kind::TaggedReceive, Kind::RemoteWrite, Kind::Send}) {
    ses::Completion completion = of(kind);
    completion.has_data = true;
    const bool has_flag = (entry_flags(completion) & FI_REMOTE_CQ_DATA) != 0;
    EXPECT_EQ(has_flag, belongs_to_rx(kind));
  }
}

TEST(CompletionKind, EachKindHasItsCounter) {
  EXPECT_EQ(counter_index(Kind::Send), kSend);
  EXPECT_EQ(counter_index(Kind::TaggedSend), kSend);
  EXPECT_EQ(counter_index(Kind::Write), kWrite);
  EXPECT_EQ(counter_index(Kind::Atomic), kWrite);
  EXPECT_EQ(counter_index(Kind::Read), kRead);
  EXPECT_EQ(counter_index(Kind::FetchAtomic), kRead);
  EXPECT_EQ(counter_index(Kind::CompareAtomic), kRead);
  EXPECT_EQ(counter_index(Kind::Receive), kRecv);
  EXPECT_EQ(counter_index(Kind::TaggedReceive), kRecv);
  EXPECT_EQ(counter_index(Kind::RemoteWrite), kRemoteWrite);
}

TEST(CompletionKind, PeeksAndReleasesAreNotCounted) {
  EXPECT_TRUE(counts(of(Kind::Send)));
  ses::Completion receive = of(Kind::TaggedReceive);
  EXPECT_TRUE(counts(receive));
  receive.user_flags = FI_PEEK;
  EXPECT_FALSE(counts(receive));
  receive.user_flags = FI_DISCARD;
  EXPECT_FALSE(counts(receive));
  receive.user_flags = 0;
  receive.released = true;
  EXPECT_FALSE(counts(receive)) << "only gives a multi-receive buffer back";
  receive.multi = true;
  EXPECT_TRUE(counts(receive)) << "with its last message";
  receive.multi = false;
  receive.status = ses::Status::Cancelled;
  EXPECT_TRUE(counts(receive)) << "an error";
}

}  // namespace
}  // namespace uet::prov
