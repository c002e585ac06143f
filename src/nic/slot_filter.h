// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a packet socket of a process that shares port 4793 takes. A filter for each socket, because
// a fan-out group cannot do it: that names its members by where they stand in a list, into which
// the last one moves up when another closes.
#pragma once

#include "uet/base/address.h"

namespace uet::nic {

// The packet socket takes frames to port 4793 of self.ip only, and of those what is for the slot
// that self.port names. False, with errno, if the kernel refuses.
bool take_only_frames_to_slot(int socket, const FepAddress& self);

}  // namespace uet::nic
