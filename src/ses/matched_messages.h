// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Messages that have a receive: their bytes go into its memory, wherever they were until then, and
// the receive completes when all of them are there.
#pragma once

#include "ses/arriving.h"
#include "ses/counters.h"
#include "ses/deferred_receives.h"
#include "ses/message.h"
#include "ses/posted_receives.h"
#include "ses/rendezvous_target.h"
#include "ses/unexpected_messages.h"
#include "uet/base/device_memory.h"
#include "uet/pds/api.h"

namespace uet::ses {

class MatchedMessages {
 public:
  // The objects that share the work of a receiver; they outlive this one.
  struct Parts {
    ArrivingMessages& messages;
    Unexpected& memory;
    PostedReceives& receives;
    RendezvousTarget& rendezvous;
    DeferredReceives& deferred;
    UnexpectedMessages& unexpected;
  };
  // `host_copy` writes to memory, if not memcpy.
  MatchedMessages(const Parts& parts, HostCopy* host_copy, Counters& counters)
      : parts_(parts), host_copy_(host_copy), counters_(counters) {}

  // The new message goes to the receive.
  void bind(RxMessage& message, PostedReceive& receive);
  // The unexpected message, which leaves its list, goes to the receive with all that is kept of it.
  // True: the receive can take another message.
  bool take(Envelope& message, PostedReceive& receive);
  // A packet of a message with a receive.
  pds::Response place(const wire::SesRequest& request, RxMessage& message);
  // The eager part is in place: the receive completes, or the rest is read.
  void eager_part_is_here(RxMessage& message);
  // All bytes of the message are in place: its receive completes.
  void complete(RxMessage& message);
  // The rest of the message will not come: its receive completes with `status`. Later packets are
  // answered with `code`.
  void fail(RxMessage& message, wire::ReturnCode code, Status status);

 private:
  bool take_single(SingleMessage& message, PostedReceive& receive);
  bool take_arriving(RxMessage& message, PostedReceive& receive);

  const Parts parts_;
  HostCopy* const host_copy_;
  Counters& counters_;
};

}  // namespace uet::ses
