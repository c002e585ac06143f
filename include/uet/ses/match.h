// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which receive takes which message (SES section 4). One list of posted receives in posting order
// and one list of unexpected messages in order of arrival; neither side is searched by anything
// else, since wildcards make any other order wrong (SES-40).
#pragma once

#include <cstdint>

#include "uet/base/intrusive_list.h"
#include "uet/ses/message.h"

namespace uet::ses {

// What a message is matched by.
struct MatchKey {
  std::uint64_t tag = 0;
  InitiatorId initiator;
  FepAddress source;
};

// SES-38. The tag counts for tagged receives only; a directed receive wants initiator id and
// address of the peer.
bool matches(const MatchCriteria& criteria, const MatchKey& message);
MatchKey key_of(const RxMessage& message);

// The receives and unexpected messages of one kind (tagged or not) of one queue.
class MatchQueue {
 public:
  // The oldest receive that matches; nullptr if there is none.
  PostedReceive* find_receive(const MatchKey& message);
  // The oldest unexpected message that matches (SES-51), or nullptr.
  RxMessage* find_unexpected(const MatchCriteria& criteria);
  // Puts the receive into its place by `sequence`: the end for a new one, its old place for one
  // whose message was abandoned (SES-113).
  void put(PostedReceive& receive);
  // Takes the receive off the list.
  static void remove(PostedReceive& receive) {
    IntrusiveList<PostedReceive, PostedTag>::remove(receive);
  }
  // The oldest waiting receive with this operation context, or nullptr.
  PostedReceive* find_operation(const void* operation);

  IntrusiveList<PostedReceive, PostedTag> posted;
  IntrusiveList<RxMessage, UnexpectedTag> unexpected;
};

class Context;
struct DisabledTag;
struct ShortOfRoomTag;

// What receives are posted to and messages wait on: of one context, or shared by several
// (fi_srx_context).
class ReceiveQueue : public ListNode<ShortOfRoomTag> {
 public:
  // `sink` gets what belongs to no message: cancelled receives, peeks, released buffers.
  // `by`: who finds the receives instead.
  ReceiveQueue(std::size_t room, bool honour_source, bool is_shared, CompletionSink& to,
               ReceiveOwner* by = nullptr)
      : size(room), directed(honour_source), shared(is_shared), sink(to), owner(by) {}

  MatchQueue& of(bool is_tagged) { return is_tagged ? tagged : untagged; }

  const std::size_t size;  // receives, posted or bound to a message
  const bool directed;     // honour the source of a receive
  const bool shared;
  CompletionSink& sink;
  ReceiveOwner* const owner;
  std::size_t count = 0;
  MatchQueue untagged;
  MatchQueue tagged;
  IntrusiveList<RxMessage, UnexpectedTag> claimed;  // by a peek, or kept for the owner
  IntrusiveList<Context, DisabledTag> disabled;     // generations that the next receive enables
};

}  // namespace uet::ses
