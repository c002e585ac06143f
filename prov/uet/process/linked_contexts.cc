// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "process/linked_contexts.h"

#include <rdma/fi_errno.h>

#include <iterator>
#include <new>

namespace uet::prov {

namespace {

constexpr std::size_t kMostRefusals = 64;  // hints that were not taken yet

ses::Completion failed(const LinkedOperation& operation) {
  ses::Completion completion;
  completion.kind = operation.kind;
  completion.status = ses::Status::Cancelled;
  completion.host_error = FI_EIO;
  completion.context = operation.context;
  completion.user_flags = operation.user_flags;
  completion.released = operation.multi;
  return completion;
}

FepAddress source_of(const SharedEvent& event) {
  FepAddress source;
  source.ip.bytes = event.source_ip;
  source.ip.is_ipv6 = (event.marks & SharedEvent::kIpv6) != 0;
  source.port = event.source_port;
  source.sdi = event.source_sdi;
  return source;
}

ses::Completion completion_of(const SharedEvent& event) {
  const auto has = [&](SharedEvent::Mark mark) { return (event.marks & mark) != 0; };
  ses::Completion completion;
  completion.kind = static_cast<ses::Kind>(event.operation);
  completion.status = static_cast<ses::Status>(event.status);
  completion.return_code = static_cast<wire::ReturnCode>(event.return_code);
  completion.pds_error = static_cast<pds::PdsError>(event.pds_error);
  completion.host_error = event.host_error;
  completion.length = event.length;
  completion.excess = event.excess;
  completion.buffer = address_of(event.buffer);
  completion.tag = event.tag;
  completion.has_data = has(SharedEvent::kHasData);
  completion.data = event.data;
  completion.multi = has(SharedEvent::kMulti);
  completion.released = has(SharedEvent::kReleased);
  completion.took_receive = has(SharedEvent::kTookReceive);
  completion.source = source_of(event);
  completion.source_initiator = InitiatorId{event.source_initiator};
  completion.source_job = JobId{event.source_job};
  return completion;
}

}  // namespace

void LinkedContexts::open(ContextNumber number, const Context& context) {
  if (all_.size() <= number) all_.resize(std::size_t{number} + 1);
  all_[number] = context;
}

void LinkedContexts::close(ContextNumber number) {
  all_[number] = {};
  operations_.for_each([&](OperationNumber operation, const LinkedOperation& its) {
    if (its.owner == number) operations_.remove(operation);
  });
  const auto aside = set_aside_.find(number);
  if (aside == set_aside_.end()) return;
  set_aside_count_ -= aside->second.size();
  set_aside_.erase(aside);
}

bool LinkedContexts::count(OperationNumber number) {
  LinkedOperation& operation = *operations_.find(number);
  operation.counted = true;
  Context& context = all_[operation.owner];
  const bool transmit = is_transmit(operation.kind);
  ++(transmit ? context.transmits : context.receives);
  return transmit;
}

bool LinkedContexts::take(const SharedEvent& event, const EngineRequests& requests) {
  switch (static_cast<EventKind>(event.kind)) {
    case EventKind::Completion:
      return complete(event);
    case EventKind::ContextAccess:
    case EventKind::RegionAccess:
      count_access(event, requests);
      return true;
    case EventKind::Refusal:
      if (refusals_.size() < kMostRefusals) refusals_.push_back(source_of(event));
      return true;
    case EventKind::PeerGivenUp:
      if (watcher_ != nullptr) {
        watcher_->peer_given_up(source_of(event), static_cast<pds::PdsError>(event.pds_error));
      }
      return true;
  }
  return true;
}

// Of receives from a shared queue, and of those of a multi-receive, no post has reserved an entry.
bool LinkedContexts::complete(const SharedEvent& event) {
  ses::CompletionSink* const sink = sink_of(event.context);
  ses::Completion completion = completion_of(event);
  const LinkedOperation* const operation = operations_.find(event.number);
  const bool shared = operation != nullptr && all_[operation->owner].is_queue;
  const bool reserves = completion.multi || shared;
  if (operation != nullptr) {
    completion.context = operation->context;
    completion.user_flags = operation->user_flags;
  }
  if (sink != nullptr) {
    const bool others_wait = !is_transmit(completion.kind) && set_aside_.contains(event.context);
    if (!others_wait && has_place(*sink, completion, reserves)) {
      sink->complete(completion);
    } else {
      try {
        set_aside_[event.context].push_back({completion, reserves});
      } catch (const std::bad_alloc&) {
        return false;
      }
      ++set_aside_count_;
    }
  }
  if (operation != nullptr && (sink != nullptr || shared)) end(event.number, completion);
  return true;
}

// Reserves it for a completion that `reserves`.
bool LinkedContexts::has_place(ses::CompletionSink& sink, const ses::Completion& completion,
                               bool reserves) {
  const bool is_event = completion.kind == ses::Kind::RemoteWrite && !completion.took_receive;
  if (is_event && !sink.can_take_event()) return false;
  return !reserves || sink.reserve_receive();
}

bool LinkedContexts::give_set_aside() {
  const std::size_t before = set_aside_count_;
  for (auto aside = set_aside_.begin(); aside != set_aside_.end();) {
    ses::CompletionSink& sink = *all_[aside->first].sink;
    std::deque<SetAside>& waiting = aside->second;
    while (!waiting.empty() &&
           has_place(sink, waiting.front().completion, waiting.front().reserves)) {
      sink.complete(waiting.front().completion);
      waiting.pop_front();
      --set_aside_count_;
    }
    aside = waiting.empty() ? set_aside_.erase(aside) : std::next(aside);
  }
  return set_aside_count_ < before;
}

// Its last completion, or one of a multi-receive, or that of a peek which has claimed a message.
void LinkedContexts::end(OperationNumber number, const ses::Completion& completion) {
  const LinkedOperation& operation = *operations_.find(number);
  if (operation.multi && !completion.released) return;
  if (operation.claims && completion.status == ses::Status::Ok) return;
  remove(number);
}

void LinkedContexts::remove(OperationNumber number) {
  const LinkedOperation& operation = *operations_.find(number);
  Context& context = all_[operation.owner];
  if (operation.counted) --(is_transmit(operation.kind) ? context.transmits : context.receives);
  operations_.remove(number);
}

void LinkedContexts::count_access(const SharedEvent& event, const EngineRequests& requests) {
  if (static_cast<EventKind>(event.kind) == EventKind::RegionAccess) {
    ri::AccessObserver* const observer = requests.observer(Rkey{event.buffer});
    if (observer == nullptr) return;
    if (event.excess == 0) observer->accessed_part(event.operation, event.length);
    for (std::uint64_t i = 0; i < event.excess; ++i) {
      observer->accessed(event.operation, i == 0 ? event.length : 0);
    }
    return;
  }
  ses::CompletionSink* const sink = sink_of(event.context);
  if (sink == nullptr) return;
  const auto kind = static_cast<ses::Kind>(event.operation);
  if (event.excess == 0) sink->remote_part(kind, event.length);
  for (std::uint64_t i = 0; i < event.excess; ++i) {
    sink->remote_access(kind, i == 0 ? event.length : 0);
  }
}

void LinkedContexts::fail_all() {
  operations_.for_each([&](OperationNumber number, const LinkedOperation& operation) {
    const ses::Completion completion = failed(operation);
    const Context& context = all_[operation.owner];
    const bool peek_has_ended = operation.claims;
    remove(number);
    if (context.sink == nullptr || peek_has_ended) return;
    if (!context.is_queue || context.sink->reserve_receive()) context.sink->complete(completion);
  });
}

std::optional<FepAddress> LinkedContexts::take_refusal() {
  if (refusals_.empty()) return {};
  const FepAddress first = refusals_.front();
  refusals_.pop_front();
  return first;
}

}  // namespace uet::prov
