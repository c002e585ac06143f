// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What DPDK's net_af_xdp lacks: a program that leaves to the kernel what is not ours (the driver's
// own takes everything that comes in over the interface), and the removal of the program and of the
// socket when a port is closed (DPDK 22.11 keeps both).
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "uet/base/result.h"
#include "uet/nic/framed/frame_device.h"
#include "uet/nic/socket.h"

namespace uet::nic {

// A descriptor, and what tells whether it still is the same socket.
struct XdpSocketOfProcess {
  int fd = -1;
  ino_t number = 0;
  bool operator==(const XdpSocketOfProcess&) const = default;
};

// One process at a time has it on an interface; what a killed one has left there goes before the
// next begins. Never touches a program of somebody else.
class DpdkXdpProgram {
 public:
  // For packets to request.self. Errors, with a message: AddressInUse (another process has it on
  // this interface, or there is a program of somebody else), NotSupported (no right or memory, or
  // built without what compiles it).
  static Result<std::unique_ptr<DpdkXdpProgram>> open(const FrameDeviceRequest& request,
                                                      std::string& message);
  // To be destroyed after the port was closed.
  ~DpdkXdpProgram();
  DpdkXdpProgram(const DpdkXdpProgram&) = delete;
  DpdkXdpProgram& operator=(const DpdkXdpProgram&) = delete;

  // Before and after the driver makes its socket.
  void expect_socket();
  void find_socket();

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
};

}  // namespace uet::nic
