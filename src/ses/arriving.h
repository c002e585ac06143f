// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The states of messages that arrive (SES-29): allocated with the first packet of a message, found
// by its later packets, freed when no packet of it is missing and no data are kept. The rules for
// messages are not here but in the objects that use this class: Target, and the objects of the
// receiver.
//
// Messages in progress are bounded by a capacity of which each host has a share (Shares). Each PDC
// may have one more for the packet that holds its CACK: its later packets may be what the messages
// that hold all states wait for, and they cannot come before.
// Unexpected ones are bounded by their memory instead, which the receiver counts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>

#include "base/shares.h"
#include "base/sparse_array.h"
#include "ses/context.h"
#include "ses/message.h"
#include "uet/base/slab.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"

namespace uet::ses {

class ArrivingMessages {
 public:
  static constexpr Duration kStalled = std::chrono::seconds(30);

  // Holds up to `capacity` messages in progress. `pieces` must outlive this object.
  ArrivingMessages(std::size_t capacity, PieceStore& pieces, std::uint64_t seed);
  void attach(pds::Delivery& delivery) { delivery_ = &delivery; }
  // The time of the packet that is looked at next.
  void set_time(Time now) { now_ = now; }

  // The message whose rest is still to come; nullptr if there is none.
  RxMessage* find(PdcId pdc, MsgId id);
  // Allocates a state for the message of which `request` is the first packet to arrive. If the
  // message has more packets, find() returns the state for them. nullptr if no state is free or the
  // host has used up its share; then the PDC of a message that has received no packet for kStalled
  // is aborted, if the host of that message holds at least as many states as this one.
  RxMessage* open(const pds::RequestView& view, const wire::SesRequest& request, Context& context,
                  RxState state);
  // open() of a message in progress, of which this is a packet, has a state.
  bool may_open(const pds::RequestView& view) {
    return messages_.ready() && (has_share(view.source) || may_take_reserve(view));
  }
  // The message is no longer unexpected: from now on it is one in progress.
  void count_in_progress(RxMessage& message);
  // Remembers, if there is a state to spare, that the message was refused with `code` (SES-35).
  // Leaves a quarter of all states to messages that a receive or a region waits for.
  // Reads and single packets need no memory.
  // False: it cannot be remembered.
  bool refuse(const pds::RequestView& view, const wire::SesRequest& request, Context& context,
              wire::ReturnCode code);
  // Counts a packet of the message and keeps what only the first packet carries.
  static void account(RxMessage& message, const wire::SesRequest& request);
  // Has its PDC ask whether its sender still lives, until its state is given back. The PDC does not
  // close before all packets of the message are here.
  void await(RxMessage& message);
  // Its source is no invented address (Delivery::proved). Of a message whose PDC is gone: it was
  // none.
  bool source_is_proved(const RxMessage& message) {
    return message.pdc == PdcId{} || delivery_->proved(message.pdc);
  }
  // All of it is here: its id may come again, and its sender need not live on, unless it must still
  // be read.
  void arrived(RxMessage& message);
  // Gives the answer that NO_RESPONSE has put off, if it is owed (SES-46).
  void answer(Envelope& message, const Placement& placement, wire::ReturnCode code);
  void answer(RxMessage& message, wire::ReturnCode code) { answer(message, message, code); }
  // The message outlives its context, until its sender has been informed: an answer that is owed
  // carries the context's generation and is given now (SES-46).
  void leave_context(RxMessage& message);
  // The message comes to nothing: what still arrives of it is dropped and answered with `code`
  // (SES-35). Gives its state back when nothing will.
  void abandon(RxMessage& message, wire::ReturnCode code);
  // Gives the state back, with its kept payload and its place on any list.
  void release(RxMessage& message);

  std::size_t in_use() const { return messages_.in_use(); }
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
  static constexpr std::size_t kFewestBuckets = 16;  // a power of two

  std::size_t available() const {
    const std::size_t in_progress = messages_.in_use() - kept_;
    return capacity_ - std::min(capacity_, in_progress);
  }
  bool has_share(const FepAddress& source) const {
    return shares_.allows(host_hash(source.ip), 1, available());
  }
  bool may_take_reserve(const pds::RequestView& view) const {
    return view.holds_cack && !reserve_taken_[view.pdc.value];
  }
  void end_stalled(const pds::RequestView& refused);
  RxMessage** bucket(PdcId pdc, MsgId id);
  void grow_index();
  void insert(RxMessage& message);
  void remove(RxMessage& message);
  void stop_awaiting(RxMessage& message);

  PieceStore& pieces_;
  pds::Delivery* delivery_ = nullptr;
  const std::size_t capacity_;                   // of messages in progress
  std::size_t kept_ = 0;                         // others
  Shares shares_;                                // of the capacity
  SparseArray<bool, 65536, 256> reserve_taken_;  // by PDC id
  Time now_{};
  Time next_stalled_search_{};
  Slab<RxMessage> messages_{SIZE_MAX};
  IntrusiveList<RxMessage, ArrivingTag> arriving_;
  std::size_t indexed_ = 0;  // messages in it
  std::size_t mask_ = kFewestBuckets - 1;
  std::unique_ptr<RxMessage*[]> buckets_;
  RxMessage* last_ = nullptr;  // packets of one message come one after the other
};

}  // namespace uet::ses
