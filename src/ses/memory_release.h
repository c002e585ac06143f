// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The end of the use of an operation's user memory while packets of it are on their way, since its
// context is closed and its PDC serves other contexts, too (SES-165). Decides what becomes of the
// packets; must not know when a context closes, nor how the operation ends.
#pragma once

#include "ses/message.h"
#include "uet/pds/api.h"

namespace uet::ses {

// From now on, no packet that PDS sends points to the user's memory of the message, and arriving
// data is not written there: request packets with such payload become NO_OPs, and answers to reads
// of the memory become refusals. Packets without it stay. True: the target may lack a part of the
// message, and keep state of it until a MSG_ERROR comes.
bool release_memory(TxMessage& message, pds::Delivery& delivery);

}  // namespace uet::ses
