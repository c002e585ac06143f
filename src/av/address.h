// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The UET endpoint address: what fi_getname gives, peers exchange and fi_av_insert takes. Fixed
// 32-byte form (WIRE 4.2) and text form. Knows nothing of libfabric; the JobID is not part of it
// (SES-148).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "uet/base/address.h"
#include "uet/base/result.h"
#include "uet/base/types.h"

namespace uet::av {

// Flag bits of the address (WIRE 4.2): which members count, and how.
enum AddressFlag : std::uint8_t {
  kCapabilitiesValid = 0x01,
  kFabricAddressValid = 0x02,
  kPidOnFepValid = 0x04,
  kResourceIndexValid = 0x08,
  kInitiatorIdValid = 0x10,
  kAbsolute = 0x20,  // PIDonFEP counts on the FEP, not inside the job
  kIpv6 = 0x40,
  kOneMtu = 0x80,  // largest message is one MTU
};

// Capability bits: the profiles a FEP serves (WIRE 4.2).
enum Capability : std::uint8_t {
  kAiBase = 0x01,
  kAiFull = 0x02,
  kHpc = 0x04,
  kReordering = 0x40,
  kOptimizedNonMatching = 0x80,
  // Private: of an IPv4 address, the 12 bytes behind it hold further ones (rails); 0: none.
  kRails = 0x20,
};

struct UetAddress {
  static constexpr std::size_t kBytes = 32;
  static constexpr std::uint8_t kVersion = 0;

  std::uint8_t version = kVersion;  // 4 bits
  std::uint8_t flags = 0;           // AddressFlag; kIpv6 follows fabric_address.is_ipv6
  std::uint8_t capabilities = 0;    // Capability, if kCapabilitiesValid
  FabricAddress fabric_address;
  PidOnFep pid_on_fep;                 // 0 to 0xFFF
  ResourceIndex start_resource_index;  // 0 to 0xFFF
  std::uint16_t num_resource_indices = 0;
  std::uint16_t udp_port = 0;  // 0 = 4793 in a destination, "choose one" in a source
  InitiatorId initiator_id;

  bool has(AddressFlag flag) const { return (flags & flag) != 0; }
  // Where packets to this address go.
  FepAddress fep() const { return {fabric_address, udp_port != 0 ? udp_port : kUetUdpPort}; }
  friend constexpr bool operator==(const UetAddress&, const UetAddress&) = default;
};

using AddressBytes = std::array<std::byte, UetAddress::kBytes>;

// `further`: of an IPv4 address, at most kMostFurtherAddresses further ones of IPv4 (kRails).
AddressBytes encode(const UetAddress& address, std::span<const FabricAddress> further = {});
// The further addresses of the form; empty if there are none, or `bytes` is no such form.
std::vector<FabricAddress> further_addresses(std::span<const std::byte> bytes);

// Invalid if `bytes` is shorter than 32, of a later version than ours, or has a member marked valid
// that is out of range. Members not marked valid come back as zero. Reserved bits are ignored.
Result<UetAddress> decode(std::span<const std::byte> bytes);

// Can packets be sent to it? Invalid without fabric address or resource index; other members may be
// missing (SES-150).
Result<void> check_destination(const UetAddress& address);

// "fi_addr_uet://10.0.0.1:4793?pid=1&ri=2&n=1&init=5"; IPv6 in brackets. The port is always shown
// (0 if unset). Parameters appear only for members marked valid: pid, ri and n (count of resource
// indices), init, caps; "abs=1" and "onemtu=1" for those flags; "rail=10.0.1.1" for each further
// address.
std::string to_text(const UetAddress& address);

std::string to_text(const UetAddress& address, std::span<const FabricAddress> further);
// The further addresses of a text, likewise.
std::vector<FabricAddress> further_addresses(std::string_view text);

// The inverse; numbers decimal or 0x hexadecimal, port and parameters optional. Invalid for
// anything else.
Result<UetAddress> from_text(std::string_view text);

// True if `text` claims to be our text form, whether or not the rest of it is valid.
bool is_text_form(std::string_view text);

// The ids an endpoint takes when nothing else was asked for. They follow from address, port and
// resource index, so that a peer which knows only these can address it.
inline constexpr ResourceIndex kFirstResourceIndex{1};
// Offset in the port range 4793 to 5816, the place that a port names, or 0.
PidOnFep default_pid_on_fep(std::uint16_t udp_port);
// A FEP with more endpoints than one PIDonFEP has resource indices uses further ones, up to
// kPidsOfFep: `step` 0 is its own. Processes of a shared port are told by the number modulo 32.
inline constexpr std::size_t kPidsOfFep = 9;
PidOnFep pid_of_step(PidOnFep own, std::size_t step);
// A number that no endpoint of another FEP is likely to share (SES-20: receives match on it).
// A PIDonFEP that is not the one of the port makes another one.
InitiatorId default_initiator(const FepAddress& fep, ResourceIndex index);
InitiatorId default_initiator(const FepAddress& fep, PidOnFep pid, ResourceIndex index);

// The address of the endpoint with this index at `fep` if it has the default ids, all members
// valid.
UetAddress default_address(const FepAddress& fep, ResourceIndex index = kFirstResourceIndex);
// The same under another PIDonFEP than that of the port.
UetAddress default_address(const FepAddress& fep, PidOnFep pid, ResourceIndex index);

// If only 16 bits name an endpoint (the service of fi_getinfo, a socket address), they encode
// UDP port and resource index together: 4793 to 5816 are the first endpoint at that UDP
// port, and every 1024 on, modulo 2^16, is the next index of the same UDP port. 0 means 4793.
// `first`: the first UDP port of our processes, instead of 4793.
UetAddress address_at(const FabricAddress& ip, std::uint16_t port_name,
                      std::uint16_t first = kUetUdpPort);
inline constexpr std::size_t kPortNamesOfFep = 64;
// The inverse. Empty if no port name says the same: beyond index 64, or with other ids.
std::optional<std::uint16_t> port_name_of(const UetAddress& address,
                                          std::uint16_t first = kUetUdpPort);

// `address` with missing fields filled in: without a resource index, `udp_port` is a port name;
// the other ids get their defaults, as if this provider ran at the FEP.
UetAddress complete(UetAddress address, std::uint16_t first = kUetUdpPort);

// The address of the endpoint that sent a packet. The resource index is the one whose default
// initiator matches; if there is none, it stays invalid. Not for the data path.
UetAddress address_of_source(const FepAddress& fep, InitiatorId initiator);

}  // namespace uet::av
