// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/deferred_sends.h"

#include <algorithm>

namespace uet::ses {

DeferredSends::DeferredSends(const Parameters& parameters, Watches& watches)
    : enabled_(parameters.deferrable),
      threshold_bytes_(std::max<std::uint64_t>(parameters.deferrable_threshold_bytes, 1)),
      timeout_(parameters.deferred_timeout),
      watches_(watches) {}

// Without order, since a message that is put off is overtaken (SES-74). A target need not put it
// off: then it is an ordinary send (SES-75).
void DeferredSends::offer(TxMessage& message, const Peer& peer) {
  const bool served = enabled_ && peer.ai_full && message.mode == DeliveryMode::Rud;
  if (!served || message.readable || message.length < threshold_bytes_) return;
  wire::SesRequest& header = message.header;
  header.opcode = message.kind == Kind::TaggedSend ? wire::SesOpcode::DeferrableTsend
                                                   : wire::SesOpcode::DeferrableSend;
  if (++last_token_ == 0) ++last_token_;
  message.restart_token = last_token_;
  header.set_restart_tokens(message.restart_token, 0);
  offered_.push_back(message);
}

void DeferredSends::take_back_offer(TxMessage& message) {
  if (message.restart_token == 0) return;
  offered_.remove(message);
  message.restart_token = 0;
  message.header.buffer_offset = 0;  // where the tokens were
}

void DeferredSends::park(TxMessage& message, Time now) {
  if (message.deferred || message.failed()) return;
  message.deferred = true;
  message.awaiting_since = now;
  watches_.start(message);
  offered_.remove(message);
  parked_.push_back(message);
}

TxMessage* DeferredSends::find(std::uint32_t token) {
  for (auto* list : {&parked_, &offered_}) {
    for (TxMessage& message : *list) {
      if (message.restart_token == token) return &message;
    }
  }
  return nullptr;
}

// From its first byte on, whatever position the target names (SES-70), as a new message (SES-72).
// The request may come before the answers of what was sent.
DeferredSends::Restart DeferredSends::restart(const wire::SesRequest& request,
                                              const FepAddress& source, Time now) {
  TxMessage* message = find(request.initiator_restart_token());
  const bool valid = message != nullptr && !message->failed() && message->packets_made > 0 &&
                     message->to == source && message->header.initiator == request.initiator &&
                     message->header.job_id == request.job_id;
  if (!valid) return {wire::ReturnCode::OpViolation, nullptr};  // SES-71
  const std::uint32_t token = request.target_restart_token();
  const bool repeated = message->target_restart_token == token;
  if (repeated) return {};
  park(*message, now);
  // The packet that ends the first try repeats what the others of it said (SES-23).
  message->target_restart_token = token;
  message->restart = true;
  message->not_before = now;
  return {wire::ReturnCode::Ok, message};
}

void DeferredSends::unpark(TxMessage& message) {
  if (message.deferred) {
    parked_.remove(message);
    offered_.push_back(message);
    message.header.set_restart_tokens(message.restart_token, message.target_restart_token);
  }
  message.deferred = false;
  message.restart = false;
}

Time DeferredSends::deadline() {
  if (timeout_ == Duration{0}) return kNever;
  for (const TxMessage& message : parked_) {
    if (!message.failed() && !message.restart) return message.awaiting_since + timeout_;
  }
  return kNever;
}

void DeferredSends::reconnect(Time now) {
  for (TxMessage& message : parked_) watches_.reconnect(message, now);
}

}  // namespace uet::ses
