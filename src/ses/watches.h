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

  Watches();
  void attach(pds::Delivery& delivery) { delivery_ = &delivery; }

  // Watches the PDC of the message, once, however often it is asked to.
  void start(TxMessage& message);
  void stop(TxMessage& message) {
    if (message.watched) unwatch(message);
  }
  // A message on this PDC is watched.
  bool any(PdcId pdc) const { return counts_[pdc.value] > 0; }
  // The PDC is gone, and with it all its watches: `watched` of its messages is for the caller.
  void pdc_closed(PdcId pdc) { counts_[pdc.value] = 0; }
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
  ZeroedArray<std::uint32_t> counts_;  // 2^16, by PDC id
  Time next_ = kNever;
};

}  // namespace uet::ses
