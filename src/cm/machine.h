// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What both sides of connection management (listener.h, connections.h) have in common: messages in,
// messages and the outcomes of their sends, time. No input and output, no libfabric type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "cm/message.h"
#include "uet/base/time.h"

namespace uet::cm {

// The end of one send.
enum class Outcome : std::uint8_t {
  Delivered,  // the peer's FEP has the message
  Refused,    // the peer's FEP answers, but has no such resource index
  Lost,       // the transport gave up: the peer may have the message or not
};

// A message to send. The host hands it to the transport and reports the outcome of the send.
struct Outgoing {
  av::UetAddress to;
  ConnectionId about = 0;  // 0: the outcome is of no interest
  Message message;
};

class Machine {
 public:
  virtual ~Machine() = default;

  // May throw bad_alloc: then the message has had no effect, and its sender repeats it.
  virtual void on_message(const Message& message, Time now) = 0;
  // The outcome of the send of a message whose `about` is not 0.
  virtual void sent(ConnectionId about, MessageType type, Outcome outcome, Time now) = 0;
  // Repeats what has no answer yet. Call it at next_deadline() at the latest.
  virtual void progress(Time now) = 0;
  // kNever: nothing waits.
  virtual Time next_deadline() const = 0;

  // The next message to send; nullptr if there is none. It stays until pop_message().
  const Outgoing* next_message() const { return outgoing_.empty() ? nullptr : &outgoing_.front(); }
  void pop_message() { outgoing_.pop_front(); }

 protected:
  // Answers that belong to no connection: beyond this number waiting messages they are dropped, and
  // the peer repeats its question (CM-40).
  static constexpr std::size_t kMostWaiting = 1024;

  void queue(Outgoing message) { outgoing_.push_back(message); }
  void answer(Outgoing message) {
    message.about = 0;
    if (outgoing_.size() < kMostWaiting) queue(message);
  }

 private:
  std::deque<Outgoing> outgoing_;
};

}  // namespace uet::cm
