// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Operations that their target refused with a code that passes (SES-52 to 55): no receive, or a
// generation that is disabled or has changed. The message ends as every refused one does and then,
// instead of completing, waits and is sent again as a new message. So is a message whose PDC the
// peer has freed, if nothing of it was consumed (PDS-142).
//
// On ROD the message keeps its place: all that was posted after it to the same peer waits or is
// refused as well, and each of those messages is sent when all before it have completed. A target
// that accepts nothing before the message that it refused (SES-52) thus sees them in order.
#pragma once

#include <cstdint>

#include "base/rng.h"
#include "ses/counters.h"
#include "ses/deferred_sends.h"
#include "ses/fences.h"
#include "ses/generations.h"
#include "ses/long_send_forms.h"
#include "ses/message.h"
#include "ses/operation_table.h"
#include "ses/parameters.h"
#include "ses/rendezvous_source.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"

namespace uet::ses {

class Retries {
 public:
  // The objects that a new try of a message changes.
  struct Parts {
    OperationTable& operations;
    Generations& generations;
    Watches& watches;
    RendezvousSource& rendezvous;
    DeferredSends& deferred;
    LongSendForms& forms;
    Fences& fences;
  };

  Retries(const Parameters& parameters, const Parts& parts, Counters& counters);
  void attach(pds::Delivery& delivery) { delivery_ = &delivery; }

  // A packet of the message has been answered with an error: the message fails, and is marked to be
  // sent again if the code passes.
  void refused(TxMessage& message, const wire::SesResponseHeader& header, Time now);
  // The peer has consumed nothing of the message (PdsError::NotConsumed): as above.
  void not_consumed(TxMessage& message, Time now);
  // All that was sent of the message is answered and forgotten: holds it until its next try.
  void rewind(TxMessage& message);

 private:
  void send_again(TxMessage& message, bool at_once, Time now);
  void hold_back_later(TxMessage& refused);
  static void mark_refused(TxMessage& message);
  Duration wait_before(std::uint16_t next_try);

  const std::uint16_t tries_limit_;
  const Duration wait_;
  const Duration wait_most_;
  Parts parts_;
  Counters& counters_;
  pds::Delivery* delivery_ = nullptr;
  Rng rng_;
};

}  // namespace uet::ses
