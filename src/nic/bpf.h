// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Helpers to load any program for the kernel's virtual machine (eBPF). Only modules that are
// linked to libbpf include this.
#pragma once

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>

#include <cstdint>
#include <mutex>

#include "nic/socket.h"

#define UET_TEXT_OF(name) #name
#define UET_NAME_OF(macro) UET_TEXT_OF(macro)

namespace uet::nic {

struct BpfObjectFree {
  void operator()(bpf_object* object) const { bpf_object__close(object); }
};

// Closes itself, unlike the descriptors that a bpf_object owns.
inline FileDescriptor duplicate(int fd) { return FileDescriptor(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

// libbpf logs to standard error, which is the application's; our messages say the same better.
class QuietBpf {
 public:
  QuietBpf() : lock_(printer), before_(libbpf_set_print(nullptr)) {}
  ~QuietBpf() { libbpf_set_print(before_); }
  QuietBpf(const QuietBpf&) = delete;
  QuietBpf& operator=(const QuietBpf&) = delete;

 private:
  inline static std::mutex printer;
  std::lock_guard<std::mutex> lock_;
  libbpf_print_fn_t before_;
};

// Reads the kernel's description of a program, map or link. On failure false, with errno.
template <class Info>
bool read_info(int fd, Info& info) {
  std::uint32_t length = sizeof info;
  return bpf_obj_get_info_by_fd(fd, &info, &length) == 0;
}

}  // namespace uet::nic
