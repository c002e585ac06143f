// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The fence: an operation that waits until all earlier ones of its context to the same peer have
// completed, and makes all later ones to that peer wait behind it (fi_endpoint(3), FI_FENCE).
#include "uet/ses/initiator.h"

namespace uet::ses {
namespace {

// How soon to try again when PDS had no PDC: no event tells when it has.
constexpr Duration kRetry = std::chrono::milliseconds(1);

bool same_peer(const TxMessage& a, const TxMessage& b) {
  return a.to == b.to && a.header.pid_on_fep == b.header.pid_on_fep &&
         a.header.resource_index == b.header.resource_index && a.header.rel == b.header.rel;
}

}  // namespace

// For one that is being posted, or is held.
bool Initiator::must_wait(const TxMessage& message) const {
  Context& context = *message.context;
  for (const TxMessage& other : context.held) {
    if (&other == &message) break;
    if (same_peer(other, message)) return true;
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
  context.held.push_back(message);
  if (!context.linked()) holding_.push_back(context);
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
    if (start(message, now)) {
      unhold(message);
    } else {
      next_try_ = now + kRetry;
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
