// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sends that the target may read (SES-56 to 64), seen from their sender.
//
// Everything is sent eagerly, so that an expected message costs no more than a plain one. A target
// that has no receive for the message keeps as much as it likes and says RESPONSE, OVERFLOW,
// modified_length 0: the rest is dropped and will be read (as SES-67 says for deferral). From then
// on no data are made any more (as SES-69), and the send is complete when the target has read to
// its end.
#pragma once

#include <cstdint>

#include "ri/key_sequence.h"
#include "ses/message.h"
#include "ses/operation_table.h"
#include "ses/parameters.h"
#include "ses/watches.h"
#include "uet/base/intrusive_list.h"
#include "uet/base/time.h"

namespace uet::ses {

class RendezvousSource {
 public:
  RendezvousSource(const Parameters& parameters, const OperationTable& operations,
                   Watches& watches);

  // The longest send to the peer, in bytes.
  // Makes a rendezvous send of a long send, and of one with delivery_complete, to a peer that
  // serves them.
  void offer(TxMessage& message, const Peer& peer);
  // The message has a new id: its read key names it.
  void renew_key(TxMessage& message);
  // The message that the FEP `reader` may read under the key (is_message_key); nullptr: none.
  TxMessage* find(Rkey key, JobId job, const FepAddress& reader) const;

  // The target will read the message, which is not complete before.
  void await_read(TxMessage& message, Time now);
  // A packet of a read that asked for `read_length` bytes has been answered with `length` bytes.
  // `reaches_end`: this read ends where the message ends.
  void served(TxMessage& message, bool reaches_end, std::uint32_t length, std::uint32_t read_length,
              Time now);
  void stop_awaiting(TxMessage& message) {
    if (message.awaits_read) awaiting_.remove(message);
    message.awaits_read = false;
  }

  // Calls end(message) for each message that its target has not read in time: it has failed, and is
  // to be given up (SES-64).
  template <class End>
  void expire(Time now, End end) {
    if (timeout_ == Duration{0}) return;
    for (auto at = awaiting_.begin(); at != awaiting_.end();) {
      TxMessage& message = *at;
      ++at;
      if (now - message.awaiting_since < timeout_) return;
      if (message.failed() || message.read_out) continue;
      message.fail(pds::PdsError::RtoExhausted);  // FI_ETIMEDOUT
      end(message);
    }
  }
  bool waits() const { return !awaiting_.empty(); }
  Time deadline();
  // Gives those of the messages that have lost their PDC another one.
  void reconnect(Time now);

 private:
  const bool enabled_;
  const std::uint64_t threshold_bytes_;
  const std::uint64_t piece_bytes_;
  const std::uint32_t payload_mtu_;
  const Duration timeout_;
  const ri::KeySecret key_secret_;
  const OperationTable& operations_;
  Watches& watches_;
  std::uint64_t keys_made_ = 0;
  IntrusiveList<TxMessage, AwaitingReadTag> awaiting_;
};

}  // namespace uet::ses
