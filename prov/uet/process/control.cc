// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "process/control.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "live/place.h"

namespace uet::prov {

namespace {

constexpr std::size_t kMostDescriptors = 3;
constexpr const char* kHostEngine = "/run/uet/engine";
constexpr int kBacklog = 64;

bool socket_address_of(const std::string& path, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return true;
}

nic::FileDescriptor message_socket() {
  return nic::FileDescriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

// Only its own user and root may be an application's engine.
bool is_trusted(int socket) {
  const PeerProcess engine = process_at(socket);
  return engine.pid > 0 && (engine.uid == 0 || engine.uid == ::geteuid());
}

}  // namespace

ControlRequest request_of(Request kind) {
  ControlRequest request;
  std::memset(static_cast<void*>(&request), 0, sizeof request);
  request.version = control_version();
  request.request = static_cast<std::uint8_t>(kind);
  return request;
}

std::int32_t code_of(const Result<void>& result) {
  return result.ok() ? 0 : 1 + static_cast<std::int32_t>(result.error());
}

Result<void> result_of(std::int32_t code) {
  if (code == 0) return {};
  return code > 0 ? static_cast<Error>(code - 1) : Error::Io;
}

RegionRequest share(const ri::MemoryRegion& region, std::uint64_t key) {
  return {.key = key,
          .base = reinterpret_cast<std::uintptr_t>(region.base),
          .length = region.length,
          .virtual_base = region.virtual_base,
          .job = region.job.value_or(JobId{}).value,
          .resource_index = region.ri.value_or(ResourceIndex{}).value,
          .pid_on_fep = region.pid.value_or(PidOnFep{}).value,
          .indices = region.ri_count,
          .access = region.access,
          .has_job = region.job.has_value(),
          .has_index = region.ri.has_value(),
          .has_pid = region.pid.has_value(),
          .enabled = region.enabled};
}

ri::MemoryRegion region_of(const RegionRequest& request) {
  ri::MemoryRegion region;
  region.base = address_of(request.base);
  region.length = request.length;
  region.virtual_base = request.virtual_base;
  region.access = request.access & (ri::kRemoteRead | ri::kRemoteWrite);
  if (request.has_job != 0) region.job = JobId{request.job & kMaxJobId};
  if (request.has_index != 0) region.ri = ResourceIndex{request.resource_index};
  if (request.has_pid != 0) region.pid = PidOnFep{request.pid_on_fep};
  region.ri_count = request.indices;
  region.enabled = request.enabled != 0;
  return region;
}

PeerProcess process_at(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return {};
  return {peer.pid, peer.uid};
}

bool send_message(int socket, const void* bytes, std::size_t length,
                  std::span<const int> descriptors) {
  iovec data{const_cast<void*>(bytes), length};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMostDescriptors * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const item = CMSG_FIRSTHDR(&message);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(item), descriptors.data(), descriptors.size_bytes());
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(length);
}

bool receive_message(int socket, void* bytes, std::size_t length,
                     std::vector<nic::FileDescriptor>* descriptors) {
  iovec data{bytes, length};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMostDescriptors * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t received = 0;
  do {
    received = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received < 0) return false;
  std::vector<nic::FileDescriptor> came;
  for (cmsghdr* item = CMSG_FIRSTHDR(&message); item != nullptr;
       item = CMSG_NXTHDR(&message, item)) {
    if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= item->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(item) + (at - CMSG_LEN(0)), sizeof fd);
      came.emplace_back(fd);
    }
  }
  if (descriptors != nullptr) *descriptors = std::move(came);
  return received == static_cast<ssize_t>(length) && (message.msg_flags & MSG_TRUNC) == 0;
}

std::vector<std::string> engine_sockets(const std::string& named) {
  if (!named.empty()) return {named};
  std::vector<std::string> paths;
  for (const std::string& directory : live::directories()) {
    paths.push_back(directory + "/uet-engine." + std::to_string(::geteuid()));
  }
  paths.emplace_back(kHostEngine);
  return paths;
}

// A socket that is left over from an engine that has ended is replaced.
nic::FileDescriptor listen_at(const std::string& path, bool all_users, std::string& why) {
  sockaddr_un address;
  if (!socket_address_of(path, address)) {
    why = path + ": the name is too long for a socket";
    return nic::FileDescriptor();
  }
  std::string ignored;
  if (connect_to_engine({path}, ignored).valid()) {
    why = path + ": another engine listens there";
    return nic::FileDescriptor();
  }
  struct stat there {};
  if (::lstat(path.c_str(), &there) == 0 && S_ISSOCK(there.st_mode)) ::unlink(path.c_str());
  nic::FileDescriptor listener = message_socket();
  const mode_t before = ::umask(all_users ? 0 : S_IRWXG | S_IRWXO);
  const bool bound =
      listener.valid() &&
      ::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  int error = errno;
  ::umask(before);
  if (bound && ::listen(listener.get(), kBacklog) == 0) return listener;
  if (bound) error = errno;
  why = path + ": " + nic::error_text(error);
  return nic::FileDescriptor();
}

nic::FileDescriptor connect_to_engine(const std::vector<std::string>& paths, std::string& why) {
  for (const std::string& path : paths) {
    sockaddr_un address;
    nic::FileDescriptor socket = message_socket();
    if (!socket.valid() || !socket_address_of(path, address)) continue;
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      why += (why.empty() ? "" : "; ") + path + ": " + nic::error_text(errno);
      continue;
    }
    if (is_trusted(socket.get())) return socket;
    why += (why.empty() ? "" : "; ") + path + ": another user's process listens there";
  }
  return nic::FileDescriptor();
}

}  // namespace uet::prov
