// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The checksums of IP and UDP in a frame, which a NIC writes and checks.
#pragma once

#include <netinet/in.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace fake_verbs {

inline std::uint32_t add_up(const std::uint8_t* bytes, std::size_t length, std::uint32_t sum = 0) {
  for (std::size_t i = 0; i + 1 < length; i += 2) {
    sum += static_cast<std::uint32_t>(bytes[i] << 8 | bytes[i + 1]);
  }
  if (length % 2 == 1) sum += static_cast<std::uint32_t>(bytes[length - 1] << 8);
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return sum;
}

// Where the parts of a frame are; `udp` is empty where there is none.
struct Layout {
  std::uint8_t* ip = nullptr;
  std::size_t ip_header = 0;
  bool is_ipv6 = false;
  std::uint8_t protocol = 0;
  std::uint8_t* udp = nullptr;
  std::size_t udp_length = 0;
};

inline bool has_tag(const std::uint8_t* frame, std::size_t length) {
  return length >= 18 && frame[12] == 0x81 && frame[13] == 0;
}

inline bool lay_out(std::uint8_t* frame, std::size_t length, Layout& out) {
  const std::size_t ethernet = has_tag(frame, length) ? 18 : 14;
  if (length < ethernet + 20) return false;
  out.ip = frame + ethernet;
  out.is_ipv6 = out.ip[-2] == 0x86 && out.ip[-1] == 0xDD;
  if (!out.is_ipv6 && !(out.ip[-2] == 8 && out.ip[-1] == 0)) return false;
  if (out.is_ipv6 && length < ethernet + 40) return false;
  out.ip_header = out.is_ipv6 ? 40 : std::size_t{out.ip[0] & 0xFU} * 4;
  out.protocol = out.ip[out.is_ipv6 ? 6 : 9];
  std::size_t behind = static_cast<std::size_t>(out.is_ipv6 ? out.ip[4] << 8 | out.ip[5]
                                                            : out.ip[2] << 8 | out.ip[3]);
  if (!out.is_ipv6) behind -= std::min(behind, out.ip_header);
  if (ethernet + out.ip_header + behind > length) return false;
  if (out.protocol != IPPROTO_UDP || behind < 8) return true;
  out.udp = out.ip + out.ip_header;
  out.udp_length = behind;
  return true;
}

inline std::uint32_t udp_sum(const Layout& layout) {
  std::uint32_t sum = layout.is_ipv6 ? add_up(layout.ip + 8, 32) : add_up(layout.ip + 12, 8);
  sum += IPPROTO_UDP + static_cast<std::uint32_t>(layout.udp_length);
  return add_up(layout.udp, layout.udp_length, sum);
}

inline void write_checksums(std::uint8_t* frame, std::size_t length) {
  Layout layout;
  if (!lay_out(frame, length, layout)) return;
  if (!layout.is_ipv6) {
    layout.ip[10] = layout.ip[11] = 0;
    const std::uint32_t sum = ~add_up(layout.ip, layout.ip_header);
    layout.ip[10] = static_cast<std::uint8_t>(sum >> 8);
    layout.ip[11] = static_cast<std::uint8_t>(sum);
  }
  if (layout.udp == nullptr) return;
  layout.udp[6] = layout.udp[7] = 0;
  std::uint32_t sum = ~udp_sum(layout) & 0xFFFF;
  if (sum == 0) sum = 0xFFFF;
  layout.udp[6] = static_cast<std::uint8_t>(sum >> 8);
  layout.udp[7] = static_cast<std::uint8_t>(sum);
}

inline bool checksums_are_right(std::uint8_t* frame, std::size_t length) {
  Layout layout;
  if (!lay_out(frame, length, layout)) return false;
  if (!layout.is_ipv6 && add_up(layout.ip, layout.ip_header) != 0xFFFF) return false;
  return layout.udp != nullptr && udp_sum(layout) == 0xFFFF;
}

}  // namespace fake_verbs
