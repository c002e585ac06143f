// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pds/lost_rail.h"

#include "pds/loss_recovery.h"
#include "pds/pdc.h"
#include "pds/window_wait.h"

namespace uet::pds {

void lose_rail(Pdc& pdc, std::uint8_t rail, Time now) {
  LossRecovery(pdc.send_side(), now).on_lost_rail(rail);
  pdc.send_side().outstanding().reconcile(pdc);
  wake_waiters(pdc.ccc());
  pdc.receive_side().repeat_acks(now);
}

}  // namespace uet::pds
