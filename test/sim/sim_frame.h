// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a back end that owns the IP header does on both sides of a simulated wire: whole frames with
// or without CRC, damaged and trimmed as bytes. Must not know what is in a packet.
#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "sim/sim_nic.h"
#include "wire/frame.h"

namespace uet::sim {

// The frame that carries the packet.
std::vector<std::byte> frame_of(const SimPacket& packet, const wire::FrameFormat& format);

// Whether a receiver notices damage to a frame of this format: the native form without CRC does
// not.
constexpr bool finds_damage(const wire::FrameFormat& format) {
  return format.crc || (format.encapsulation == wire::Encapsulation::Udp && format.udp_checksum);
}

// Changes bits of the packet or of the headers that say where it goes: as many as the format is
// sure to notice.
void damage(std::vector<std::byte>& frame, const wire::FrameFormat& format, Rng& rng);

// Trims the frame as a switch does (WIRE 1.3): leaves the headers and the first 16 bytes of the
// packet, with the DSCP of trimmed packets.
void trim(std::vector<std::byte>& frame, const wire::FrameFormat& format);

// The packet in a frame, as the receiver reads it. `packet` is untouched unless the verdict is Ok.
wire::FrameVerdict read_frame(const std::vector<std::byte>& frame, const wire::FrameFormat& format,
                              SimPacket& packet);

}  // namespace uet::sim
