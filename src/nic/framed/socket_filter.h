// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Classic packet filters for kernel sockets: they choose the packets that our sockets take.
#pragma once

#include "uet/base/address.h"
#include "wire/frame.h"

namespace uet::nic {

// All return false, with errno, if the kernel refuses the filter.

// The socket takes nothing.
bool drop_everything(int socket);
// A packet socket takes frames to `self` only, of the form that `format` says. Frames whose UDP
// port is hidden behind IPv6 extension headers pass; the reader looks again.
bool take_only_frames_to(int socket, const FepAddress& self, const wire::FrameFormat& format);

}  // namespace uet::nic
