// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Operations that their target refused with a code that passes (SES-52 to 55): no receive, or a
// generation that is disabled or has changed. The message ends as every refused one does and then,
// instead of completing, waits and is sent again as a new message. So is one whose PDC the peer has
// let go of, if nothing of it was consumed (PDS-142).
//
// On ROD it keeps its place: whatever was posted after it to the same peer waits or is refused as
// well, and each of them is sent when all before it have completed. A target that lets nothing
// overtake what it refused (SES-52) thus sees them in order.
#include <algorithm>

#include "uet/ses/initiator.h"
#include "uet/ses/rendezvous.h"
#include "uet/ses/return_code.h"

namespace uet::ses {

void Initiator::refuse(TxMessage& message, const wire::SesResponseHeader& header, Time now) {
  const wire::ReturnCode code = header.return_code;
  Context* context = message.context;  // none: a target's own read
  const bool first = !message.failed();
  fail(message, code);
  if (context == nullptr || context->closing) return;
  if (code == wire::ReturnCode::UnsupportedOp) {
    if (first && message.plain) long_send_peers_.note_plain_answer(message.to, false);
    if (!first || message.plain || !has_plain_form(message)) return;
    long_send_peers_.note_refusal(message.to);
    message.plain = true;
    return send_again(message, true, now);
  }
  if (!passes(code)) return;
  if (message.mode == DeliveryMode::Rod) hold_back_later(message);
  const bool tells_generation =
      code == wire::ReturnCode::BadGeneration && header.next_hdr == wire::NextHdr::Response;
  if (tells_generation) learn_generation(message, header.ri_generation);
  if (!first || message.tries >= retries_ || message.awaits_read || message.cancelled) return;
  // A generation that is known now needs no wait (SES-55).
  send_again(message, tells_generation, now);
}

// Not every peer that could know them does (WIRE 3.12): R states the profile HPC without
// rendezvous.
bool Initiator::has_plain_form(const TxMessage& message) {
  const wire::SesOpcode opcode = message.header.opcode;
  return (wire::has_rendezvous_extension(opcode) || wire::is_deferrable(opcode)) &&
         !message.awaits_read && !message.deferred;
}

void Initiator::make_plain(TxMessage& message) {
  wire::SesRequest& header = message.header;
  const bool tagged = message.kind == Kind::TaggedSend;
  header.opcode = tagged ? wire::SesOpcode::TaggedSend : wire::SesOpcode::Send;
  header.rendezvous = {};
  message.readable = false;
  if (message.restart_token == 0) return;
  deferrable_.remove(message);
  message.restart_token = 0;
  header.buffer_offset = 0;  // where the tokens were
}

// A rendezvous whose eager part is the whole message says no more than a SEND to a target that has
// a receive for it, or the memory to keep it whole (WIRE 3.12). Only one at a time: a second one
// might find no memory, and what is behind it in the window would wait for it.
bool Initiator::begins_trial(const TxMessage& message) {
  const bool may_be_plain = wire::has_rendezvous_extension(message.header.opcode) &&
                            !message.header.dc && message.length <= eager_bytes_;
  return may_be_plain && long_send_peers_.begin_trial(message.to);
}

// Of a message that is about to start, and that has a plain form.
void Initiator::choose_form(TxMessage& message) {
  message.plain = message.plain || long_send_peers_.takes_plain_only(message.to);
  message.trial = !message.plain && begins_trial(message);
  if (message.plain || message.trial) make_plain(message);
}

void Initiator::send_again(TxMessage& message, bool at_once, Time now) {
  ++message.tries;
  message.try_again = true;
  message.not_before = at_once ? now : now + wait_before(message.tries);
  mark_refused(message);
  if (message.mode == DeliveryMode::Rod) hold_back_later(message);
}

// PDS-142: its PDC is gone and nothing of it has been consumed. Sent again it goes to a new PDC, at
// first without a wait.
void Initiator::not_consumed(TxMessage& message, Time now) {
  const bool first = !message.failed();
  fail(message, pds::PdsError::NotConsumed);
  const Context* context = message.context;  // none: a target's own read
  if (!first || context == nullptr || context->closing || message.tries >= retries_) return;
  if (message.cancelled) return;
  send_again(message, message.tries == 0, now);
}

// About twice as long each time; at random, so that peers do not come all at once.
Duration Initiator::wait_before(std::uint16_t next_try) {
  Duration wait = retry_wait_;
  for (std::uint16_t i = 1; i < next_try && wait < retry_wait_most_; ++i) wait *= 2;
  wait = std::min(wait, retry_wait_most_);
  const auto half = static_cast<std::uint64_t>(std::max<Duration::rep>(wait.count() / 2, 1));
  return Duration(static_cast<Duration::rep>(half + rng_.below(half)));
}

// What follows the refused message and has not begun would only be refused too. What has begun may
// have been refused already, without our having heard of it: later ones wait for it as well.
void Initiator::hold_back_later(TxMessage& refused) {
  Context& context = *refused.context;
  for (TxMessage& message : context.transmitting) {
    const bool later = message.sequence > refused.sequence && same_peer(message, refused);
    if (!later || is_held(message)) continue;
    if (message.packets_made == 0 && delivery_->cancel(message)) {
      hold(message);
    } else {
      mark_refused(message);
    }
  }
}

void Initiator::mark_refused(TxMessage& message) {
  if (!message.refused) ++message.context->refused_count;
  message.refused = true;
}

// All that was sent of the message is answered and forgotten.
void Initiator::rewind(TxMessage& message) {
  by_id_[message.header.message_id.value] = nullptr;
  message.header.message_id = take_id(message);
  if (message.readable) {
    message.header.rendezvous.read_memory_key = new_read_key(message.header.message_id);
  }
  stop_watching(message);
  if (message.deferred) {
    deferred_.remove(message);
    deferrable_.push_back(message);
    message.header.set_restart_tokens(message.restart_token, message.target_restart_token);
  }
  message.deferred = false;
  message.restart = false;
  message.try_again = false;
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
  hold(message);
  next_try_ = std::min(next_try_, message.not_before);
}

namespace {

constexpr std::size_t kLearnedMask = Initiator::kLearnedGenerations - 1;

std::size_t slot_of(const TxMessage& message) {
  const wire::SesRequest& header = message.header;
  const std::size_t index =
      std::size_t{header.pid_on_fep.value} << 12 | header.resource_index.value;
  return (FepAddressHash{}(message.to) ^ index * 0x9E3779B1U ^
          message.context->config.resource_index.value) &
         kLearnedMask;
}

}  // namespace

void Initiator::learn_generation(const TxMessage& message, RiGeneration generation) {
  const wire::SesRequest& header = message.header;
  learned_[slot_of(message)] = {message.context,       message.to, header.pid_on_fep,
                                header.resource_index, header.rel, generation};
  has_learned_ = true;
}

// As the peer told it, else what the operation says.
RiGeneration Initiator::generation_of(const TxMessage& message) const {
  const wire::SesRequest& header = message.header;
  const LearnedGeneration& learned = learned_[slot_of(message)];
  const bool known = learned.context == message.context && learned.to == message.to &&
                     learned.pid_on_fep == header.pid_on_fep &&
                     learned.resource_index == header.resource_index &&
                     learned.relative == header.rel;
  return known ? learned.value : header.ri_generation;
}

void Initiator::forget_generations(const Context& context) {
  for (std::size_t i = 0; i < kLearnedGenerations; ++i) {
    if (learned_[i].context == &context) learned_[i] = {};
  }
}

}  // namespace uet::ses
