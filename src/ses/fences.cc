// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/fences.h"

namespace uet::ses {
namespace {

bool is_holding(const Context& context) {
  return static_cast<const ListNode<HoldingTag>&>(context).linked();
}

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

bool Fences::must_wait(TxMessage& message) {
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

void Fences::hold(TxMessage& message) {
  Context& context = *message.context;
  auto later = context.held.begin();  // one that is sent again belongs to its old place
  if (context.held.empty() || context.held.back().sequence < message.sequence) {
    later = context.held.end();
  }
  while (later != context.held.end() && later->sequence < message.sequence) ++later;
  context.held.insert(later, message);
  if (!is_holding(context)) holding_.push_back(context);
}

void Fences::unhold(TxMessage& message) {
  Context& context = *message.context;
  IntrusiveList<TxMessage, HeldTag>::remove(message);
  if (context.held.empty()) holding_.remove(context);
}

}  // namespace uet::ses
