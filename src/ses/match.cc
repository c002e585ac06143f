// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Searching the two lists of a match queue.
#include "uet/ses/match.h"

namespace uet::ses {
namespace {

using PostedList = IntrusiveList<PostedReceive, PostedTag>;

MatchKey key_of(const RxMessage& message) {
  return {message.match_bits, message.initiator, message.source};
}

}  // namespace

bool matches(const PostedReceive& receive, const MatchKey& message) {
  if (receive.tagged && ((receive.tag ^ message.tag) & ~receive.ignore) != 0) return false;
  return !receive.directed ||
         (receive.source_initiator == message.initiator && receive.source == message.source);
}

PostedReceive* MatchQueue::take_receive(const MatchKey& message) {
  for (PostedReceive& receive : posted) {
    if (!matches(receive, message)) continue;
    PostedList::remove(receive);
    return &receive;
  }
  return nullptr;
}

RxMessage* MatchQueue::take_unexpected(const PostedReceive& receive) {
  for (RxMessage& message : unexpected) {
    if (!matches(receive, key_of(message))) continue;
    IntrusiveList<RxMessage, UnexpectedTag>::remove(message);
    return &message;
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

PostedReceive* MatchQueue::take_operation(const void* operation) {
  for (PostedReceive& receive : posted) {
    if (receive.operation != operation) continue;
    PostedList::remove(receive);
    return &receive;
  }
  return nullptr;
}

}  // namespace uet::ses
