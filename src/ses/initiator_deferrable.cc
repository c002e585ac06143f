// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Deferrable sends at their sender (SES-65 to 75): the target may drop a message that it has no
// receive for, and asks for it again when it has one. Until then the message is parked here, with
// nothing of it under way.
#include "uet/ses/initiator.h"

namespace uet::ses {

// Long ones without order, since what is put off is overtaken (SES-74). A target need not do so:
// then they are ordinary sends (SES-75).
void Initiator::offer_deferral(TxMessage& message, const Peer& peer) {
  const bool served = uses_deferral_ && peer.ai_full && message.mode == DeliveryMode::Rud;
  if (!served || message.readable || message.length < deferrable_threshold_bytes_) return;
  wire::SesRequest& header = message.header;
  header.opcode = message.kind == Kind::TaggedSend ? wire::SesOpcode::DeferrableTsend
                                                   : wire::SesOpcode::DeferrableSend;
  if (++last_token_ == 0) ++last_token_;
  message.restart_token = last_token_;
  header.set_restart_tokens(message.restart_token, 0);
  deferrable_.push_back(message);
}

// The target keeps nothing of it but its name (SES-67).
void Initiator::park(TxMessage& message, Time now) {
  if (message.deferred || message.failed()) return;
  message.deferred = true;
  message.awaiting_since = now;
  watch(message);
  deferrable_.remove(message);
  deferred_.push_back(message);
}

TxMessage* Initiator::find_deferrable(std::uint32_t token) {
  for (auto* list : {&deferred_, &deferrable_}) {
    for (TxMessage& message : *list) {
      if (message.restart_token == token) return &message;
    }
  }
  return nullptr;
}

// From its first byte on, whatever position the target names (SES-70), as a new message (SES-72).
// The request may come before the answers of what was sent.
wire::ReturnCode Initiator::restart(const wire::SesRequest& request, const FepAddress& source,
                                    Time now) {
  TxMessage* message = find_deferrable(request.initiator_restart_token());
  const bool valid = message != nullptr && !message->failed() && message->packets_made > 0 &&
                     message->to == source && message->header.initiator == request.initiator &&
                     message->header.job_id == request.job_id;
  if (!valid) return wire::ReturnCode::OpViolation;  // SES-71
  const std::uint32_t token = request.target_restart_token();
  const bool repeated = message->target_restart_token == token;
  if (repeated) return wire::ReturnCode::Ok;
  park(*message, now);
  // The packet that ends the first try repeats what the others of it said (SES-23).
  message->target_restart_token = token;
  message->restart = true;
  message->not_before = now;
  finish_if_done(*message);
  return wire::ReturnCode::Ok;
}

void Initiator::expire_deferred(Time now) {
  if (deferred_timeout_ == Duration{0}) return;
  for (auto at = deferred_.begin(); at != deferred_.end();) {
    TxMessage& message = *at;
    ++at;
    if (now - message.awaiting_since < deferred_timeout_) return;
    if (message.failed() || message.restart) continue;
    fail(message, pds::PdsError::RtoExhausted);  // FI_ETIMEDOUT, as SES-64
    abandon(message, now);
  }
}

Time Initiator::deferred_deadline() {
  if (deferred_timeout_ == Duration{0}) return kNever;
  for (const TxMessage& message : deferred_) {
    if (!message.failed() && !message.restart) return message.awaiting_since + deferred_timeout_;
  }
  return kNever;
}

// ---- what a target asks ------------------------------------------------------------------------

Result<void> Initiator::request_restart(RxMessage& message, std::uint32_t token, Time now) {
  TxMessage* request = prepare_pull(message, wire::SesOpcode::DeferrableRtr);
  if (request == nullptr) return Error::Again;
  request->header.initiator = message.initiator;
  request->header.set_restart_tokens(static_cast<std::uint32_t>(message.buffer_offset >> 32),
                                     token);
  return submit_pull(*request, message, now);
}

void Initiator::forget_restart(const RxMessage& message) {
  for (TxMessage& request : pulling_) {
    if (request.pull_for == &message) request.pull_for = nullptr;
  }
}

}  // namespace uet::ses
