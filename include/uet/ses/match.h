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
bool matches(const PostedReceive& receive, const MatchKey& message);

// The receives and unexpected messages of one kind (tagged or not) of one context.
class MatchQueue {
 public:
  // Takes the oldest receive that matches off the list; nullptr if there is none.
  PostedReceive* take_receive(const MatchKey& message);
  // Takes the oldest unexpected message that `receive` matches off the list, or nullptr (SES-51).
  RxMessage* take_unexpected(const PostedReceive& receive);
  // Puts the receive into its place by `sequence`: the end for a new one, its old place for one
  // whose message was abandoned (SES-113).
  void put(PostedReceive& receive);
  // Takes the oldest waiting receive with this operation context off the list, or nullptr.
  PostedReceive* take_operation(const void* operation);

  IntrusiveList<PostedReceive, PostedTag> posted;
  IntrusiveList<RxMessage, UnexpectedTag> unexpected;
};

}  // namespace uet::ses
