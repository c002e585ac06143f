// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/long_send_forms.h"

namespace uet::ses {

void LongSendForms::choose_form(TxMessage& message) {
  message.plain = message.plain || peers_.takes_plain_only(message.to);
  message.trial = !message.plain && begins_trial(message);
  if (message.plain || message.trial) make_plain(message);
}

void LongSendForms::choose_plain(TxMessage& message) {
  message.plain = peers_.takes_plain_only(message.to);
  if (message.plain) make_plain(message);
}

// A rendezvous whose eager part is the whole message says no more than a SEND to a target that has
// a receive for it, or the memory to keep it whole (WIRE 3.12). Only one at a time: a second one
// might find no memory, and what is behind it in the window would wait for it.
bool LongSendForms::begins_trial(const TxMessage& message) {
  const bool may_be_plain = wire::has_rendezvous_extension(message.header.opcode) &&
                            !message.header.dc && message.length <= eager_bytes_;
  return may_be_plain && peers_.begin_trial(message.to);
}

void LongSendForms::make_plain(TxMessage& message) {
  wire::SesRequest& header = message.header;
  const bool tagged = message.kind == Kind::TaggedSend;
  header.opcode = tagged ? wire::SesOpcode::TaggedSend : wire::SesOpcode::Send;
  header.rendezvous = {};
  message.readable = false;
  deferred_.take_back_offer(message);
}

}  // namespace uet::ses
