// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "security/key_memory.h"

#include <string.h>
#include <sys/mman.h>

#include <new>

namespace uet::prov {

void* KeyPages::do_allocate(std::size_t bytes, std::size_t /*alignment: at most that of pages*/) {
  void* const pages =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  (void)madvise(pages, bytes, MADV_DONTDUMP);
  (void)mlock(pages, bytes);
  return pages;
}

void KeyPages::do_deallocate(void* pages, std::size_t bytes, std::size_t /*alignment*/) {
  explicit_bzero(pages, bytes);
  munmap(pages, bytes);
}

}  // namespace uet::prov
