// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Probes that measure the base RTT of a congestion context (CMS-140, CMS-710).
#pragma once

#include "pds/send_side.h"
#include "uet/base/time.h"

namespace uet::pds {

// Sends such a Probe on this PDC if the context wants one and it is due.
void probe_base_rtt(SendSide& side, Time now);
// An ACK that answers a Probe has come to this host at `arrived`.
void on_base_rtt_answer(SharedCcc& shared, const wire::AckHeader& ack, Time arrived);

}  // namespace uet::pds
