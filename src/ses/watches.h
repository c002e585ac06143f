// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The PDCs of sends that wait for their target: each is watched, so that it asks whether the target
// still lives, and is replaced if it closes in a shortage of PDCs.
#pragma once

#include <cstdint>

#include "base/zeroed_array.h"
#include "ses/message.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"

namespace uet::ses {

class Watches {
 public:
  // A PDC that has closed because PDCs are short is not opened again at once.
  static constexpr Duration kPause = std::chrono::seconds(1);

  void attach(pds::Delivery& delivery) { delivery_ = &delivery; }

  // Watches the PDC of the message, once, however often it is asked to.
  void start(TxMessage& message);
  void stop(TxMessage& message) {
    if (message.watched) unwatch(message);
  }
  // A message is watched.
  bool any() const { return count_ > 0; }
  // The PDC of the message is gone, and with it the watch.
  void drop(TxMessage& message) {
    if (!message.watched) return;
    message.watched = false;
    --count_;
  }
  // The PDC of the message has closed in order: the message waits on without one.
  void go_on_without_pdc(TxMessage& message, Time now);

  // When reconnect() is due for all messages that wait, if there are any.
  Time deadline() const { return next_; }
  // Begins a round of reconnect().
  void begin_round() { next_ = kNever; }
  // Gives a message that waits without a PDC another one; if there is none now, another round
  // follows after kPause.
  void reconnect(TxMessage& message, Time now);

 private:
  void unwatch(TxMessage& message);

  pds::Delivery* delivery_ = nullptr;
  std::size_t count_ = 0;  // messages that are watched
  Time next_ = kNever;
};

}  // namespace uet::ses
