// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Endpoint objects: aliases, and what may be bound, asked and closed when. Two domains in one
// process, on loopback.
#include <gtest/gtest.h>

#include <cstring>

#include "objects.h"

namespace uet::e2e {
namespace {

class Alias : public testing::Test {
 protected:
  Alias() {
    plain_ = a_.open_endpoint(FI_SELECTIVE_COMPLETION);
    other_ = b_.open_endpoint(0);
    to_other_ = a_.insert(*other_);
  }
  Owned<fid_ep> alias(std::uint64_t flags) {
    fid_ep* ep = nullptr;
    EXPECT_EQ(fi_ep_alias(plain_.get(), &ep, flags), 0);
    return Owned<fid_ep>(ep);
  }

  Side a_;
  Side b_;
  Owned<fid_ep> plain_;
  Owned<fid_ep> other_;
  fi_addr_t to_other_ = 0;
  char room_[16] = "";
};

TEST_F(Alias, HasOperationFlagsOfItsOwn) {
  const auto loud = alias(FI_TRANSMIT | FI_COMPLETION);
  std::uint64_t flags = FI_TRANSMIT;
  EXPECT_EQ(fi_control(&loud->fid, FI_GETOPSFLAG, &flags), 0);
  EXPECT_EQ(flags, FI_COMPLETION);
  flags = FI_TRANSMIT;
  EXPECT_EQ(fi_control(&plain_->fid, FI_GETOPSFLAG, &flags), 0);
  EXPECT_EQ(flags, 0U);

  ASSERT_EQ(fi_recv(other_.get(), room_, sizeof room_, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_recv(other_.get(), room_, sizeof room_, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(plain_.get(), "quiet", 6, nullptr, to_other_, &a_), 0);
  ASSERT_EQ(fi_send(loud.get(), "loud", 5, nullptr, to_other_, &b_), 0);
  b_.next(a_);
  b_.next(a_);
  EXPECT_EQ(a_.next(b_).context, &b_);
  EXPECT_FALSE(a_.poll());
}

TEST_F(Alias, KeepsTheEndpointWhenThePlainHandleIsClosed) {
  auto second = alias(0);
  plain_.reset();
  ASSERT_EQ(fi_recv(other_.get(), room_, sizeof room_, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_inject(second.get(), "still here", 11, to_other_), 0);
  EXPECT_EQ(b_.next(a_).length, 11U);
  EXPECT_STREQ(room_, "still here");
  EXPECT_EQ(fi_close(&a_.cq->fid), -FI_EBUSY);
  second.reset();
  EXPECT_EQ(fi_close(&a_.cq.release()->fid), 0);
}

TEST_F(Alias, TakesFlagsOfOneSideOnly) {
  fid_ep* ep = nullptr;
  EXPECT_EQ(fi_ep_alias(plain_.get(), &ep, FI_TRANSMIT | FI_RECV), -FI_EINVAL);
  EXPECT_EQ(fi_ep_alias(plain_.get(), &ep, FI_COMPLETION), -FI_EINVAL);
  EXPECT_EQ(fi_ep_alias(plain_.get(), &ep, FI_TRANSMIT | FI_PEEK), -FI_EINVAL);
}

TEST_F(Alias, CancelsWhatAnotherHandlePosted) {
  const auto second = alias(0);
  ASSERT_EQ(fi_recv(plain_.get(), room_, sizeof room_, nullptr, FI_ADDR_UNSPEC, room_), 0);
  EXPECT_EQ(fi_cancel(&second->fid, room_), 0);
  const Event event = a_.next(b_);
  EXPECT_EQ(event.error, FI_ECANCELED);
  EXPECT_EQ(event.context, room_);
}

TEST_F(Alias, ErrorOfAnInjectNamesTheEndpoint) {
  ASSERT_EQ(fi_inject_write(plain_.get(), "x", 1, to_other_, 0, 999), 0);
  const Event event = a_.next(b_);
  EXPECT_EQ(event.error, FI_ENOKEY);
  EXPECT_EQ(event.context, &a_);
}

}  // namespace
}  // namespace uet::e2e
