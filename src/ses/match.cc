// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Searching a match queue: first what is first in line, then the indices.
#include "ses/match.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "ses/context.h"

namespace uet::ses {
namespace {

using PostedList = IntrusiveList<PostedReceive, PostedTag>;
using WildcardList = IntrusiveList<PostedReceive, WildcardTag>;

constexpr std::size_t kAddsPerChain = 8;
// Of a new index. Larger ones would cost a page fault for each page when a queue is made.
constexpr std::size_t kFirstChains = 64;
constexpr int kMostLeftOut = 4;  // bits: so many tags share a chain at most 16-fold

void drop_from_index(Envelope& message) {
  if (static_cast<ChainNode<SameTagTag>&>(message).chained()) {
    ChainTable<Envelope, SameTagTag>::remove(message);
  }
  if (static_cast<ChainNode<SameSourceTag>&>(message).chained()) {
    ChainTable<Envelope, SameSourceTag>::remove(message);
  }
}

// A wildcard stays on its list.
void drop_from_index(PostedReceive& receive) {
  if (static_cast<ChainNode<ExactTag>&>(receive).chained()) {
    ChainTable<PostedReceive, ExactTag>::remove(receive);
  }
}

// In no index.
bool is_wildcard(const Envelope&) { return false; }
bool is_wildcard(const PostedReceive& receive) {
  return static_cast<const ListNode<WildcardTag>&>(receive).linked();
}

// Puts the receive into its place by `sequence`, which is mostly the end.
template <class List>
void put_in_order(List& list, PostedReceive& receive) {
  List later;
  while (!list.empty() && list.back().sequence > receive.sequence) {
    PostedReceive& last = list.back();
    List::remove(last);
    later.push_front(last);
  }
  list.push_back(receive);
  while (!later.empty()) list.push_back(later.pop_front());
}

// The first that is accepted of a chain that begins with `element`.
template <class Table, class T, class Accept>
T* first_of(T* element, Accept accept) {
  while (element != nullptr && !accept(*element)) element = Table::next(*element);
  return element;
}

}  // namespace

void describe(const Envelope& message, Completion& completion) {
  completion.tag = message.tagged() ? message.match_bits : 0;
  completion.has_data = message.has_data;
  completion.data = message.data;
  completion.source = message.source;
  completion.source_initiator = message.initiator;
  completion.source_job = message.job;
}

MatchKey key_of(const Envelope& message) {
  return {message.match_bits, message.initiator, message.source, message.job};
}

bool matches(const MatchCriteria& criteria, const MatchKey& message) {
  if (criteria.tagged && ((criteria.tag ^ message.tag) & ~criteria.ignore) != 0) return false;
  if (criteria.job && *criteria.job != message.job) return false;
  return !criteria.directed ||
         (criteria.source_initiator == message.initiator && criteria.source == message.source);
}

MatchQueue::MatchQueue(bool tagged, std::size_t size, bool directed)
    : tagged_(tagged),
      directed_(directed),
      receives_by_tag_(tagged ? std::min(size, kFirstChains) : 1),
      receives_by_source_(directed ? std::min(size, kFirstChains) : 1),
      messages_by_tag_(receives_by_tag_.size()),
      messages_by_source_(receives_by_source_.size()),
      adds_left_(std::max(messages_by_tag_.size(), messages_by_source_.size())),
      puts_left_(adds_left_),
      indexed_bits_(tagged ? ~std::uint64_t{0} : 0) {}

MatchQueue::Reach MatchQueue::reach_of(const MatchCriteria& criteria) const {
  const bool one_tag = (criteria.ignore & indexed_bits_) == 0;
  if (one_tag && criteria.directed && directed_) return Reach::Source;
  return one_tag && tagged_ && !criteria.directed ? Reach::Tag : Reach::Wildcard;
}

std::uint64_t MatchQueue::source_hash(std::uint64_t tag, InitiatorId initiator,
                                      const FepAddress& source) const {
  return (FepAddressHash{}(source) ^ initiator.value) * 0xBF58476D1CE4E5B9ULL + tag_hash(tag);
}

PostedReceive* MatchQueue::find_receive(const MatchKey& message) {
  if (posted.empty()) return nullptr;
  if (matches(posted.front(), message)) return &posted.front();
  const auto fits = [&](const PostedReceive& receive) { return matches(receive, message); };
  using Table = ChainTable<PostedReceive, ExactTag>;
  PostedReceive* oldest = nullptr;
  if (tagged_) oldest = first_of<Table>(receives_by_tag_.first(tag_hash(message.tag)), fits);
  if (directed_) {
    const std::uint64_t hash = source_hash(message.tag, message.initiator, message.source);
    PostedReceive* bound = first_of<Table>(receives_by_source_.first(hash), fits);
    const bool older = bound != nullptr && (!oldest || bound->sequence < oldest->sequence);
    if (older) oldest = bound;
  }
  for (PostedReceive& receive : wildcards_) {
    if (oldest != nullptr && receive.sequence > oldest->sequence) break;
    if (fits(receive)) return &receive;
  }
  return oldest;
}

Envelope* MatchQueue::find_unexpected(const MatchCriteria& criteria, bool described) {
  if (unexpected.empty()) return nullptr;
  const auto fits = [&](const Envelope& message) {
    return (!described || message.som_seen) && matches(criteria, key_of(message));
  };
  if (fits(unexpected.front())) return &unexpected.front();
  switch (reach_of(criteria)) {
    case Reach::Tag:
      return first_of<ChainTable<Envelope, SameTagTag>>(
          messages_by_tag_.first(tag_hash(criteria.tag)), fits);
    case Reach::Source:
      return first_of<ChainTable<Envelope, SameSourceTag>>(
          messages_by_source_.first(
              source_hash(criteria.tag, criteria.source_initiator, criteria.source)),
          fits);
    case Reach::Wildcard:
      if (leave_out(criteria.ignore)) return find_unexpected(criteria, described);
      break;
  }
  for (Envelope& message : unexpected) {
    if (fits(message)) return &message;
  }
  return nullptr;
}

[[gnu::always_inline]] inline void MatchQueue::index(PostedReceive& receive) {
  const auto is_older = [&](const PostedReceive& other) {
    return other.sequence < receive.sequence;
  };
  switch (reach_of(receive)) {
    case Reach::Tag:
      return receives_by_tag_.insert_behind(receive, tag_hash(receive.tag), is_older);
    case Reach::Source:
      return receives_by_source_.insert_behind(
          receive, source_hash(receive.tag, receive.source_initiator, receive.source), is_older);
    case Reach::Wildcard:
      return put_in_order(wildcards_, receive);
  }
}

// Makes a pair of indices larger if more elements are in them than they have chains. Walks through
// all elements, but only once in kAddsPerChain adds for each chain; a chain has about as many at
// most. Not larger than kIndexBytes says. Returns the number of adds until the next look.
template <class List, class ByTag, class BySource>
std::size_t MatchQueue::grow(List& elements, ByTag& by_tag, BySource& by_source) {
  const auto chains = [&] { return std::max(by_tag.size(), by_source.size()); };
  std::size_t count = 0;
  for (auto at = elements.begin(); at != elements.end(); ++at) ++count;
  if (count > chains() && (tagged_ || directed_)) {
    for (auto& element : elements) drop_from_index(element);
    if (tagged_) by_tag.resize(count);
    if (directed_) by_source.resize(count);
    for (auto& element : elements) {
      if (!is_wildcard(element)) index(element);
    }
  }
  return kAddsPerChain * std::max(chains(), count);
}

void MatchQueue::put(PostedReceive& receive) {
  put_in_order(posted, receive);
  if (reach_of(receive) == Reach::Wildcard) leave_out(receive.ignore);
  index(receive);
  if (--puts_left_ == 0) [[unlikely]]
    puts_left_ = grow(posted, receives_by_tag_, receives_by_source_);
}

void MatchQueue::add(Envelope& message) {
  unexpected.push_back(message);
  index(message);
  if (--adds_left_ == 0) {
    adds_left_ = grow(unexpected, messages_by_tag_, messages_by_source_);
  }
}

// A receive ignores these bits. If they are few, the indices leave them out from now on. False:
// nothing changes.
[[gnu::noinline]] bool MatchQueue::leave_out(std::uint64_t ignore) {
  if ((ignore & indexed_bits_) == 0) return false;
  if (std::popcount(ignore | ~indexed_bits_) > kMostLeftOut) return false;
  indexed_bits_ &= ~ignore;
  for (Envelope& message : unexpected) {
    drop_from_index(message);
    index(message);
  }
  for (PostedReceive& receive : posted) {
    if (!static_cast<ChainNode<ExactTag>&>(receive).chained()) continue;
    ChainTable<PostedReceive, ExactTag>::remove(receive);
    index(receive);
  }
  return true;
}

void MatchQueue::index(Envelope& message) {
  if (tagged_) messages_by_tag_.push_back(message, tag_hash(message.match_bits));
  if (!directed_) return;
  messages_by_source_.push_back(message,
                                source_hash(message.match_bits, message.initiator, message.source));
}

void MatchQueue::remove(PostedReceive& receive) {
  PostedList::remove(receive);
  if (static_cast<ListNode<WildcardTag>&>(receive).linked()) return WildcardList::remove(receive);
  ChainTable<PostedReceive, ExactTag>::remove(receive);
}

void MatchQueue::remove(Envelope& message) {
  IntrusiveList<Envelope, UnexpectedTag>::remove(message);
  drop_from_index(message);
}

PostedReceive* MatchQueue::find_operation(const void* operation) {
  for (PostedReceive& receive : posted) {
    if (receive.operation == operation) return &receive;
  }
  return nullptr;
}

void leave_queue(Envelope& message) {
  ReceiveOwner* owner = message.context->receives.owner;
  void* const token = std::exchange(message.claimed_by, nullptr);
  if (owner != nullptr && token != nullptr) owner->lost(token);
  MatchQueue::remove(message);
}

}  // namespace uet::ses
