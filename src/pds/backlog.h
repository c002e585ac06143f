// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The messages of a PDC that have packets to make, in order (PDS-8), and the data that they
// announce to the receiver's credit (CMS-200). Must not know packets that have left.
#pragma once

#include <algorithm>
#include <cstdint>

#include "pds/pdc_core.h"
#include "uet/base/intrusive_list.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"

namespace uet::pds {

class Backlog {
 public:
  bool empty() const { return messages_.empty(); }
  // The message that makes the next packet. The backlog must not be empty.
  Message& front() { return messages_.front(); }
  // The larger one of the size classes of the message that is being sent and of the one that came
  // last. The backlog must not be empty.
  std::uint8_t size_class() {
    return std::max(messages_.front().size_class, messages_.back().size_class);
  }

  // Appends the message, or puts it first if it ends one that has begun, and announces its data.
  // `message` stays the caller's and must outlive its place here.
  void push(PdcCore& core, Message& message, Time now);
  // Takes out the message whose last packet was made. Its announcement stays: see sent().
  void remove(Message& message) { messages_.remove(message); }
  Message& pop_front() { return messages_.pop_front(); }
  // A packet of the message has left. `last`: the message makes no further packet.
  void sent(PdcCore& core, Message& message, std::uint32_t nominal_bytes, bool last);
  // Withdraws the announcement of a message that is in no backlog any more.
  void forget(PdcCore& core, Message& message) { announce(core, message, 0); }
  // Looks at each message: not for the data path.
  std::size_t count() {
    std::size_t count = 0;
    for (auto at = messages_.begin(); at != messages_.end(); ++at) ++count;
    return count;
  }
  // The application waits for the answers to all messages.
  void expect_prompt_acks() {
    for (Message& message : messages_) message.prompt_ack = true;
  }

 private:
  static void announce(PdcCore& core, Message& message, std::uint64_t bytes);

  IntrusiveList<Message, BacklogTag> messages_;
};

}  // namespace uet::pds
