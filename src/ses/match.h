// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which receive takes which message (SES section 4): of all that match the oldest (SES-40). Posted
// receives lie in posting order and unexpected messages in order of arrival; beside both lists an
// index by exact tag finds among many what is not first in line.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/chain_table.h"
#include "ses/message.h"
#include "uet/base/intrusive_list.h"

namespace uet::ses {

// The properties by which a message is matched.
struct MatchKey {
  std::uint64_t tag = 0;
  InitiatorId initiator;
  FepAddress source;
  JobId job{};
};

// SES-38. The tag counts for tagged receives only; a directed receive wants initiator id and
// address of the peer, and one for a job its JobID (SES-146).
bool matches(const MatchCriteria& criteria, const MatchKey& message);
MatchKey key_of(const Envelope& message);
// Fills in what a completion says of the message itself.
void describe(const Envelope& message, Completion& completion);

// The receives and unexpected messages of one kind (tagged or not) of one queue.
//
// A receive for one tag, from anyone or from one source, is in an index by what it is for; others
// (wildcards) are on a list of their own. The oldest receive of a message is the oldest of what
// these three know of it, by `sequence`. A message is in an index by its tag and in one by its tag
// and source.
//
// A few bits of the tag may be ignored by all receives of an application: Open MPI keeps two for
// its protocol. The indices leave such bits out from the first receive on that ignores them, so
// that receives that ignore no others are for one tag, too.
class MatchQueue {
 public:
  // The most bytes by which a message makes index_bytes() grow: two heads per index (grow).
  static constexpr std::size_t kIndexBytes = 4 * sizeof(void*);

  // `size`: the number of receives that are expected; more are allowed. The indices grow with the
  // number of receives and of messages. `directed`: receives may name their source.
  explicit MatchQueue(bool tagged = true, std::size_t size = 64, bool directed = true);

  // The oldest receive that matches; nullptr if there is none.
  PostedReceive* find_receive(const MatchKey& message);
  // The oldest unexpected message that matches (SES-51), or nullptr. `described`: whose first
  // packet is here.
  Envelope* find_unexpected(const MatchCriteria& criteria, bool described = false);
  // A search for what matches walks through no list.
  bool indexed(const MatchCriteria& criteria) const {
    return reach_of(criteria) != Reach::Wildcard;
  }
  // Puts the receive into its place by `sequence`: the end for a new one, its old place for one
  // whose message was abandoned (SES-113).
  void put(PostedReceive& receive);
  // The youngest unexpected message.
  void add(Envelope& message);
  // Takes the receive out; the message, which may also be on ReceiveQueue::claimed.
  static void remove(PostedReceive& receive);
  static void remove(Envelope& message);
  // The oldest waiting receive with this operation context, or nullptr.
  PostedReceive* find_operation(const void* operation);
  // Memory of the indices of messages.
  std::size_t index_bytes() const {
    return (messages_by_tag_.size() + messages_by_source_.size()) * sizeof(void*);
  }
  // Of the index of receives.
  std::size_t receive_chains() const {
    return std::max(receives_by_tag_.size(), receives_by_source_.size());
  }

  // To be walked through, not to be changed but by put, add and remove.
  IntrusiveList<PostedReceive, PostedTag> posted;
  IntrusiveList<Envelope, UnexpectedTag> unexpected;

 private:
  enum class Reach : std::uint8_t { Tag, Source, Wildcard };

  void index(Envelope& message);
  void index(PostedReceive& receive);
  template <class List, class ByTag, class BySource>
  std::size_t grow(List& elements, ByTag& by_tag, BySource& by_source);
  bool leave_out(std::uint64_t ignore);

  Reach reach_of(const MatchCriteria& criteria) const;
  std::uint64_t tag_hash(std::uint64_t tag) const { return tag & indexed_bits_; }
  std::uint64_t source_hash(std::uint64_t tag, InitiatorId initiator,
                            const FepAddress& source) const;

  const bool tagged_;
  const bool directed_;
  IntrusiveList<PostedReceive, WildcardTag> wildcards_;
  ChainTable<PostedReceive, ExactTag> receives_by_tag_;
  ChainTable<PostedReceive, ExactTag> receives_by_source_;
  ChainTable<Envelope, SameTagTag> messages_by_tag_;
  ChainTable<Envelope, SameSourceTag> messages_by_source_;
  std::size_t adds_left_;       // until grow() looks at the indices of messages again
  std::size_t puts_left_;       // likewise of receives
  std::uint64_t indexed_bits_;  // of the tag; none of untagged messages
};

class Context;
struct DisabledTag;
struct ShortOfRoomTag;

// The queue to which receives are posted and on which messages wait: it belongs to one context, or
// several contexts share it (fi_srx_context).
class ReceiveQueue : public ListNode<ShortOfRoomTag> {
 public:
  // `sink` gets what belongs to no message: cancelled receives, peeks, released buffers.
  // `by`: who finds the receives instead.
  ReceiveQueue(std::size_t room, bool honour_source, bool is_shared, CompletionSink& to,
               ReceiveOwner* by = nullptr)
      : size(room),
        directed(honour_source),
        shared(is_shared),
        sink(to),
        owner(by),
        untagged(false, room, honour_source),
        tagged(true, room, honour_source) {}

  MatchQueue& of(bool is_tagged) { return is_tagged ? tagged : untagged; }

  const std::size_t size;  // receives, posted or bound to a message
  const bool directed;     // honour the source of a receive
  const bool shared;
  CompletionSink& sink;
  ReceiveOwner* const owner;
  std::size_t count = 0;
  MatchQueue untagged;
  MatchQueue tagged;
  IntrusiveList<Envelope, UnexpectedTag> claimed;  // by a peek, or kept for the owner
  IntrusiveList<Context, DisabledTag> disabled;    // generations that the next receive enables
};

// Takes an unexpected message that goes to no receive off its list. If it was kept for the owner of
// the queue, informs the owner.
void leave_queue(Envelope& message);

// The messages that a receive or a peek of the queue is for. `Op`: ReceiveOp or PeekOp.
template <class Op>
void set_criteria(MatchCriteria& criteria, const ReceiveQueue& queue, const Op& op) {
  criteria.tag = op.tag;
  criteria.ignore = op.ignore;
  criteria.tagged = op.tagged;
  criteria.job = op.job;
  if (op.source == nullptr || !queue.directed) return;
  criteria.directed = true;
  criteria.source = op.source->fep;
  criteria.source_initiator = op.source->initiator;
  if (op.source->job) criteria.job = op.source->job;
}

}  // namespace uet::ses
