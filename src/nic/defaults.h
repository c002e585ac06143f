// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Defaults that several structs of options share, so that each is written once.
#pragma once

#include <cstdint>

namespace uet::nic {

// Size that the kernel is asked for, for the receive and the send buffer of the UDP socket each, in
// bytes; a same-host ring has the same size.
inline constexpr std::uint32_t kSocketBufferBytes = 4U << 20;

}  // namespace uet::nic
