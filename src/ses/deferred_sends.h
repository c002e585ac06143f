// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Deferrable sends at their sender (SES-65 to 75): the target may drop a message that it has no
// receive for, and asks for it again when it has one. Until then the message is parked here, and
// nothing of it is under way.
#pragma once

#include <cstdint>

#include "ses/message.h"
#include "ses/parameters.h"
#include "ses/watches.h"
#include "uet/base/intrusive_list.h"
#include "uet/base/time.h"

namespace uet::ses {

class DeferredSends {
 public:
  DeferredSends(const Parameters& parameters, Watches& watches);

  // Makes a deferrable send of a long send without order to a peer that serves them.
  void offer(TxMessage& message, const Peer& peer);
  // The message, which has not been put off, becomes an ordinary send again.
  void take_back_offer(TxMessage& message);
  // The target has put the message off: it keeps no more of it than its name (SES-67).
  void park(TxMessage& message, Time now);

  // A DEFERRABLE_RTR of the FEP `source` (SES-70). `code` is the answer; `message`, if the request
  // is a new one, is to be sent again as soon as all that was sent of it has been answered.
  struct Restart {
    wire::ReturnCode code = wire::ReturnCode::Ok;
    TxMessage* message = nullptr;
  };
  Restart restart(const wire::SesRequest& request, const FepAddress& source, Time now);
  // The message is sent again under the token of its target, and may be put off once more.
  void unpark(TxMessage& message);
  // The message ends.
  void forget(TxMessage& message) {
    if (static_cast<const ListNode<DeferrableTag>&>(message).linked()) offered_.remove(message);
  }

  // Calls end(message) for each message that its target has not asked for in time: it has failed,
  // and is to be given up (as SES-64).
  template <class End>
  void expire(Time now, End end) {
    if (timeout_ == Duration{0}) return;
    for (auto at = parked_.begin(); at != parked_.end();) {
      TxMessage& message = *at;
      ++at;
      if (now - message.awaiting_since < timeout_) return;
      if (message.failed() || message.restart) continue;
      message.fail(pds::PdsError::RtoExhausted);  // FI_ETIMEDOUT
      end(message);
    }
  }
  bool waits() const { return !parked_.empty(); }
  Time deadline();
  // Gives those of the parked messages that have lost their PDC another one.
  void reconnect(Time now);

 private:
  TxMessage* find(std::uint32_t token);

  const bool enabled_;
  const std::uint64_t threshold_bytes_;
  const Duration timeout_;
  Watches& watches_;
  std::uint32_t last_token_ = 0;
  IntrusiveList<TxMessage, DeferrableTag> offered_;  // under way
  IntrusiveList<TxMessage, DeferrableTag> parked_;   // in order of time
};

}  // namespace uet::ses
