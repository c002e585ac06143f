// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Messages that find no receive when they begin: the target keeps them, leaves them for reading,
// parks or refuses them, until a receive takes them or the application discards them.
#pragma once

#include "ses/arriving.h"
#include "ses/context.h"
#include "ses/counters.h"
#include "ses/deferred_receives.h"
#include "ses/message.h"
#include "ses/parameters.h"
#include "ses/rendezvous_target.h"
#include "ses/unexpected.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"

namespace uet::ses {

class UnexpectedMessages {
 public:
  // The referenced objects outlive this one.
  UnexpectedMessages(const Parameters& parameters, ArrivingMessages& messages, Unexpected& memory,
                     RendezvousTarget& rendezvous, DeferredReceives& deferred, Counters& counters);

  // The first packet that arrives of a message without a receive. Unless the answer is a NACK or
  // NO_MATCH, the message is the youngest one of its queue.
  pds::Response accept(const pds::RequestView& view, const wire::SesRequest& request,
                       Context& context, Time now);
  // A packet of a message that is kept in part.
  pds::Response place(const pds::RequestView& view, const wire::SesRequest& request,
                      RxMessage& message);
  // Frees the memory that the message held as an unexpected one; its state remains.
  void release_memory(RxMessage& message);
  // Takes the message, which goes to no receive, off its list and frees its memory; its state
  // remains.
  void drop(RxMessage& message);
  // The application does not want the message; its later packets are accepted and dropped.
  void discard(Envelope& message);
  // Ends the messages of a context that closes. One that has not arrived whole is forgotten: its
  // later packets are refused, and its sender fails.
  void close_context(const Context& context);
  // Memory is free again or a receive is posted: accepts the messages that were refused with
  // NO_MATCH. They come in their order because the target refuses packets under way that still name
  // the old generation.
  static void enable_generations(ReceiveQueue& queue);

 private:
  pds::Response refuse(const pds::RequestView& view, const wire::SesRequest& request,
                       Context& context, pds::NackCode code);
  pds::Response keep_single(const pds::RequestView& view, const wire::SesRequest& request,
                            Context& context);
  void release(SingleMessage& message, wire::ReturnCode code);
  void dismiss(Envelope& message);

  const bool answers_no_match_;
  ArrivingMessages& messages_;
  Unexpected& memory_;
  RendezvousTarget& rendezvous_;
  DeferredReceives& deferred_;
  Counters& counters_;
};

}  // namespace uet::ses
