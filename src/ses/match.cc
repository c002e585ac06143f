// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Searching the two lists of a match queue.
#include "uet/ses/match.h"

namespace uet::ses {
namespace {

using PostedList = IntrusiveList<PostedReceive, PostedTag>;

}  // namespace

MatchKey key_of(const RxMessage& message) {
  return {message.match_bits, message.initiator, message.source};
}

bool matches(const MatchCriteria& criteria, const MatchKey& message) {
  if (criteria.tagged && ((criteria.tag ^ message.tag) & ~criteria.ignore) != 0) return false;
  return !criteria.directed ||
         (criteria.source_initiator == message.initiator && criteria.source == message.source);
}

PostedReceive* MatchQueue::find_receive(const MatchKey& message) {
  for (PostedReceive& receive : posted) {
    if (matches(receive, message)) return &receive;
  }
  return nullptr;
}

RxMessage* MatchQueue::find_unexpected(const MatchCriteria& criteria) {
  for (RxMessage& message : unexpected) {
    if (matches(criteria, key_of(message))) return &message;
  }
  return nullptr;
}

void MatchQueue::put(PostedReceive& receive) {
  PostedList later;
  while (!posted.empty() && posted.back().sequence > receive.sequence) {
    PostedReceive& last = posted.back();
    PostedList::remove(last);
    later.push_front(last);
  }
  posted.push_back(receive);
  while (!later.empty()) posted.push_back(later.pop_front());
}

PostedReceive* MatchQueue::find_operation(const void* operation) {
  for (PostedReceive& receive : posted) {
    if (receive.operation == operation) return &receive;
  }
  return nullptr;
}

}  // namespace uet::ses
