// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Messages whose sender waits until the target has read them to their end (SES-57, SES-61 to 63).
// The target reads the data that it dropped while it had no receive, and the remainder behind a
// shorter eager part. A read of no bytes at the end informs the sender that all data have arrived.
//
// Such a message is deferred_ until its eager part is here and a receive is bound to it. Then it
// waits its turn (waiting_) and is read (reading_). A message that no receive will get takes the
// same steps without a receive, so that its sender can finish.
#include <algorithm>
#include <array>

#include "uet/ses/initiator.h"
#include "uet/ses/receive.h"
#include "uet/ses/return_code.h"

namespace uet::ses {

using pds::Response;
using wire::ReturnCode;

namespace {

// How soon to try again when there was no PDC or no message: not every event says when there is.
constexpr Duration kRetry = std::chrono::milliseconds(1);
constexpr int kTries = 8;  // that may fail in one pass

bool is_listed(const RxMessage& message) {
  return static_cast<const ListNode<PullTag>&>(message).linked();
}

// Bytes [offset, offset + length) of the slices as slices; their number.
std::size_t cut(std::span<const IoSlice> slices, std::uint64_t offset, std::uint64_t length,
                std::array<IoSlice, kMaxIoSlices>& out) {
  std::size_t count = 0;
  for (const IoSlice& slice : slices) {
    if (offset >= slice.length) {
      offset -= slice.length;
      continue;
    }
    const std::uint64_t part = std::min<std::uint64_t>(slice.length - offset, length);
    if (part > 0) out[count++] = {slice.data + offset, part, slice.device};
    length -= part;
    offset = 0;
  }
  return count;
}

}  // namespace

// From now on the sender waits for us, and we for it.
void Receiver::defer(RxMessage& message) {
  message.must_read = true;
  deferred_.push_back(message);
  messages_.await(message);
}

// The eager part of a message that is bound to a receive is in place.
void Receiver::eager_part_is_here(RxMessage& message) {
  if (!message.must_read) return complete_receive(message);
  messages_.arrived(message);
  PullList::remove(message);
  if (message.read_from >= modified_length(message)) return complete_receive(message);
  waiting_.push_back(message);
  next_try_ = Time{};
}

// The sender saw that we drop what comes and ends the eager part where it stands (as SES-69).
Response Receiver::end_eager_part(const wire::SesRequest& request, RxMessage& message) {
  message.expected = request.message_offset;
  message.read_from = std::min<std::uint64_t>(message.read_from, request.message_offset);
  const Response response = default_response(request, modified_length(message));
  if (message.complete()) {
    if (message.state == RxState::Matched) {
      eager_part_is_here(message);
    } else {
      messages_.arrived(message);
    }
  }
  return response;
}

// Done with the message; its sender may have to be told.
void Receiver::dismiss(RxMessage& message) {
  if (message.parked) return messages_.arrived(message);
  if (!message.must_read) return messages_.release(message);
  messages_.arrived(message);
  if (is_listed(message)) PullList::remove(message);
  message.context = nullptr;
  message.state = RxState::Error;
  message.leaving = true;
  waiting_.push_back(message);
  next_try_ = Time{};
}

// Its sender waits no longer.
void Receiver::stop_reading(RxMessage& message) {
  message.must_read = false;
  if (is_listed(message)) PullList::remove(message);
}

Result<void> Receiver::read(RxMessage& message, Time now) {
  if (message.parked) return request_restart(message, now);
  std::array<IoSlice, kMaxIoSlices> into;
  if (message.leaving) return initiator_.pulls().read(message, message.request_length, {}, now);
  const std::uint64_t length = modified_length(message) - message.read_from;
  const std::size_t count =
      cut(message.receive->slices(), message.base + message.read_from, length, into);
  return initiator_.pulls().read(message, message.read_from, {into.data(), count}, now);
}

void Receiver::progress(Time now) {
  settle();
  expire_parked(now);
  if (now < next_try_) return;
  int failures = 0;
  for (auto at = waiting_.begin(); at != waiting_.end() && failures < kTries;) {
    RxMessage& message = *at;
    ++at;
    if (!messages_.source_is_proved(message)) {
      ++failures;  // and it goes behind the others
      PullList::remove(message);
      waiting_.push_back(message);
      continue;
    }
    if (!read(message, now)) {
      ++failures;
      continue;
    }
    PullList::remove(message);
    (message.parked ? restarting_ : reading_).push_back(message);
  }
  next_try_ = now + kRetry;
}

Time Receiver::next_deadline() {
  const bool waits = !short_of_room_.empty() || !waiting_.empty();
  return std::min(waits ? next_try_ : kNever, parked_deadline());
}

void Receiver::pulled(RxMessage& message, Status status, bool not_consumed) noexcept {
  if (message.parked) return restart_requested(message, status, not_consumed);
  PullList::remove(message);
  // PDS-142: on a new PDC, the first time at once.
  const bool again = not_consumed && message.tries++ < retries_;
  if (!again || message.tries == 1) next_try_ = Time{};
  if (message.context == nullptr && !message.leaving) {  // closed meanwhile
    message.must_read = again || status == Status::Ok;
    return dismiss(message);
  }
  if (again) return waiting_.push_back(message);
  if (message.leaving) return messages_.release(message);
  if (status != Status::Ok) {  // SES-64
    message.must_read = false;
    return fail_receive(message, ReturnCode::Dropped,
                        status == Status::PdsError ? Status::PeerLost : Status::Abandoned);
  }
  message.placed = modified_length(message);
  message.must_read = message.placed < message.request_length;  // SES-63
  complete_receive(message);
}

// On the PDC that the message came on, or, if that has closed meanwhile, on any of its sender.
void Receiver::abandoned(const pds::RequestView& view, const wire::SesRequest& request) {
  const auto is_meant = [&](const RxMessage& message) {
    if (message.message_id != request.message_id || message.leaving) return false;
    if (message.pdc != PdcId{}) return message.pdc == view.pdc;
    return message.source == view.source && message.initiator == request.initiator &&
           message.job == request.job_id;
  };
  for (PullList* list : {&deferred_, &waiting_, &parked_, &restarting_}) {
    for (RxMessage& message : *list) {
      if (!is_meant(message)) continue;
      return end_message(message, ReturnCode::Dropped, Status::Abandoned);
    }
  }
}

void Receiver::pdc_closed(PdcId pdc, bool orderly) {
  drop_parked(pdc, orderly);
  for (auto at = deferred_.begin(); at != deferred_.end();) {
    RxMessage& message = *at;
    ++at;
    if (message.pdc != pdc) continue;
    message.awaited = false;
    if (orderly && message.complete()) {  // it can be read all the same
      message.pdc = {};
      continue;
    }
    stop_reading(message);
    // All of it may be here, and only its sender's wish to know unfulfilled.
    const bool whole = message.complete() && message.read_from == message.request_length;
    if (!whole) end_message(message, ReturnCode::Dropped, Status::PeerLost);
  }
  for (PullList* list : {&waiting_, &reading_}) {
    for (RxMessage& message : *list) {
      if (message.pdc != pdc) continue;
      message.awaited = false;
      if (orderly) message.pdc = {};
    }
  }
}

// Ends a message that no receive will get. If it has not arrived whole, it is forgotten: its later
// packets are refused, and its sender fails.
void Receiver::dismiss_unexpected(Envelope& envelope) {
  if (envelope.single) {
    leave_queue(envelope);
    return release(static_cast<SingleMessage&>(envelope), ReturnCode::Dropped);
  }
  auto& message = static_cast<RxMessage&>(envelope);
  if (message.parked) {
    leave_parked(message);
    return;
  }
  drop_unexpected(message);
  if (!message.complete()) stop_reading(message);
  message.undelivered = message.delivery_complete;
  dismiss(message);
}

// Of a context that is being closed; takes them off their receives, which `release_receive` ends.
template <class ReleaseReceive>
void Receiver::dismiss_reads(Context& context, ReleaseReceive release_receive) {
  for (PullList* list : {&waiting_, &reading_}) {
    for (auto at = list->begin(); at != list->end();) {
      RxMessage& message = *at;
      ++at;
      if (message.context != &context) continue;
      release_receive(receives_.withdraw(message, message));
      message.undelivered = message.delivery_complete;
      if (list == &waiting_) {
        dismiss(message);
      } else {
        initiator_.pulls().forget_memory(message);
        message.context = nullptr;
      }
    }
  }
}

// The same of those that were put off.
template <class ReleaseReceive>
void Receiver::leave_parked(Context& context, ReleaseReceive release_receive) {
  for (PullList* list : {&waiting_, &restarting_}) {
    for (auto at = list->begin(); at != list->end();) {
      RxMessage& message = *at;
      ++at;
      if (!message.parked || message.context != &context) continue;
      PostedReceive* receive = leave_parked(message);
      if (receive != nullptr) release_receive(*receive);
    }
  }
}

void Receiver::close_context(Context& context) {
  context.closing = true;
  ReceiveQueue& queue = context.receives;
  for (auto* list : {&queue.untagged.unexpected, &queue.tagged.unexpected, &queue.claimed}) {
    for (auto at = list->begin(); at != list->end();) {
      Envelope& message = *at;
      ++at;
      if (message.context == &context) dismiss_unexpected(message);
    }
  }
  const auto release_receive = [&](PostedReceive& receive) {
    if (queue.owner != nullptr) {
      queue.owner->vanished(receive.operation);
      receives_.release(receive);
    } else if (queue.shared) {
      restore(receive);
    } else if (!receive.linked() && receive.under_way == 0) {
      receives_.release(receive);
    }
  };
  leave_parked(context, release_receive);
  dismiss_reads(context, release_receive);
  messages_.for_each([&](RxMessage& message) {
    if (message.context != &context) return;
    PostedReceive* receive =
        message.state == RxState::Matched ? &receives_.withdraw(message, message) : nullptr;
    messages_.release(message);
    if (receive != nullptr) release_receive(*receive);
  });
  if (!context.generation.enabled) queue.disabled.remove(context);
  if (!queue.shared) close_queue(queue);
  UET_ASSERT(context.unexpected_bytes == 0);
}

void Receiver::discard_all() {
  for (PullList* list : {&deferred_, &waiting_, &reading_, &parked_, &restarting_}) {
    while (!list->empty()) {
      RxMessage& message = list->front();
      message.awaited = false;
      messages_.release(message);
    }
  }
}

}  // namespace uet::ses
