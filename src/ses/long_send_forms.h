// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Under which opcode a long send goes: as rendezvous or deferrable send, or as a plain SEND, which
// says as much to a peer that has its receives in time or does not know the other opcodes (WIRE
// 3.12, SES-161).
#pragma once

#include <cstdint>

#include "ses/deferred_sends.h"
#include "ses/long_send_peers.h"
#include "ses/message.h"

namespace uet::ses {

class LongSendForms {
 public:
  // `eager_bytes`: longest rendezvous that goes as a SEND on trial.
  LongSendForms(std::uint64_t eager_bytes, DeferredSends& deferred)
      : eager_bytes_(eager_bytes), deferred_(deferred) {}

  // The message has an opcode beyond SEND, its target has not asked for it, and SEND can state its
  // length.
  static bool has_plain_form(const TxMessage& message) {
    const wire::SesOpcode opcode = message.header.opcode;
    return (wire::has_rendezvous_extension(opcode) || wire::is_deferrable(opcode)) &&
           !message.awaits_read && !message.deferred && !is_outsized(message);
  }
  // The message is about to start, for the first time or again.
  void choose(TxMessage& message) {
    if (has_plain_form(message)) choose_form(message);
  }
  // The target has reported that a SEND on trial came before its receive.
  void note_unexpected(const TxMessage& message) {
    if (message.trial) peers_.note_unexpected(message.to);
  }
  // The first packet of the message is about to be made: a peer may have refused another one since
  // it started.
  void choose_again(TxMessage& message) {
    if (message.packets_made == 0 && !message.failed() && has_plain_form(message)) {
      choose_plain(message);
    }
  }
  // The target does not know the opcode of the message, which goes as a plain SEND from now on.
  void note_refusal(TxMessage& message) {
    message.plain = true;
    peers_.note_refusal(message.to);
  }
  // The target has taken the message, or does not know its opcode either, which tells whether it
  // has refused another one for its opcode.
  void note_plain_answer(const TxMessage& message, bool taken) {
    if (message.plain) peers_.note_plain_answer(message.to, taken);
  }
  // The message is over.
  void end_trial(const TxMessage& message) {
    if (message.trial) peers_.end_trial(message.to);
  }

 private:
  void choose_form(TxMessage& message);
  void choose_plain(TxMessage& message);
  bool begins_trial(const TxMessage& message);
  void make_plain(TxMessage& message);

  const std::uint64_t eager_bytes_;
  DeferredSends& deferred_;
  LongSendPeers peers_;
};

}  // namespace uet::ses
