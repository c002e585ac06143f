// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The domains whose progress an object makes that belongs to none of them: an EQ, a wait set.
#pragma once

#include <mutex>
#include <vector>

#include "nic/socket.h"

namespace uet::prov {

class Engine;
class Engines;

// Several domains, each with the number of times that it has been added.
class DomainGroup {
 public:
  // 0 or a negative fi_errno.
  int open() noexcept;
  // Turns the domain's lock on: threads that use the group are not the domain's own.
  int add(Engine& engine) noexcept;
  // All engines of a domain, or none of them.
  int add(Engines& engines) noexcept;
  void remove(Engine& engine) noexcept;
  // One pass of each; the caller holds no lock.
  void progress() noexcept;
  // For sleepers: readable when progress() is due. Sets the domains' timers.
  int activity() noexcept;
  // The same descriptor, without setting timers.
  int descriptor() const { return epoll_.get(); }

 private:
  struct Part {
    Engine* engine;
    int count;
  };
  std::mutex mutex_;  // held while a domain's lock is taken, never the other way round
  std::vector<Part> parts_;
  nic::FileDescriptor epoll_;
};

}  // namespace uet::prov
