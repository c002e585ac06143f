// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One small file without a name, mapped as often as needed.
#include "netsim/shared_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace uet::netsim {
namespace {

constexpr std::uint64_t kPiece = 1 << 20;  // fits the caches; a mapping each

}  // namespace

SharedPages::SharedPages(std::uint64_t bytes) : size_((bytes + kPiece) / kPiece * kPiece) {
  void* room = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(room);
  const int file = memfd_create("netsim-payload", MFD_CLOEXEC);
  bool good = file >= 0 && ftruncate(file, kPiece) == 0;
  for (std::uint64_t at = 0; good && at < size_; at += kPiece) {
    good = mmap(data_ + at, kPiece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) !=
           MAP_FAILED;
  }
  if (file >= 0) close(file);
  if (good) return;
  munmap(data_, size_);
  throw std::bad_alloc();
}

SharedPages::~SharedPages() { munmap(data_, size_); }

}  // namespace uet::netsim
