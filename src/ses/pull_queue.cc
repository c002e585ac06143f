// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/pull_queue.h"

namespace uet::ses {

void release_all(PullList& list, ArrivingMessages& messages) {
  while (!list.empty()) {
    RxMessage& message = list.front();
    message.holds_pdc = false;
    messages.release(message);
  }
}

}  // namespace uet::ses
