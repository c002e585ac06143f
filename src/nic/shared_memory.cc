// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sealed memfds. A forked child does not inherit the mapping: nothing there may use it.
#include "nic/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace uet::nic {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

// Beyond the limit the kernel would send SIGXFSZ, which ends the process.
bool SharedMemory::is_allowed(std::size_t bytes) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes <= limit.rlim_cur;
}

Result<SharedMemory> SharedMemory::create(std::size_t bytes) {
  if (!is_allowed(bytes)) return Error::NoMemory;
  FileDescriptor fd(::memfd_create("uet", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid() || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    return Error::NoMemory;
  }
  return map(std::move(fd), bytes);
}

Result<SharedMemory> SharedMemory::attach(FileDescriptor fd, std::size_t bytes) {
  // First, because no file system is asked: one could keep us waiting. -1: no memfd.
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) return Error::Invalid;
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size != static_cast<off_t>(bytes)) {
    return Error::Invalid;
  }
  auto memory = map(std::move(fd), bytes);
  if (memory) memory.value().close_fd();
  return memory;
}

Result<SharedMemory> SharedMemory::map(FileDescriptor fd, std::size_t bytes) {
  void* start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (start == MAP_FAILED) return Error::NoMemory;
  ::madvise(start, bytes, MADV_DONTFORK);
  return SharedMemory(std::move(fd), {static_cast<std::byte*>(start), bytes});
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::move(other.fd_)), bytes_(std::exchange(other.bytes_, {})) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace uet::nic
