// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// In which order and how often senders are asked.
#include "ses/pull_queue.h"

#include "unit/ses/receiver_harness.h"

namespace uet::ses::test {
namespace {

class PullQueueTest : public ReceiverTest {
 protected:
  RxMessage& push(std::uint16_t id) {
    RxMessage& message = open(request_of(id, 100));
    queue.push(message);
    return message;
  }
  // The ids of the messages that are asked in one pass; `succeed`: they leave the queue.
  std::vector<int> pass(Time now, bool succeed) {
    std::vector<int> ids;
    queue.ask_all(now, [&](RxMessage& message) -> Result<void> {
      ids.push_back(message.message_id.value);
      if (!succeed) return Error::Again;
      messages.release(message);
      return {};
    });
    return ids;
  }
};

TEST_F(PullQueueTest, AsksInOrderUntilAllAreAsked) {
  for (std::uint16_t id : {3, 1, 2}) push(id);
  EXPECT_EQ(pass(kNow, true), (std::vector{3, 1, 2}));
  EXPECT_TRUE(queue.empty());
}

TEST_F(PullQueueTest, EndsThePassAfterEightFailures) {
  for (std::uint16_t id = 0; id < 10; ++id) push(id);
  EXPECT_EQ(pass(kNow, false).size(), std::size_t{PullQueue::kTries});
  EXPECT_EQ(pass(kNow, true), std::vector<int>{}) << "the next pass waits";
  EXPECT_EQ(queue.next_try(), kNow + PullQueue::kRetry);
  EXPECT_EQ(pass(kNow + PullQueue::kRetry, true).size(), 10u);
}

TEST_F(PullQueueTest, TryNowDoesNotWait) {
  push(1);
  EXPECT_EQ(pass(kNow, false).size(), 1u);
  queue.try_now();
  EXPECT_EQ(pass(kNow, true).size(), 1u);
}

TEST_F(PullQueueTest, UnprovedSourceIsNotAsked) {
  push(1);
  delivery.source_proved = false;
  EXPECT_EQ(pass(kNow, true), std::vector<int>{});
  EXPECT_FALSE(queue.empty());
  RxMessage& second = push(2);
  second.pdc = {};  // its PDC has closed in order: it was proved
  queue.try_now();
  EXPECT_EQ(pass(kNow, true), std::vector{2});
  queue.try_now();
  delivery.source_proved = true;
  EXPECT_EQ(pass(kNow, true), std::vector{1});
}

TEST_F(PullQueueTest, ReleaseAllFreesEveryState) {
  for (std::uint16_t id : {1, 2}) push(id);
  release_all(queue.waiting(), messages);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(messages.in_use(), 0u);
}

}  // namespace
}  // namespace uet::ses::test
