// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Operations that must wait. The fence: an operation that waits until all earlier ones of its
// context to the same peer have completed, and makes all later ones to that peer wait behind it
// (fi_endpoint(3), FI_FENCE).
#include <algorithm>

#include "uet/ses/initiator.h"

namespace uet::ses {
namespace {

bool is_holding(const Context& context) {
  return static_cast<const ListNode<HoldingTag>&>(context).linked();
}

// How soon to try again when PDS had no PDC: no event tells when it has.
constexpr Duration kRetry = std::chrono::milliseconds(1);

// On ROD whatever follows a refused message comes after it (SES-54).
bool follows_refused(const TxMessage& message) {
  Context& context = *message.context;
  if (context.refused_count == 0 || message.mode != DeliveryMode::Rod) return false;
  for (const TxMessage& other : context.transmitting) {
    if (&other == &message) break;
    if (other.refused && same_peer(other, message)) return true;
  }
  return false;
}

// Nothing waits for an unordered one that only waits for its next try.
bool may_be_overtaken(const TxMessage& message) {
  const bool sent_again = message.refused || message.restart_token != 0;
  return sent_again && !message.fence && message.mode != DeliveryMode::Rod;
}

}  // namespace

// For one that is being posted, or is held.
bool Initiator::must_wait(TxMessage& message) {
  Context& context = *message.context;
  // A fence, since others may have been refused that we have not heard of yet.
  if (follows_refused(message)) message.fence = true;
  for (const TxMessage& other : context.held) {
    if (&other == &message) break;
    if (same_peer(other, message) && !may_be_overtaken(other)) return true;
  }
  if (!message.fence) return false;
  for (const TxMessage& other : context.transmitting) {
    if (&other == &message) break;
    if (same_peer(other, message)) return true;
  }
  return false;
}

void Initiator::hold(TxMessage& message) {
  Context& context = *message.context;
  auto later = context.held.begin();  // one that is sent again belongs to its old place
  if (context.held.empty() || context.held.back().sequence < message.sequence) {
    later = context.held.end();
  }
  while (later != context.held.end() && later->sequence < message.sequence) ++later;
  context.held.insert(later, message);
  if (!is_holding(context)) holding_.push_back(context);
}

void Initiator::unhold(TxMessage& message) {
  Context& context = *message.context;
  IntrusiveList<TxMessage, HeldTag>::remove(message);
  if (context.held.empty()) holding_.remove(context);
}

void Initiator::start_held(Context& context, Time now) {
  for (auto at = context.held.begin(); at != context.held.end();) {
    TxMessage& message = *at;
    ++at;
    if (must_wait(message)) continue;
    if (now < message.not_before) {
      next_try_ = std::min(next_try_, message.not_before);
      continue;
    }
    if (start(message, now)) {
      unhold(message);
    } else {
      next_try_ = std::min(next_try_, now + kRetry);
    }
  }
}

void Initiator::start_all_held(Time now) {
  if (now < next_try_) return;
  next_try_ = kNever;
  for (auto at = holding_.begin(); at != holding_.end();) {
    Context& context = *at;
    ++at;
    start_held(context, now);
  }
}

}  // namespace uet::ses
