// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Matching: SES-20, SES-38 to SES-41, SES-51.
#include "ses/match.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "base/rng.h"
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

TEST(MatchQueue, Ses40_LaterExactReceive_OldestMatchWins) {
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
TEST(MatchQueue, Ses40_LaterReceiveForSender_OldestWins) {
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

TEST(MatchQueue, Ses51_UnexpectedMessages_InArrivalOrder) {
  RxMessage first;
  RxMessage second;
  RxMessage other;
  first.match_bits = second.match_bits = 7;
  other.match_bits = 8;
  MatchQueue queue;
  queue.add(other);
  queue.add(first);
  queue.add(second);
  PostedReceive receive;
  set(receive, 0, 7);
  EXPECT_EQ(queue.find_unexpected(receive), &first);
  MatchQueue::remove(first);
  EXPECT_EQ(queue.find_unexpected(receive), &second);
  MatchQueue::remove(second);
  EXPECT_EQ(queue.find_unexpected(receive), nullptr);
}

// The indices grow with the messages, no more than these are charged for, and keep their order.
TEST(MatchQueue, Ses51_ManyTags_FoundInArrivalOrder) {
  constexpr std::size_t kTags = 3000;
  MatchQueue queue(true, 4);
  const std::size_t small = queue.index_bytes();
  std::vector<RxMessage> messages(2 * kTags);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    messages[i].match_bits = i % kTags;
    messages[i].initiator = InitiatorId{5};
    messages[i].source = address_of(1);
    messages[i].som_seen = true;
    queue.add(messages[i]);
    ASSERT_LE(queue.index_bytes(), small + (i + 1) * MatchQueue::kIndexBytes);
  }
  EXPECT_GT(queue.index_bytes(), 8 * small);
  for (std::size_t i = messages.size(); i-- > 0;) {
    PostedReceive receive;
    set(receive, 0, i % kTags);
    receive.directed = i % 2 == 0;
    receive.source_initiator = InitiatorId{5};
    receive.source = address_of(1);
    const std::size_t oldest = i >= kTags ? i - kTags : i + kTags;
    Envelope* found = queue.find_unexpected(receive);
    ASSERT_EQ(found, &messages[oldest]) << i;
    MatchQueue::remove(*found);
  }
  EXPECT_TRUE(queue.unexpected.empty());
}

// The same for receives, for one tag, for one tag of one source, and for any tag.
TEST(MatchQueue, Ses40_ManyReceives_FoundInTheirOrder) {
  constexpr std::size_t kTags = 3000;
  MatchQueue queue(true, 4096);
  const std::size_t few = queue.receive_chains();
  std::vector<PostedReceive> receives(2 * kTags);
  for (std::size_t i = 0; i < receives.size(); ++i) {
    set(receives[i], i, i % kTags);
    receives[i].directed = i % 2 == 0;
    receives[i].source_initiator = InitiatorId{5};
    receives[i].source = address_of(1);
    if (i % 1000 == 999) receives[i].ignore = UINT64_MAX;
    queue.put(receives[i]);
  }
  EXPECT_GE(queue.receive_chains(), 16 * few);
  const MatchKey any{.tag = kTags, .initiator = InitiatorId{5}, .source = address_of(1)};
  for (std::size_t i = 999; i < receives.size(); i += 1000) {
    ASSERT_EQ(queue.find_receive(any), &receives[i]);
    MatchQueue::remove(receives[i]);
  }
  for (std::size_t i = 0; i < receives.size(); ++i) {
    if (i % 1000 == 999) continue;
    const MatchKey key{.tag = i % kTags, .initiator = InitiatorId{5}, .source = address_of(1)};
    ASSERT_EQ(queue.find_receive(key), &receives[i]) << i;
    MatchQueue::remove(receives[i]);
  }
  EXPECT_TRUE(queue.posted.empty());
}

// Few bits that receives ignore, as those of Open MPI's protocol, leave them for one tag: messages
// and receives that were in the indices before are found, too, in their order.
TEST(MatchQueue, Ses38_FewIgnoredBits_IndexLeavesThemOut) {
  constexpr std::uint64_t kProtocol = 3;
  const auto tag_of = [](std::uint64_t number, std::uint64_t bits) { return number << 2 | bits; };
  MatchQueue queue(true, 64);
  std::vector<RxMessage> messages(32);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    messages[i].match_bits = tag_of(i / 4, i % 4);
    messages[i].som_seen = true;
    queue.add(messages[i]);
  }
  PostedReceive front;
  set(front, 0, tag_of(99, 0));
  queue.put(front);
  std::vector<PostedReceive> receives(16);
  for (std::uint64_t i = 0; i < receives.size(); ++i) {
    set(receives[i], i + 1, tag_of(100 + i / 2, 1), i % 2 == 0 ? 0 : kProtocol);
    queue.put(receives[i]);
  }
  EXPECT_TRUE(queue.indexed(receives[1]));
  for (std::size_t i = 0; i < messages.size(); ++i) {
    PostedReceive receive;
    set(receive, 0, tag_of(7 - i / 4, 0), kProtocol);
    Envelope* found = queue.find_unexpected(receive);
    ASSERT_EQ(found, &messages[(7 - i / 4) * 4 + i % 4]) << i;
    MatchQueue::remove(*found);
  }
  for (std::uint64_t i = 0; i < receives.size(); ++i) {
    const std::uint64_t at = receives.size() - 2 - i / 2 * 2 + i % 2;
    ASSERT_EQ(queue.find_receive(message(tag_of(100 + at / 2, 1))), &receives[at]) << i;
    MatchQueue::remove(receives[at]);
  }
  PostedReceive any;
  set(any, 0, 0, UINT64_MAX);
  EXPECT_EQ(queue.find_unexpected(any), nullptr);
  queue.put(any);
  EXPECT_FALSE(queue.indexed(any));
  EXPECT_TRUE(queue.indexed(receives[1])) << "a receive for any tag changes nothing";
  EXPECT_EQ(queue.find_receive(message(5)), &any);
  MatchQueue::remove(any);
  MatchQueue::remove(front);
}

