// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finds ports in a row that are free and binds sockets to them.
#include "nic/source_ports.h"

#include <linux/filter.h>
#include <unistd.h>

#include <cerrno>

namespace uet::nic {
namespace {

constexpr std::uint32_t kFirstDynamicPort = 49152;
constexpr std::uint32_t kDynamicPorts = 65536 - kFirstDynamicPort;

bool receive_nothing(int fd) {
  sock_filter refuse = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog filter{.len = 1, .filter = &refuse};
  return ::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0;
}

// Elsewhere for each address and process, so that hosts differ.
std::uint32_t place_to_begin(const FabricAddress& ip) {
  return static_cast<std::uint32_t>(
      FepAddressHash{}(FepAddress{ip, static_cast<std::uint16_t>(::getpid())}));
}

// Returns 0 or errno.
int prepare(int fd, const FepAddress& at) {
  SocketAddress address;
  write_socket_address(at, address);
  const bool good =
      receive_nothing(fd) && ::bind(fd, &address.any, socket_address_length(at.ip.is_ipv6)) == 0;
  return good ? 0 : errno;
}

}  // namespace

Result<SourcePorts> open_source_ports(const FabricAddress& ip, std::uint16_t count,
                                      const std::function<Result<FileDescriptor>()>& open,
                                      std::string& message) {
  const std::uint32_t blocks = kDynamicPorts / count;
  const std::uint32_t begin = place_to_begin(ip);
  int error = 0;
  for (std::uint32_t block = 0; block < blocks; ++block) {
    SourcePorts ports;
    ports.first = static_cast<std::uint16_t>(kFirstDynamicPort + (begin + block) % blocks * count);
    while (ports.sockets.size() < count) {
      auto socket = open();
      if (!socket) return socket.error();
      const auto port = static_cast<std::uint16_t>(ports.first + ports.sockets.size());
      error = prepare(socket.value().get(), FepAddress{ip, port});
      if (error != 0) break;
      ports.sockets.push_back(std::move(socket).value());
    }
    if (error == 0) return ports;
    if (error != EADDRINUSE) break;
  }
  message = "cannot bind " + std::to_string(count) + " UDP ports in a row to send from (" +
            error_text(error) + "): set udp_source_ports of FI_UET_TUNING to fewer";
  return error_of(error);
}

}  // namespace uet::nic
