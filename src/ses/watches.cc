// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/watches.h"

#include <algorithm>

#include "ses/context.h"

namespace uet::ses {

void Watches::start(TxMessage& message) {
  if (message.watched) return;
  message.watched = true;
  delivery_->watch(message.pdc);
  ++count_;
}

void Watches::unwatch(TxMessage& message) {
  message.watched = false;
  --count_;
  delivery_->unwatch(message.pdc);
}

void Watches::go_on_without_pdc(TxMessage& message, Time now) {
  drop(message);
  message.pdc = {};
  next_ = std::min(next_, now + kPause);
}

void Watches::reconnect(TxMessage& message, Time now) {
  if (message.pdc != PdcId{} || message.failed() || message.context == nullptr) return;
  const auto pdc = delivery_->connect(destination_of(message), now);
  if (pdc) {
    message.pdc = pdc.value();
    start(message);
  } else {
    next_ = now + kPause;
  }
}

}  // namespace uet::ses
