// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The kernel's messages say only that something has changed: the state is asked for each time, so
// that messages that were lost do no harm.
#include "nic/link_watch.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>

namespace uet::nic {

int LinkWatch::open(const std::string& name) {
  names_.clear();
  std::istringstream names(name);
  for (std::string each; std::getline(names, each, '+');) {
    if (each.empty() || each.size() >= IFNAMSIZ) return EINVAL;
    names_.push_back(each);
  }
  if (names_.empty()) return EINVAL;
  news_ =
      FileDescriptor(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  if (!news_.valid()) return errno;
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK;
  if (::bind(news_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    news_ = FileDescriptor();
    return error;
  }
  up_ = is_up();
  return 0;
}

std::optional<bool> LinkWatch::changed() {
  std::array<std::byte, 256> message;  // the rest of a longer one is thrown away
  bool any = false;
  while (::recv(news_.get(), message.data(), message.size(), MSG_DONTWAIT) >= 0 ||
         errno == ENOBUFS) {
    any = true;
  }
  if (!any) return {};
  const bool up = is_up();
  if (up == up_) return {};
  up_ = up;
  return up;
}

// An interface that is gone is down.
bool LinkWatch::is_up() const {
  const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return false;
  for (const std::string& name : names_) {
    ifreq request{};
    std::memcpy(request.ifr_name, name.data(), name.size());
    if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) continue;
    constexpr int kCarries = IFF_UP | IFF_RUNNING;
    if ((request.ifr_flags & kCarries) == kCarries) return true;
  }
  return false;
}

}  // namespace uet::nic
