// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Unix sockets of type SOCK_SEQPACKET: messages stay whole, and the end of the peer shows.
#include "nic/local_socket.h"

#include <sys/syscall.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

namespace uet::nic {
namespace {

constexpr int kSocketType = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;
constexpr int kBacklog = 1024;

struct LocalName {
  sockaddr_un address{};
  socklen_t length = 0;
};

// An abstract name begins with a zero byte. The 2 is the version of what is spoken there.
LocalName name_of(const FepAddress& fep, std::optional<std::uint32_t> sdi) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string name(1, '\0');
  name += "uet-local-2-";
  const std::size_t bytes = fep.ip.is_ipv6 ? 16 : 4;
  for (std::size_t i = 0; i < bytes; ++i) {
    name += kDigits[fep.ip.bytes[i] >> 4];
    name += kDigits[fep.ip.bytes[i] & 15];
  }
  name += "-" + std::to_string(fep.port);
  if (sdi) name += "-sdi-" + std::to_string(*sdi);
  LocalName local;
  local.address.sun_family = AF_UNIX;
  std::memcpy(local.address.sun_path, name.data(), name.size());
  local.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  return local;
}

ucred credentials(int socket) {
  ucred peer{.pid = 0, .uid = static_cast<uid_t>(-1), .gid = 0};
  socklen_t length = sizeof peer;
  ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length);
  return peer;
}

std::string contents_of(const char* file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A process of the overflow user cannot tell its own user from others outside its namespace.
bool knows_its_user() {
  constexpr uid_t kUsualOverflow = 65534;
  std::uint64_t overflow = kUsualOverflow;
  std::istringstream(contents_of("/proc/sys/kernel/overflowuid")) >> overflow;
  return ::geteuid() != overflow || maps_every_user(contents_of("/proc/self/uid_map"));
}

bool is_own_user(int socket) { return credentials(socket).uid == ::geteuid() && knows_its_user(); }

}  // namespace

bool maps_every_user(std::string_view uid_map) {
  constexpr std::uint64_t kUsers = 0xFFFFFFFF;  // all but -1
  std::istringstream lines{std::string(uid_map)};
  std::uint64_t inside = 0;
  std::uint64_t outside = 0;
  std::uint64_t count = 0;
  while (lines >> inside >> outside >> count) {
    if (inside == 0 && outside == 0 && count >= kUsers) return true;
  }
  return false;
}

Result<FileDescriptor> listen_local(const FepAddress& self, std::string& message,
                                    std::optional<std::uint32_t> sdi) {
  if (!knows_its_user()) {
    message =
        "no same-host rings: in this user namespace the user of this process (the overflow user) "
        "cannot be told from others; map the user, or set FI_UET_LOCAL=off";
    return Error::NotSupported;
  }
  const LocalName name = name_of(self, sdi);
  FileDescriptor listener(::socket(AF_UNIX, kSocketType, 0));
  const auto* address = reinterpret_cast<const sockaddr*>(&name.address);
  if (listener.valid() && ::bind(listener.get(), address, name.length) == 0 &&
      ::listen(listener.get(), kBacklog) == 0) {
    return listener;
  }
  const int error = errno;
  message = "no same-host rings: cannot listen for peers on this host: " + error_text(error);
  return error == EADDRINUSE ? Error::AddressInUse : error_of(error);
}

Accepted accept_local(int listener, FileDescriptor& peer) {
  FileDescriptor socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.valid()) {
    if (errno == ECONNABORTED || errno == EINTR) return Accepted::Stranger;
    return errno == EAGAIN ? Accepted::Nobody : Accepted::Failed;
  }
  if (!is_own_user(socket.get())) return Accepted::Stranger;
  peer = std::move(socket);
  return Accepted::Peer;
}

FileDescriptor connect_local(const FepAddress& peer, std::optional<std::uint32_t> sdi) {
  const LocalName name = name_of(peer, sdi);
  FileDescriptor socket(::socket(AF_UNIX, kSocketType, 0));
  const auto* address = reinterpret_cast<const sockaddr*>(&name.address);
  if (!socket.valid() || ::connect(socket.get(), address, name.length) != 0 ||
      !is_own_user(socket.get())) {
    return FileDescriptor();
  }
  return socket;
}

bool send_with_descriptor(int socket, std::span<const std::byte> message, int descriptor) {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
  iovec part{.iov_base = const_cast<std::byte*>(message.data()), .iov_len = message.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (descriptor >= 0) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* item = CMSG_FIRSTHDR(&header);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(item), &descriptor, sizeof descriptor);
  }
  const ssize_t sent = ::sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent == static_cast<ssize_t>(message.size());
}

Received receive_with_descriptor(int socket, std::span<std::byte> message,
                                 FileDescriptor& descriptor) {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
  iovec part{.iov_base = message.data(), .iov_len = message.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = CMSG_LEN(sizeof(int));  // two descriptors would fit into CMSG_SPACE
  const ssize_t length = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (length < 0) {
    return errno == EAGAIN || errno == EINTR ? Received::Nothing : Received::Ended;
  }
  const cmsghdr* item = CMSG_FIRSTHDR(&header);
  if (item != nullptr && item->cmsg_level == SOL_SOCKET && item->cmsg_type == SCM_RIGHTS &&
      item->cmsg_len == CMSG_LEN(sizeof(int))) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(item), sizeof fd);
    descriptor = FileDescriptor(fd);
  }
  const bool whole = length == static_cast<ssize_t>(message.size()) && length > 0 &&
                     (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  return whole ? Received::Message : Received::Ended;
}

void send_wake_up(int socket) { ::send(socket, "w", 1, MSG_NOSIGNAL | MSG_DONTWAIT); }

bool take_wake_ups(int socket) {
  constexpr int kAtOnce = 4;  // mostly there is one; what is left is met again
  std::array<std::byte, 8> ignored;
  ssize_t taken = 1;
  for (int i = 0; i < kAtOnce && taken > 0; ++i) {
    taken = ::recv(socket, ignored.data(), ignored.size(), MSG_DONTWAIT);
    if (taken == 1) break;
  }
  return taken > 0 || (taken < 0 && (errno == EAGAIN || errno == EINTR));
}

std::int64_t process_of(int socket) { return std::max(credentials(socket).pid, 0); }

FileDescriptor watch_process(int socket) {
  const std::int64_t process = process_of(socket);
  if (process == 0) return FileDescriptor();
  return FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
}

}  // namespace uet::nic