// A receive that finds its message is posted nowhere.
TEST(MatchQueue, Ses38_SearchAlone_OmitsTheBitsItIgnores) {
  MatchQueue queue(true, 64);
  std::vector<RxMessage> messages(2);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    messages[i].match_bits = 4 * i + 1;
    queue.add(messages[i]);
  }
  PostedReceive receive;
  set(receive, 0, 4, 3);
  EXPECT_FALSE(queue.indexed(receive));
  EXPECT_EQ(queue.find_unexpected(receive), &messages[1]);
  EXPECT_TRUE(queue.indexed(receive));
  EXPECT_EQ(queue.find_unexpected(receive), &messages[1]);
  for (RxMessage& message : messages) MatchQueue::remove(message);
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

// ---- the indices against a search of the lists
// ---------------------------------------------------

MatchKey any_message(Rng& rng) {
  return message(rng.below(4), static_cast<std::uint32_t>(rng.below(3)),
                 static_cast<std::uint8_t>(rng.below(3)));
}

// Few tags and sources, so that much matches; masks that leave something of a tag, or nothing.
void draw(MatchCriteria& criteria, bool tagged, bool directed, Rng& rng) {
  constexpr std::uint64_t kMasks[] = {0, 0, 0, 1, 2, UINT64_MAX};
  const MatchKey key = any_message(rng);
  criteria.tagged = tagged;
  criteria.tag = key.tag;
  criteria.ignore = kMasks[rng.below(6)];
  criteria.directed = directed && rng.below(2) == 0;
  criteria.source_initiator = key.initiator;
  criteria.source = key.source;
}

PostedReceive* search(MatchQueue& queue, const MatchKey& key) {
  for (PostedReceive& receive : queue.posted) {
    if (matches(receive, key)) return &receive;
  }
  return nullptr;
}

Envelope* search(MatchQueue& queue, const MatchCriteria& criteria, bool described) {
  for (Envelope& message : queue.unexpected) {
    if ((message.som_seen || !described) && matches(criteria, key_of(message))) return &message;
  }
  return nullptr;
}

// Sizes: with chains of one and of many; kinds of queues: tagged, directed.
class MatchQueueOf : public testing::TestWithParam<std::tuple<std::size_t, bool, bool>> {
 protected:
  std::size_t size() const { return std::get<0>(GetParam()); }
  bool tagged() const { return std::get<1>(GetParam()); }
  bool directed() const { return std::get<2>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Kinds, MatchQueueOf,
                         testing::Combine(testing::Values(1, 64), testing::Bool(),
                                          testing::Bool()));

TEST_P(MatchQueueOf, Ses40_ReceiveFound_OldestMatchOfList) {
  Rng rng(3);
  MatchQueue queue(tagged(), size(), directed());
  std::vector<PostedReceive> receives(48);
  std::vector<PostedReceive*> taken;  // of abandoned messages: put back some time (SES-113)
  std::uint64_t sequence = 0;
  for (int step = 0; step < 20000; ++step) {
    PostedReceive& any = receives[rng.below(receives.size())];
    if (rng.below(2) == 0 && !any.linked() && std::count(taken.begin(), taken.end(), &any) == 0) {
      draw(any, tagged(), directed(), rng);
      any.sequence = sequence++;
      queue.put(any);
    } else if (rng.below(4) == 0 && any.linked()) {  // cancelled
      MatchQueue::remove(any);
    } else if (rng.below(8) == 0 && !taken.empty()) {
      queue.put(*taken.back());
      taken.pop_back();
    }
    const MatchKey key = any_message(rng);
    PostedReceive* found = queue.find_receive(key);
    ASSERT_EQ(found, search(queue, key)) << step;
    if (found == nullptr || rng.below(2) == 0) continue;
    MatchQueue::remove(*found);
    if (rng.below(4) == 0) taken.push_back(found);
  }
  std::uint64_t last = 0;
  for (PostedReceive& receive : queue.posted) {
    EXPECT_GE(receive.sequence, last);
    last = receive.sequence;
  }
}

TEST_P(MatchQueueOf, Ses51_MessageFound_OldestMatchOfList) {
  Rng rng(4);
  MatchQueue queue(tagged(), size(), directed());
  std::vector<RxMessage> messages(48);
  IntrusiveList<Envelope, UnexpectedTag> claimed;
  for (int step = 0; step < 20000; ++step) {
    RxMessage& any = messages[rng.below(messages.size())];
    if (rng.below(2) == 0 && !static_cast<ListNode<UnexpectedTag>&>(any).linked()) {
      const MatchKey key = any_message(rng);
      any.match_bits = key.tag;
      any.initiator = key.initiator;
      any.source = key.source;
      any.som_seen = rng.below(2) == 0;
      queue.add(any);
    } else if (rng.below(8) == 0 && !claimed.empty()) {
      MatchQueue::remove(claimed.front());
    }
    MatchCriteria criteria;
    draw(criteria, tagged(), directed(), rng);
    const bool described = rng.below(2) == 0;
    Envelope* found = queue.find_unexpected(criteria, described);
    ASSERT_EQ(found, search(queue, criteria, described)) << step;
    if (found == nullptr || rng.below(2) == 0) continue;
    MatchQueue::remove(*found);
    if (rng.below(4) == 0) claimed.push_back(*found);
  }
}

}  // namespace
}  // namespace uet::ses
