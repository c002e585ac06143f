// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "settings/secret_text.h"

#include <string.h>
#include <sys/mman.h>

#include <utility>

namespace uet::prov {

SecretText::SecretText(std::size_t bytes) {
  // Pages of its own: the advice is for whole pages.
  void* const pages =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return;
  (void)madvise(pages, bytes, MADV_DONTDUMP);
  (void)madvise(pages, bytes, MADV_WIPEONFORK);
  (void)mlock(pages, bytes);
  data_ = static_cast<char*>(pages);
  capacity_ = bytes;
}

SecretText::~SecretText() {
  if (data_ == nullptr) return;
  explicit_bzero(data_, capacity_);
  munmap(data_, capacity_);
}

SecretText::SecretText(SecretText&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      capacity_(std::exchange(other.capacity_, 0)),
      size_(std::exchange(other.size_, 0)) {}

SecretText& SecretText::operator=(SecretText&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(capacity_, other.capacity_);
  std::swap(size_, other.size_);
  return *this;
}

void SecretText::resize(std::size_t bytes) {
  size_ = bytes;
  if (bytes < capacity_) explicit_bzero(data_ + bytes, capacity_ - bytes);
}

}  // namespace uet::prov
