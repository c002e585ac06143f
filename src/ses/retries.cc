// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/retries.h"

#include <algorithm>

#include "ses/return_code.h"

namespace uet::ses {

Retries::Retries(const Parameters& parameters, const Parts& parts, Counters& counters)
    : tries_limit_(parameters.retries),
      wait_(parameters.retry_wait),
      wait_most_(parameters.retry_wait_most),
      parts_(parts),
      counters_(counters),
      rng_(parameters.seed) {}

void Retries::refused(TxMessage& message, const wire::SesResponseHeader& header, Time now) {
  ++counters_.errors_received;
  const wire::ReturnCode code = header.return_code;
  Context* context = message.context;  // none: a target's own read
  const bool first = !message.failed();
  message.fail(code);
  if (context == nullptr || context->closing) return;
  if (code == wire::ReturnCode::UnsupportedOp) {
    // Not every peer that could know the opcodes beyond SEND does (WIRE 3.12): R states the profile
    // HPC without rendezvous.
    if (first) parts_.forms.note_plain_answer(message, false);
    if (!first || message.plain || !LongSendForms::has_plain_form(message)) return;
    parts_.forms.note_refusal(message);
    return send_again(message, true, now);
  }
  if (!passes(code)) return;
  if (message.mode == DeliveryMode::Rod) hold_back_later(message);
  const bool tells_generation =
      code == wire::ReturnCode::BadGeneration && header.next_hdr == wire::NextHdr::Response;
  if (tells_generation) parts_.generations.learn(message, header.ri_generation);
  if (!first || message.tries >= tries_limit_ || message.awaits_read || message.cancelled) return;
  // A generation that is known now needs no wait (SES-55).
  send_again(message, tells_generation, now);
}

// PDS-142: sent again, the message goes to another PDC; the first time without a wait, and whatever
// the limit is: no target has refused the message.
void Retries::not_consumed(TxMessage& message, Time now) {
  const bool first = !message.failed();
  message.fail(pds::PdsError::NotConsumed);
  const Context* context = message.context;  // none: a target's own read
  if (!first || context == nullptr || context->closing || message.cancelled) return;
  if (message.tries >= std::max<std::uint16_t>(tries_limit_, 1)) return;
  send_again(message, message.tries == 0, now);
}

void Retries::send_again(TxMessage& message, bool at_once, Time now) {
  ++message.tries;
  message.try_again = true;
  message.not_before = at_once ? now : now + wait_before(message.tries);
  mark_refused(message);
  if (message.mode == DeliveryMode::Rod) hold_back_later(message);
}

// About twice as long each time; at random, so that peers do not come all at once.
Duration Retries::wait_before(std::uint16_t next_try) {
  Duration wait = wait_;
  for (std::uint16_t i = 1; i < next_try && wait < wait_most_; ++i) wait *= 2;
  wait = std::min(wait, wait_most_);
  const auto half = static_cast<std::uint64_t>(std::max<Duration::rep>(wait.count() / 2, 1));
  return Duration(static_cast<Duration::rep>(half + rng_.below(half)));
}

// A message that follows the refused one and has not begun would only be refused too. One that has
// begun may have been refused already, without our having heard of it: later ones wait for it as
// well.
void Retries::hold_back_later(TxMessage& refused) {
  Context& context = *refused.context;
  for (TxMessage& message : context.transmitting) {
    const bool later = message.sequence > refused.sequence && same_peer(message, refused);
    if (!later || Fences::is_held(message)) continue;
    if (message.packets_made == 0 && delivery_->cancel(message)) {
      parts_.fences.hold(message);
    } else {
      mark_refused(message);
    }
  }
}

void Retries::mark_refused(TxMessage& message) {
  if (!message.refused) ++message.context->refused_count;
  message.refused = true;
}

void Retries::rewind(TxMessage& message) {
  parts_.operations.renew_id(message);
  if (message.readable) parts_.rendezvous.renew_key(message);
  parts_.watches.stop(message);
  parts_.deferred.unpark(message);
  message.try_again = false;
  message.ends_message = false;
  message.status = Status::Ok;
  message.return_code = {};
  message.ended = false;
  message.offset = 0;
  message.packets_made = 0;
  message.packets_answered = 0;
  message.packets_unconsumed = 0;
  message.next_gathered = message.gathered;
  message.fence = message.fence || message.mode == DeliveryMode::Rod;
  ++counters_.messages_retried;
  parts_.fences.hold(message);
  parts_.fences.try_at(message.not_before);
}

}  // namespace uet::ses
