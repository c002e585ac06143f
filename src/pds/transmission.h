// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One transmission of a packet of a PDC: its header, its path, its marks, and the accounts that it
// enters.
#pragma once

#include "pds/send_side.h"
#include "uet/base/time.h"
#include "uet/base/types.h"

namespace uet::pds {

// Writes the header of the packet of `record` and puts the packet into the outbox. A packet that
// waits there from before keeps its place in line.
void transmit(SendSide& side, Psn psn, TxRecord& record, bool retransmission, Time now);

}  // namespace uet::pds
