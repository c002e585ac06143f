// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Matching: SES-20, SES-38 to SES-41, SES-51.
#include "uet/ses/match.h"

#include "unit/ses/harness.h"

namespace uet::ses {
namespace {

using test::address_of;

MatchKey message(std::uint64_t tag, std::uint32_t initiator = 5, std::uint8_t host = 1) {
  return {tag, InitiatorId{initiator}, address_of(host)};
}

void set(PostedReceive& receive, std::uint64_t sequence, std::uint64_t tag,
         std::uint64_t ignore = 0) {
  receive.tagged = true;
  receive.sequence = sequence;
  receive.tag = tag;
  receive.ignore = ignore;
}

TEST(Matches, Ses38_UntaggedIgnoresTheTag) {
  PostedReceive receive;
  EXPECT_TRUE(matches(receive, message(0x1234)));
}

TEST(Matches, Ses38_TagIsComparedUnderTheIgnoreMask) {
  PostedReceive receive;
  set(receive, 0, 0xAB00, 0x00FF);
  EXPECT_TRUE(matches(receive, message(0xAB42)));
  EXPECT_FALSE(matches(receive, message(0xAC42)));
  set(receive, 0, 0, UINT64_MAX);
  EXPECT_TRUE(matches(receive, message(UINT64_MAX)));
  set(receive, 0, 0xAB00);
  EXPECT_FALSE(matches(receive, message(0xAB01)));
}

TEST(Matches, Ses20_DirectedWantsInitiatorIdAndAddress) {
  PostedReceive receive;
  receive.directed = true;
  receive.source_initiator = InitiatorId{5};
  receive.source = address_of(1);
  EXPECT_TRUE(matches(receive, message(0, 5, 1)));
  EXPECT_FALSE(matches(receive, message(0, 6, 1)));
  EXPECT_FALSE(matches(receive, message(0, 5, 2)));
}

TEST(MatchQueue, Ses40_OldestReceiveThatMatchesWinsThoughALaterOneIsExact) {
  PostedReceive wildcard;
  PostedReceive exact;
  set(wildcard, 0, 0, UINT64_MAX);
  set(exact, 1, 7);
  MatchQueue queue;
  queue.put(wildcard);
  queue.put(exact);
  ASSERT_EQ(queue.find_receive(message(7)), &wildcard);
  MatchQueue::remove(wildcard);
  EXPECT_EQ(queue.find_receive(message(8)), nullptr);
  ASSERT_EQ(queue.find_receive(message(7)), &exact);
  MatchQueue::remove(exact);
  EXPECT_EQ(queue.find_receive(message(7)), nullptr);
}

// One that is bound to the sender does not go first either, as it would in the reference.
TEST(MatchQueue, Ses40_OldestReceiveThatMatchesWinsThoughALaterOneIsForTheSender) {
  PostedReceive open_to_all;
  PostedReceive bound;
  set(open_to_all, 0, 7);
  set(bound, 1, 7);
  bound.directed = true;
  bound.source_initiator = InitiatorId{5};
  bound.source = address_of(1);
  MatchQueue queue;
  queue.put(open_to_all);
  queue.put(bound);
  ASSERT_EQ(queue.find_receive(message(7, 5, 1)), &open_to_all);
  MatchQueue::remove(open_to_all);
  EXPECT_EQ(queue.find_receive(message(7, 6, 1)), nullptr);
  ASSERT_EQ(queue.find_receive(message(7, 5, 1)), &bound);
  MatchQueue::remove(bound);
}

TEST(MatchQueue, Ses51_UnexpectedMessagesAreTakenInOrderOfArrival) {
  RxMessage first;
  RxMessage second;
  RxMessage other;
  first.match_bits = second.match_bits = 7;
  other.match_bits = 8;
  MatchQueue queue;
  queue.unexpected.push_back(other);
  queue.unexpected.push_back(first);
  queue.unexpected.push_back(second);
  PostedReceive receive;
  set(receive, 0, 7);
  EXPECT_EQ(queue.find_unexpected(receive), &first);
  queue.unexpected.remove(first);
  EXPECT_EQ(queue.find_unexpected(receive), &second);
  queue.unexpected.remove(second);
  EXPECT_EQ(queue.find_unexpected(receive), nullptr);
}

TEST(MatchQueue, Ses113_ReceivePutBackStandsAtItsOldPlace) {
  PostedReceive receives[4];
  MatchQueue queue;
  for (std::uint64_t i = 0; i < 4; ++i) {
    set(receives[i], i, 0, UINT64_MAX);
    queue.put(receives[i]);
  }
  MatchQueue::remove(receives[0]);
  MatchQueue::remove(receives[1]);
  queue.put(receives[1]);
  queue.put(receives[0]);
  for (PostedReceive& receive : receives) {
    ASSERT_EQ(queue.find_receive(message(1)), &receive);
    MatchQueue::remove(receive);
  }
}

TEST(MatchQueue, FindsTheOldestOperationWithThePointer) {
  int operation = 0;
  PostedReceive receives[3];
  MatchQueue queue;
  for (std::uint64_t i = 0; i < 3; ++i) {
    set(receives[i], i, 0);
    if (i > 0) receives[i].operation = &operation;
    queue.put(receives[i]);
  }
  ASSERT_EQ(queue.find_operation(&operation), &receives[1]);
  MatchQueue::remove(receives[1]);
  ASSERT_EQ(queue.find_operation(&operation), &receives[2]);
  MatchQueue::remove(receives[2]);
  EXPECT_EQ(queue.find_operation(&operation), nullptr);
}

}  // namespace
}  // namespace uet::ses
