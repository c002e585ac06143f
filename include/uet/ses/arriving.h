// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The states of messages that arrive (SES-29): taken with a message's first packet, found by its
// later ones, given back when nothing of it is awaited or kept. Knows no rule of what a message may
// do; its owners, target.cc and receive.cc, decide that.
#pragma once

#include <cstddef>
#include <memory>

#include "uet/base/slab.h"
#include "uet/pds/api.h"
#include "uet/ses/context.h"
#include "uet/ses/message.h"

namespace uet::ses {

class ArrivingMessages {
 public:
  // Room for `capacity` messages. `pieces` outlives this one.
  ArrivingMessages(std::size_t capacity, PieceStore& pieces);
  void attach(pds::Delivery& delivery) { delivery_ = &delivery; }

  // The message whose rest is still to come; nullptr if there is none.
  RxMessage* find(PdcId pdc, MsgId id);
  // A state for the message that `request` is the first packet to arrive of. What more packets will
  // come of is found by them from now on. nullptr when there is none.
  RxMessage* open(const pds::RequestView& view, const wire::SesRequest& request, Context& context,
                  RxState state);
  // The same, leaving a part of all states to messages that somebody waits for: else two peers that
  // only send could block each other for good.
  RxMessage* open_spare(const pds::RequestView& view, const wire::SesRequest& request,
                        Context& context, RxState state);
  // Remembers, if there is a state to spare, that the message was refused with `code` (SES-35).
  // Reads and single packets need no memory.
  // False: it cannot be remembered.
  bool refuse(const pds::RequestView& view, const wire::SesRequest& request, Context& context,
              wire::ReturnCode code);
  // Counts a packet of the message and keeps what only the first packet carries.
  static void account(RxMessage& message, const wire::SesRequest& request);
  // Has its PDC ask whether its sender still lives, until its state is given back.
  void await(RxMessage& message);
  // All of it is here: its id may come again, and its sender need not live on, unless it must still
  // be read.
  void arrived(RxMessage& message);
  // Gives the answer that NO_RESPONSE has put off, if it is owed (SES-46).
  void answer(RxMessage& message, wire::ReturnCode code);
  // The message comes to nothing: what still arrives of it is dropped and answered with `code`
  // (SES-35). Gives its state back when nothing will.
  void abandon(RxMessage& message, wire::ReturnCode code);
  // Gives the state back, with its kept payload and its place on any list.
  void release(RxMessage& message);

  std::size_t in_use() const { return messages_.in_use(); }
  std::size_t available() const { return messages_.available(); }
  // Calls visit(message) for each message that more is to come of; it may end the message.
  template <class Visit>
  void for_each(Visit visit) {
    for (auto at = arriving_.begin(); at != arriving_.end();) {
      RxMessage& message = *at;
      ++at;
      visit(message);
    }
  }

 private:
  RxMessage** bucket(PdcId pdc, MsgId id);
  void insert(RxMessage& message);
  void remove(RxMessage& message);
  void stop_awaiting(RxMessage& message);

  PieceStore& pieces_;
  pds::Delivery* delivery_ = nullptr;
  Slab<RxMessage> messages_;
  IntrusiveList<RxMessage, ArrivingTag> arriving_;
  std::size_t mask_;
  std::unique_ptr<RxMessage*[]> buckets_;
  RxMessage* last_ = nullptr;  // packets of one message come one after the other
};

}  // namespace uet::ses
