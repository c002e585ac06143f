// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A slab of message states, and an index of the messages that are not complete.
#include "ses/arriving.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/longest_wait.h"
#include "ses/rendezvous.h"
#include "ses/return_code.h"

namespace uet::ses {
namespace {

constexpr std::size_t kSpareReserve = 4;  // refusals leave 1/4
constexpr std::size_t kShareWeight = 1;   // one host has half of all states at most
constexpr Duration kStalledInterval = std::chrono::milliseconds(100);  // of looks for stalled ones

void set_rendezvous(RxMessage& message, const wire::SesRequest& request) {
  const wire::RendezvousExtension& where = request.rendezvous;
  message.rendezvous = where;
  message.relative = request.rel;
  message.expected = where.eager_length;
  message.read_from = where.eager_length;
  message.outsized = is_outsized(request);
  message.must_read = where.eager_length < message.request_length;
  message.readable = !message.must_read && is_message_key(where.read_memory_key);
}

bool is_arriving(const RxMessage& message) {
  return static_cast<const ListNode<ArrivingTag>&>(message).linked();
}

// The answer that tells a sender that nothing has become of its message.
wire::ReturnCode code_of_end(const RxMessage& message) {
  return message.state == RxState::Error ? message.return_code : wire::ReturnCode::Dropped;
}

}  // namespace

ArrivingMessages::ArrivingMessages(std::size_t capacity, PieceStore& pieces, std::uint64_t seed)
    : pieces_(pieces),
      capacity_(capacity),
      shares_(kShareWeight, seed),
      buckets_(std::make_unique<RxMessage*[]>(mask_ + 1)) {}

RxMessage** ArrivingMessages::bucket(PdcId pdc, MsgId id) {
  const std::uint32_t key = std::uint32_t{pdc.value} << 16 | id.value;
  return &buckets_[(key * 0x9E3779B1U >> 8) & mask_];
}

RxMessage* ArrivingMessages::find(PdcId pdc, MsgId id) {
  if (last_ != nullptr && last_->pdc == pdc && last_->message_id == id) return last_;
  for (RxMessage* at = *bucket(pdc, id); at != nullptr; at = at->next_in_bucket) {
    if (at->pdc == pdc && at->message_id == id) return last_ = at;
  }
  return nullptr;
}

// If memory is short, the chains grow longer.
void ArrivingMessages::grow_index() {
  const std::size_t mask = 2 * mask_ + 1;
  std::unique_ptr<RxMessage*[]> buckets(new (std::nothrow) RxMessage*[mask + 1]());
  if (buckets == nullptr) return;
  mask_ = mask;
  buckets_ = std::move(buckets);
  for (RxMessage& message : arriving_) {
    RxMessage** head = bucket(message.pdc, message.message_id);
    message.next_in_bucket = *head;
    *head = &message;
  }
}

void ArrivingMessages::insert(RxMessage& message) {
  if (++indexed_ > mask_) grow_index();
  RxMessage** head = bucket(message.pdc, message.message_id);
  message.next_in_bucket = *head;
  *head = &message;
  arriving_.push_back(message);
  last_ = &message;
}

void ArrivingMessages::remove(RxMessage& message) {
  --indexed_;
  RxMessage** at = bucket(message.pdc, message.message_id);
  while (*at != &message) at = &(*at)->next_in_bucket;
  *at = message.next_in_bucket;
  IntrusiveList<RxMessage, ArrivingTag>::remove(message);
  if (last_ == &message) last_ = nullptr;
}

// Ends the PDC of the message that has been without a packet for longest, if that is long. Not on
// behalf of a host that has more states itself. Without a shortage a stalled message does no harm,
// and its sender may be waiting for a receive here.
void ArrivingMessages::end_stalled(const pds::RequestView& refused) {
  if (now_ < next_stalled_search_) return;
  next_stalled_search_ = now_ + kStalledInterval;
  const std::size_t held = shares_.held(host_hash(refused.source.ip));
  LongestWait<const RxMessage> search(held, kStalled);
  for (const RxMessage& message : arriving_) {
    if (message.pdc == refused.pdc) continue;
    search.consider(message, shares_.held(host_hash(message.source.ip)), now_ - message.heard);
  }
  if (search.found() != nullptr) delivery_->abort(search.found()->pdc, now_);
}

void ArrivingMessages::count_in_progress(RxMessage& message) {
  if (!message.kept) return;
  message.kept = false;
  --kept_;
  shares_.take(host_hash(message.source.ip), 1);
}

RxMessage* ArrivingMessages::open(const pds::RequestView& view, const wire::SesRequest& request,
                                  Context& context, RxState state) {
  const bool kept = state == RxState::Unexpected;
  const bool beyond = !kept && !has_share(view.source);
  if (beyond && !may_take_reserve(view)) {
    end_stalled(view);
    return nullptr;
  }
  bool* const reserve = beyond ? reserve_taken_.make(view.pdc.value) : nullptr;
  if (beyond && reserve == nullptr) return nullptr;
  RxMessage* message = messages_.take();
  if (message == nullptr) return nullptr;
  message->kept = kept;
  if (kept) {
    ++kept_;
  } else {
    shares_.take(host_hash(view.source.ip), 1);
  }
  if (beyond) {
    message->reserve = view.pdc;
    *reserve = true;
  }
  message->heard = now_;
  message->describe(view, request, context);
  message->state = state;
  message->expected = request.request_length;
  message->opcode = request.opcode;
  message->buffer_offset = request.buffer_offset;
  message->delivery_complete = request.dc;
  message->read_from = request.request_length;
  if (wire::has_rendezvous_extension(request.opcode)) set_rendezvous(*message, request);
  if (is_single(request)) return message;
  insert(*message);
  if (state != RxState::Error) await(*message);
  return message;
}

void ArrivingMessages::await(RxMessage& message) {
  if (message.holds_pdc) return;
  message.holds_pdc = true;
  message.watches = !is_arriving(message);
  if (message.watches) {
    delivery_->watch(message.pdc);
  } else {
    delivery_->lock(message.pdc);
  }
}

bool ArrivingMessages::refuse(const pds::RequestView& view, const wire::SesRequest& request,
                              Context& context, wire::ReturnCode code) {
  if (is_single(request) || request.opcode == wire::SesOpcode::Read) return true;
  if (available() <= capacity_ / kSpareReserve && !may_take_reserve(view)) return false;
  RxMessage* message = open(view, request, context, RxState::Error);
  if (message == nullptr) return false;
  message->return_code = code;
  account(*message, request);
  if (message->received >= message->expected) release(*message);
  return true;
}

// No further packet of the message is missed if it does not come.
void ArrivingMessages::stop_awaiting(RxMessage& message) {
  if (!message.holds_pdc) return;
  message.holds_pdc = false;
  if (message.watches) {
    delivery_->unwatch(message.pdc);
  } else {
    delivery_->unlock(message.pdc);
  }
}

void ArrivingMessages::account(RxMessage& message, const wire::SesRequest& request) {
  message.received += request.payload.size();
  if (request.som) message.describe_first(request);
}

void ArrivingMessages::arrived(RxMessage& message) {
  if (!is_arriving(message)) return;
  const bool goes_on = message.holds_pdc && (message.must_read || message.parked);
  stop_awaiting(message);
  remove(message);
  if (goes_on) await(message);
}

void ArrivingMessages::answer(Envelope& message, const Placement& placement,
                              wire::ReturnCode code) {
  if (!message.answer_owed) return;
  message.answer_owed = false;
  wire::SesRequest request;
  request.message_id = message.message_id;
  request.job_id = message.job;
  const std::uint64_t modified = modified_length(message, placement);
  // OVERFLOW with 0 would put the message off (SES-67).
  const bool no_room = modified == 0 && message.request_length > 0;
  const wire::List list = no_room ? wire::List::Expected : wire::List::Overflow;
  delivery_->answer(
      message.pdc, message.answer_psn,
      explicit_response(request, code, list, modified, message.context->generation.value, true));
}

void ArrivingMessages::leave_context(RxMessage& message) {
  answer(message, code_of_end(message));
  message.context = nullptr;
}

void ArrivingMessages::abandon(RxMessage& message, wire::ReturnCode code) {
  if (message.state != RxState::Error) message.return_code = code;
  message.state = RxState::Error;
  answer(message, message.return_code);
  stop_awaiting(message);
  if (message.received >= message.expected) release(message);
}

void ArrivingMessages::release(RxMessage& message) {
  answer(message, code_of_end(message));
  pieces_.give_back_all(message.pieces);
  stop_awaiting(message);
  if (is_arriving(message)) remove(message);
  if (static_cast<ListNode<UnexpectedTag>&>(message).linked()) {
    MatchQueue::remove(message);
  }
  if (static_cast<ListNode<PullTag>&>(message).linked()) {
    IntrusiveList<RxMessage, PullTag>::remove(message);
  }
  count_in_progress(message);
  if (message.reserve != PdcId{}) *reserve_taken_.make(message.reserve.value) = false;
  shares_.give_back(host_hash(message.source.ip), 1);
  messages_.give_back(&message);
}

}  // namespace uet::ses
