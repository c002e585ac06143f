// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The descriptors of same-host rings in one epoll set, with the meaning of each (local.h). The set
// is the NIC's wait_fd.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <utility>

#include "nic/socket.h"

namespace uet::nic {

class LocalWatch {
 public:
  enum class What : std::uint8_t {
    Plain,  // only wakes
    SharedBell,
    Listener,
    Incoming,
    IncomingProcess,
    Outgoing,
  };

  // `epoll`: an empty epoll set.
  explicit LocalWatch(FileDescriptor epoll) : epoll_(std::move(epoll)) {}

  int fd() const { return epoll_.get(); }
  // `id`: of the connection that the descriptor belongs to. True for an fd of -1. The shared bell
  // is watched by edge: peers hold it, too, and it is never read, since a read might wait.
  bool add(int fd, What what, std::uint16_t id = 0) {
    const bool by_edge = what == What::SharedBell;
    epoll_event event{.events = by_edge ? EPOLLIN | EPOLLET : EPOLLIN,
                      .data = {.u64 = data_of(what, id)}};
    return fd < 0 || ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  }
  // Explicitly, because closing does not do it where a forked child has a copy.
  void remove(const FileDescriptor& fd) {
    if (fd.valid()) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd.get(), nullptr);
  }
  // A paused descriptor stays in the set and reports nothing.
  void pause(int fd, What what, bool pause) {
    epoll_event event{.events = pause ? 0U : EPOLLIN, .data = {.u64 = data_of(what, 0)}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
  }
  // Calls `report(What, id, has_hung_up)` for some of the descriptors that have news; never waits.
  template <class Report>
  void look(Report report) {
    std::array<epoll_event, 32> events;
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      report(static_cast<What>(event.data.u64 & 7), static_cast<std::uint16_t>(event.data.u64 >> 3),
             (event.events & EPOLLHUP) != 0);
    }
  }

 private:
  static std::uint64_t data_of(What what, std::uint16_t id) {
    return std::uint64_t{id} << 3 | static_cast<std::uint64_t>(what);
  }

  FileDescriptor epoll_;
};

}  // namespace uet::nic
