// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Searches the memory of this process for a key, as someone with a core file would.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory_resource>
#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace uet {

enum class SearchIn { AllMemory, CoreFile };

struct MemoryPart {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

// Private memory that can be written; for a core file without that of MADV_DONTDUMP ("dd").
inline std::vector<MemoryPart> memory_parts(SearchIn where) {
  std::vector<MemoryPart> parts;
  std::ifstream maps("/proc/self/smaps");
  bool writable = false;
  for (std::string line; std::getline(maps, line);) {
    MemoryPart part;
    char rights[5] = "";
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &part.begin, &part.end,
                    rights) == 3) {
      writable = std::string_view(rights) == "rw-p";
      if (writable) parts.push_back(part);
    } else if (writable && where == SearchIn::CoreFile && line.starts_with("VmFlags:") &&
               line.find(" dd") != std::string::npos) {
      parts.pop_back();
    }
  }
  return parts;
}

constexpr std::uint8_t kSearchMask = 0x5A;

// Places that hold the key: its bytes, with which each key schedule of AES begins, or the same in
// words of the other byte order. `masked`: the key with each byte XORed with kSearchMask, so that
// no copy of the key is made for the search.
inline int places_of_key(std::string_view masked, SearchIn where) {
  std::uint32_t first = 0;
  std::memcpy(&first, masked.data(), sizeof first);
  const std::uint32_t swapped = __builtin_bswap32(first);
  constexpr std::uint32_t kWordMask = 0x01010101U * kSearchMask;
  int found = 0;
  for (const MemoryPart& part : memory_parts(where)) {
    const auto* const words = reinterpret_cast<const volatile std::uint32_t*>(part.begin);
    const auto* const bytes = reinterpret_cast<const volatile std::uint8_t*>(part.begin);
    for (std::size_t at = 0; at + masked.size() <= part.end - part.begin; at += sizeof first) {
      const std::uint32_t word = words[at / sizeof first] ^ kWordMask;
      if (word != first && word != swapped) continue;
      for (const std::size_t swap : {0, 3}) {
        std::size_t equal = 0;
        while (equal < masked.size() &&
               bytes[at + (equal ^ swap)] ==
                   (static_cast<std::uint8_t>(masked[equal]) ^ kSearchMask)) {
          ++equal;
        }
        if (equal == masked.size()) ++found;
      }
    }
  }
  return found;
}

// Memory that is in no core file.
class HiddenMemory final : public std::pmr::memory_resource {
 public:
  std::size_t pieces = 0;
  bool was_zeroed = true;  // each piece at its end

 private:
  void* do_allocate(std::size_t bytes, std::size_t) override {
    void* const pages =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    ::madvise(pages, bytes, MADV_DONTDUMP);
    ++pieces;
    return pages;
  }
  void do_deallocate(void* pages, std::size_t bytes, std::size_t) override {
    const auto* const content = static_cast<const std::uint8_t*>(pages);
    was_zeroed &=
        std::all_of(content, content + bytes, [](std::uint8_t byte) { return byte == 0; });
    ::munmap(pages, bytes);
    --pieces;
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }
};

}  // namespace uet
