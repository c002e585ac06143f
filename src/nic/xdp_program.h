// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The XDP program of an interface, which all our processes share: the first process attaches it,
// each one holds a reference, and the kernel frees it when the last one exits, killed or not. Uses
// sockets only by their descriptors.
#pragma once

#include <cstdint>
#include <string>

#include "nic/interface.h"
#include "nic/socket.h"
#include "uet/base/address.h"
#include "uet/base/result.h"

namespace uet::nic {

class XdpProgram {
 public:
  // Attaches the program to the interface, or shares the one that is attached. `generic`: behind
  // the driver instead of in it, which is the fallback if the driver has no XDP; a program that is
  // attached already stays where it is. Errors: NotSupported (no right, or the kernel refuses),
  // AddressInUse (another program is attached); `message` says why and what to do.
  static Result<XdpProgram> open(const Interface& interface, bool generic, std::string& message);

  // Puts `socket`, of AF_XDP and not bound yet, into the entry of `queue`: the caller has the queue
  // until that socket is closed, which process exit does at once. Meanwhile the kernel receives its
  // packets. False, with errno; EEXIST: a living process has the queue.
  bool claim_queue(std::uint32_t queue, int socket);

  struct Owner {
    int socket = -1;  // bound to the queue
    int guard = -1;   // GuardMap::fd
    FepAddress self;
    std::uint8_t protocol = 0;
  };
  // From now on, until the socket is closed, the guard judges frames to owner.self of IP protocol
  // owner.protocol, in whichever queue they arrive. Frames that pass go to the socket if they
  // arrived in `queue`, else to the kernel. The socket replaces the one that has claimed the queue.
  // False, with errno.
  bool give_queue(std::uint32_t queue, const Owner& owner);

  bool generic() const { return generic_; }
  // The loaded program, for tests (BPF_PROG_TEST_RUN).
  int program_fd() const { return program_.get(); }

  // Loads it without attaching it anywhere. Returns 0 or errno.
  static int load(XdpProgram& program);

 private:
  bool join(const Interface& interface, std::uint32_t program_id);
  bool find_map(std::uint32_t id);
  bool has_maps() const {
    return endpoints_.valid() && sockets_.valid() && guards_.valid() && queue_of_.valid();
  }
  int attach(const Interface& interface, bool generic);

  FileDescriptor program_;
  FileDescriptor endpoints_;
  FileDescriptor sockets_;
  FileDescriptor guards_;
  FileDescriptor queue_of_;
  FileDescriptor link_;
  bool generic_ = false;
};

}  // namespace uet::nic
