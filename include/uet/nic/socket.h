// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What everything that talks to the kernel's sockets needs: a descriptor that closes itself, our
// addresses as the socket calls want them, and what an errno says. Only back ends include this.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "uet/base/address.h"

namespace uet::nic {

// For messages.
inline std::string error_text(int error) { return std::generic_category().message(error); }

// Owns a file descriptor; -1 = none.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_;
};

// A socket address of either family.
union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

constexpr socklen_t socket_address_length(bool is_ipv6) {
  return is_ipv6 ? socklen_t{sizeof(sockaddr_in6)} : socklen_t{sizeof(sockaddr_in)};
}

inline void write_socket_address(const FepAddress& from, SocketAddress& to) {
  if (from.ip.is_ipv6) {
    to.v6 = {};
    to.v6.sin6_family = AF_INET6;
    to.v6.sin6_port = htons(from.port);
    std::memcpy(&to.v6.sin6_addr, from.ip.bytes.data(), 16);
  } else {
    to.v4 = {};
    to.v4.sin_family = AF_INET;
    to.v4.sin_port = htons(from.port);
    std::memcpy(&to.v4.sin_addr, from.ip.bytes.data(), 4);
  }
}

// `from` holds an address of family AF_INET or AF_INET6.
inline FepAddress read_socket_address(const SocketAddress& from) {
  FepAddress address;
  address.ip.is_ipv6 = from.any.sa_family == AF_INET6;
  if (address.ip.is_ipv6) {
    address.port = ntohs(from.v6.sin6_port);
    std::memcpy(address.ip.bytes.data(), &from.v6.sin6_addr, 16);
  } else {
    address.port = ntohs(from.v4.sin_port);
    std::memcpy(address.ip.bytes.data(), &from.v4.sin_addr, 4);
  }
  return address;
}

}  // namespace uet::nic
