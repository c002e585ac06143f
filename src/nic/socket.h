// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Helpers for code that uses kernel sockets: a descriptor that closes itself, conversion of our
// addresses to socket addresses, and the meaning of an errno. Only back ends include this.
#pragma once

#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "uet/base/address.h"
#include "uet/base/result.h"

namespace uet::nic {

// For messages.
inline std::string error_text(int error) { return std::generic_category().message(error); }

// The error that a caller reports for a failed system call if it knows nothing more specific.
inline Error error_of(int error) {
  switch (error) {
    case EMFILE:
      return Error::ProcessFiles;
    case ENFILE:
      return Error::SystemFiles;
    case ENOMEM:
      return Error::NoMemory;
    default:
      return Error::Io;
  }
}

// While it lives, pthread_cancel of this thread is deferred: system calls would act on it, and
// the unwinding would end in noexcept functions, which terminate the process.
class NoCancel {
 public:
  NoCancel() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancel() { ::pthread_setcancelstate(before_, nullptr); }
  NoCancel(const NoCancel&) = delete;
  NoCancel& operator=(const NoCancel&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

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
    if (fd_ < 0) return;
    const NoCancel no_cancel;
    ::close(fd_);
  }
  int get() const { return fd_; }
  // The descriptor is the caller's from now on.
  int release() { return std::exchange(fd_, -1); }
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
