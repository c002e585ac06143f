// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The UDP checksum is 0, as IPv4 allows: the ceiling does without.
#include "raw_frame.h"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>

#include "nic/socket.h"

namespace uet::bench {
namespace {

constexpr int kTries = 30;
constexpr std::chrono::milliseconds kPause{100};

std::optional<wire::MacAddress> known_mac_of(const FabricAddress& ip) {
  std::ifstream table("/proc/net/arp");
  std::string line;
  const std::string wanted = nic::to_text(ip) + " ";
  while (std::getline(table, line)) {
    if (!line.starts_with(wanted)) continue;
    wire::MacAddress mac{};
    const std::size_t at = line.find(':');
    if (at == std::string::npos || at < 2) continue;
    if (std::sscanf(line.c_str() + at - 2, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1],
                    &mac[2], &mac[3], &mac[4], &mac[5]) == 6 &&
        mac != wire::MacAddress{}) {
      return mac;
    }
  }
  return {};
}

// From the kernel, which asks for it when it has something to send.
std::optional<wire::MacAddress> mac_of(const FabricAddress& ip) {
  const nic::FileDescriptor fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  nic::SocketAddress address;
  nic::write_socket_address({ip, kRawPort}, address);
  for (int i = 0; i < kTries; ++i) {
    if (const auto mac = known_mac_of(ip)) return mac;
    ::sendto(fd.get(), nullptr, 0, MSG_DONTWAIT, &address.any, nic::socket_address_length(false));
    std::this_thread::sleep_for(kPause);
  }
  return {};
}

// Keeps the kernel, which sees the packets too, from answering them with "port unreachable".
void hold_port(const FabricAddress& self) {
  static nic::FileDescriptor holder(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  nic::SocketAddress address;
  nic::write_socket_address({self, kRawPort}, address);
  const int least = 1;
  ::setsockopt(holder.get(), SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
  if (::bind(holder.get(), &address.any, nic::socket_address_length(false)) != 0) {
    std::perror("bind");
  }
}

}  // namespace

std::optional<RawFrame> RawFrame::open(const RawChoice& choice) {
  std::string message;
  const auto interfaces = nic::list_interfaces(message);
  const nic::Interface* const interface =
      interfaces ? nic::interface_of(interfaces.value(), choice.self) : nullptr;
  const auto mac = mac_of(choice.peer);
  if (interface == nullptr || !mac) {
    std::fprintf(stderr, "no interface with %s, or %s does not answer ARP\n",
                 nic::to_text(choice.self).c_str(), nic::to_text(choice.peer).c_str());
    return {};
  }
  hold_port(choice.self);
  RawFrame frame;
  frame.interface_ = *interface;
  frame.bytes_ = choice.bytes;
  wire::FrameFormat format;
  format.udp_checksum = false;
  wire::FrameFields fields;
  fields.source_mac = interface->mac;
  fields.destination_mac = *mac;
  fields.source = choice.self;
  fields.destination = choice.peer;
  fields.entropy = kRawPort;
  fields.port = kRawPort;
  const std::vector<std::byte> packet(kRawHeaderBytes + choice.bytes);
  for (const bool with_payload : {false, true}) {
    const auto length =
        static_cast<std::uint32_t>(kRawHeaderBytes + (with_payload ? choice.bytes : 0));
    const std::array<Slice, 1> pieces = {Slice{packet.data(), length}};
    Headers& headers = frame.headers_[with_payload ? 1 : 0];
    headers.length = wire::write_frame_headers(headers.bytes.data(), format, fields, pieces);
  }
  return frame;
}

}  // namespace uet::bench
