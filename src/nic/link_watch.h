// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Watches whether an interface carries packets: it is switched on and has a carrier.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nic/socket.h"

namespace uet::nic {

class LinkWatch {
 public:
  // Begins to watch the interface of this name; of several, "a+b", at least one is up. 0, or an
  // errno: the kernel does not tell.
  int open(const std::string& name);
  // Readable when the kernel has news of some interface: call changed() then. -1: not open.
  int fd() const { return news_.get(); }
  // The new state of the interface if it is another than at the last call; never waits.
  std::optional<bool> changed();

 private:
  bool is_up() const;

  std::vector<std::string> names_;
  FileDescriptor news_;
  bool up_ = false;
};

}  // namespace uet::nic
