// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Messages of one packet that the peer does not acknowledge and that are done when the NIC has sent
// them: datagrams (UUD, PDS-192) and RUDI responses with data. Not congestion controlled (CMS-4).
// Must not know what a PDC is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pds/pdc_core.h"
#include "uet/base/packet.h"
#include "uet/base/result.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"

namespace uet::pds {

class Datagrams {
 public:
  // Datagrams that may wait for the NIC at a time.
  static constexpr std::size_t kCapacity = 1024;

  // `environment` outlives it.
  explicit Datagrams(Environment& environment);
  // Withdraws what the NIC has not taken, without a word to the client.
  ~Datagrams();

  // Makes the message's only packet, which waits for its turn. Again when too many wait or packets
  // are short: nothing was made.
  Result<void> send(Message& message, const Destination& destination);
  // The same for the response to a RUDI request, which `header` names; `entropy` is the request's.
  Result<void> respond(Message& message, const wire::RudiHeader& header, const FepAddress& to,
                       std::uint16_t entropy);
  // Withdraws the packet; false if the NIC has it already or the message is none of these.
  bool cancel(const Message& message);
  // Moves up to `limit` packets into the outbox. True if there was one.
  bool pump(std::size_t limit);
  // Answers for those that have left the outbox (Client::rx_rsp without a SES header).
  void answer_taken(Time now);

  // Nothing waits and nothing is unanswered.
  bool empty() const { return oldest_ == end_; }
  // Something waits for pump().
  bool waiting() const { return queued_ != end_; }

 private:
  // In order: those in the outbox or just out of it (oldest_ to queued_), those that wait (to
  // end_).
  struct Entry {
    Packet* packet = nullptr;  // nullptr: cancelled
    Message* message = nullptr;
    std::uint32_t tag = 0;
  };
  Result<Packet*> make(Message& message, PreparedPacket& prepared);
  void queue(Packet& packet, Message& message, std::uint32_t tag) {
    at(end_++) = {.packet = &packet, .message = &message, .tag = tag};
  }
  Entry& at(std::size_t number) { return entries_[number % kCapacity]; }
  void withdraw(Entry& entry);

  Environment& env_;
  std::vector<Entry> entries_;  // none before the first datagram
  std::size_t oldest_ = 0;      // these only grow
  std::size_t queued_ = 0;
  std::size_t end_ = 0;
};

}  // namespace uet::pds
