// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Adds to DPDK's net_af_xdp: a program that leaves foreign packets to the kernel (the driver's own
// program takes every packet that arrives over the interface), and the removal of the program and
// of the socket when a port is closed (DPDK 22.11 keeps both).
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nic/framed/frame_device.h"
#include "nic/socket.h"
#include "nic/xdp_redirect.h"
#include "uet/base/result.h"

namespace uet::nic {

// A descriptor with the inode number by which its socket is recognized.
struct XdpSocketOfProcess {
  int fd = -1;
  ino_t number = 0;
  bool operator==(const XdpSocketOfProcess&) const = default;
};

// One process at a time has its program on an interface. A program that a killed process left there
// is removed before the next one is attached. A program of other software is never touched.
class DpdkXdpProgram {
 public:
  // Errors, with a message: AddressInUse (another process has its
  // program on this interface, or other software has), NotSupported (no right or memory, or built
  // without the compiler of the program).
  static Result<std::unique_ptr<DpdkXdpProgram>> open(const Interface& interface,
                                                      std::string& message);
  // To be destroyed after the port was closed.
  ~DpdkXdpProgram();
  DpdkXdpProgram(const DpdkXdpProgram&) = delete;
  DpdkXdpProgram& operator=(const DpdkXdpProgram&) = delete;

  // Before and after the driver loads the program and makes its socket.
  void expect_driver();
  void find_driver();
  // The program takes packets to this endpoint, or no longer. False if that is not possible.
  bool list(const UetXdpEndpoint& endpoint);
  void strike(const UetXdpEndpoint& endpoint);

  // The object file, for the driver's argument xdp_prog.
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_.get()); }

 private:
  explicit DpdkXdpProgram(int interface_index);

  int interface_index_;
  pid_t owner_pid_;
  FileDescriptor owner_;
  FileDescriptor file_;
  // libbpf writes to standard error, which is the program's.
  void (*print_before_)() = nullptr;
  std::vector<XdpSocketOfProcess> before_;
  std::optional<XdpSocketOfProcess> socket_;  // the driver's
  FileDescriptor listed_;                     // the program's map of endpoints
};

}  // namespace uet::nic
