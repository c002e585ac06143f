// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Queues that posts announce, and the sleep of the engine's thread. The endpoint is a real one, so
// that its commands are executed.
#include "submission/submissions.h"

#include <atomic>

#include "domain_testing.h"
#include "submission/submission.h"

namespace uet::prov {
namespace {

// A domain without a thread of its own, and a queue for one of its endpoints.
class SubmissionsTest : public testing::Test {
 protected:
  SubmissionsTest() {
    fi_av_attr attr{};
    OpenDomain::open(
        av_, [&](auto** out) { return fi_av_open(domain_.domain.get(), &attr, out, nullptr); });
    EXPECT_EQ(fi_ep_bind(ep_.get(), &av_->fid, 0), 0);
    EXPECT_EQ(fi_ep_bind(ep_.get(), &cq_->fid, FI_TRANSMIT | FI_RECV), 0);
    EXPECT_EQ(fi_enable(ep_.get()), 0);
    submissions_.wake_by([](void* count) noexcept { ++*static_cast<std::atomic<int>*>(count); },
                         &woken_);
  }
  // As a post does.
  void submit(void* context) {
    const CommandRing::Claim claim = queue_.claim_rx(domain_.engine().lock());
    ASSERT_NE(claim.command, nullptr);
    claim.command->opcode = Opcode::Receive;
    claim.command->pieces = 0;
    claim.command->context = context;
    queue_.submit(claim);
  }
  bool run() {
    const Guard guard(domain_.engine().lock());
    return submissions_.run(clock_now());
  }
  bool arm() {
    const Guard guard(domain_.engine().lock());
    return submissions_.arm();
  }

  std::atomic<int> woken_{0};
  OpenDomain domain_;
  Owned<fid_av> av_;
  Owned<fid_cq> cq_ = domain_.open_cq();
  Owned<fid_ep> ep_ = domain_.open_endpoint();
  Submissions submissions_{true, FI_THREAD_SAFE};
  Submission queue_{EndpointFid::from(ep_.get()).endpoint(), submissions_, false, 0, {}};
};

TEST_F(SubmissionsTest, APostWakesTheSleepingThreadOnce) {
  ASSERT_TRUE(arm());
  submit(nullptr);
  EXPECT_EQ(woken_, 1);
  submit(nullptr);
  EXPECT_EQ(woken_, 1) << "the queue is announced already";
  EXPECT_TRUE(run());
  EXPECT_TRUE(queue_.empty());
}

TEST_F(SubmissionsTest, APolledQueueIsNotAnnounced) {
  submit(nullptr);
  EXPECT_TRUE(run());
  submit(nullptr);
  EXPECT_TRUE(run());
  EXPECT_FALSE(run()) << "nothing is left";
  EXPECT_EQ(woken_, 0);
}

TEST_F(SubmissionsTest, TheThreadDoesNotSleepWithCommands) {
  submit(nullptr);
  EXPECT_FALSE(arm());
  EXPECT_TRUE(run());
  submit(nullptr);
  EXPECT_FALSE(arm()) << "of a queue that was polled";
  EXPECT_TRUE(run());
  EXPECT_TRUE(arm());
}

// A command that is used again is not cancelled because the one before it was.
TEST_F(SubmissionsTest, ACancelledCommandEndsAlone) {
  int first = 0;
  int second = 0;
  submit(&first);
  submit(&second);
  {
    const Guard guard(domain_.engine().lock());
    EXPECT_TRUE(queue_.cancel(&second));
    EXPECT_FALSE(queue_.cancel(&second));
  }
  EXPECT_TRUE(run());
  fi_cq_err_entry error{};
  ASSERT_EQ(fi_cq_readerr(cq_.get(), &error, 0), 1);
  EXPECT_EQ(error.err, FI_ECANCELED);
  EXPECT_EQ(error.op_context, &second);
  EXPECT_EQ(fi_cancel(&ep_->fid, &first), 0) << "it is posted";
}

}  // namespace
}  // namespace uet::prov
