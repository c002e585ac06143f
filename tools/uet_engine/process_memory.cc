// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "process_memory.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace uet::engine {

namespace {

// Copies all of `here` to or from `there`. False: some of it is not there.
template <class Copy>
bool copy_all(Copy copy, pid_t pid, std::byte* here, std::byte* there, std::size_t length) {
  while (length > 0) {
    const iovec local{here, length};
    const iovec remote{there, length};
    const ssize_t copied = copy(pid, &local, 1, &remote, 1, 0);
    if (copied <= 0) return false;
    here += copied;
    there += copied;
    length -= static_cast<std::size_t>(copied);
  }
  return true;
}

}  // namespace

bool ProcessMemory::open(pid_t pid, std::string& why) {
  pid_ = pid;
  process_ = nic::FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process_.valid()) {
    why = "pidfd_open: " + nic::error_text(errno);
    return false;
  }
  // Any byte that is there: this stack has one at an address that means nothing in the other
  // process, so that only the right to look decides.
  char byte = 0;
  const iovec local{&byte, 1};
  const iovec remote{nullptr, 1};
  ::process_vm_readv(pid, &local, 1, &remote, 1, 0);
  if (errno != EPERM) return true;
  why = "process_vm_readv: " + nic::error_text(errno) +
        "; the engine needs CAP_SYS_PTRACE for processes of other users, or that protect "
        "themselves";
  return false;
}

// Else its number may be that of another process.
bool ProcessMemory::runs() const noexcept {
  pollfd ended{.fd = process_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&ended, 1, 0) == 0;
}

void ProcessMemory::place(std::byte* there, std::span<const std::byte> bytes) noexcept {
  auto* const here = const_cast<std::byte*>(bytes.data());
  if (runs() && copy_all(::process_vm_writev, pid_, here, there, bytes.size())) return;
  failures_.fetch_add(1, std::memory_order_relaxed);
}

void ProcessMemory::fetch(std::span<std::byte> bytes, const std::byte* there) noexcept {
  auto* const from = const_cast<std::byte*>(there);
  if (runs() && copy_all(::process_vm_readv, pid_, bytes.data(), from, bytes.size())) return;
  std::memset(bytes.data(), 0, bytes.size());
  failures_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace uet::engine
