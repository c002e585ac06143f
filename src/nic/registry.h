// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Opens a NIC by the name of its back end and puts the configured middleware around it. The only
// place that knows which back ends exist.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "nic/defaults.h"
#include "nic/interface.h"
#include "uet/base/result.h"
#include "uet/nic/nic.h"
#include "wire/frame.h"

namespace uet::nic {

struct NicConfig {
  std::string back_end = "udp";  // built in, or the name of a module (module.h)
  std::string options;           // for the back end, what stood behind the colon
  std::string modules;           // where modules are; empty = where this code is
  FabricAddress ip;              // local address, a specific one
  std::uint16_t port = 0;        // 0: first_port, or the next free one after it (port per process)
  std::uint16_t first_port = kUetUdpPort;  // of kUetUdpPorts
  std::uint32_t receive_buffer_bytes = kSocketBufferBytes;
  std::uint32_t send_buffer_bytes = kSocketBufferBytes;
  // NICs that this process opens at the same interface from here on, this one among them: each
  // leaves its share of the receive queues, where the back end has queues, to the next.
  std::uint32_t sharers = 1;
  std::uint16_t source_ports = 1;  // as UdpOptions::source_ports, where the back end is that
  bool gso = true;                 // segmented sends, where the back end can
  bool gro = true;                 // coalesced receives, where the back end can
  // As UdpOptions::arrival_times_on_loopback, where the back end is that.
  bool arrival_times_on_loopback = true;
  bool self_delivery = true;  // packets to oneself stay in memory
  bool local_rings = false;   // packets to processes on this host, too (LocalNic)
  // The secure domain whose packets the rings may carry; nullopt: packets in clear.
  std::optional<std::uint32_t> sdi;
  std::string faults;     // as for parse_fault_spec; empty = none
  std::string pcap_file;  // as for PcapNic::open; empty = no capture
  // Under transport security: as pcap_file, of packets before they are sealed and after they are
  // opened (TSS-70); empty = no such capture.
  std::string clear_pcap_file;
  std::uint32_t pcap_snap_bytes = 0;  // bytes kept of each frame; 0 = all
  bool crc = false;                   // CRC trailer behind each packet (WIRE 1.4)
  std::uint8_t dscp_data = 0;         // of most packets; what the fault "trim" trims
  wire::TrimMarks trim_marks = wire::kDefaultTrimMarks;
  bool trimming = false;  // the network trims: packets with these marks have no CRC
  // Puts transport security around the NIC below it, which it takes over; empty = none. Errors: its
  // own, with `message`.
  std::function<Result<std::unique_ptr<Nic>>(std::unique_ptr<Nic>, std::string& message)> secure;
  // Called, for the log, with the mode of the back end, if the back end has several.
  std::function<void(const std::string&)> report_mode;
};

// "NAME" or "NAME:OPTIONS" into config.back_end and config.options. False: not of this form.
bool set_back_end(NicConfig& config, std::string_view text);

// The largest IP packet that config's back end carries over `interface`. Errors: NotFound (unknown
// back end) and others of Module::ip_mtu; `message` says why and what to do.
Result<std::uint32_t> ip_mtu_on(const NicConfig& config, const Interface& interface,
                                std::string& message);

// From the network upwards: back end, rings, self-delivery, faults, capture, CRC. So the capture
// shows what the protocol above sees, with the trailer, and what the faults threw away carries a
// comment. Under transport security, which takes the place of the CRC, faults and capture are right
// above the back end, below the rings: they see packets as on the wire, no others (TSS-64, TSS-70),
// and corrupted ones are delivered, as with a CRC; the clear capture is right above the security.
// On failure nothing stays open and `message` says what is wrong and what is allowed; on success it
// is a warning or empty. Errors: NotFound (unknown back end), Invalid (bad faults), and those of
// the parts.
Result<std::unique_ptr<Nic>> open_nic(const NicConfig& config, std::string& message);

}  // namespace uet::nic
