// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hmem/persistent.h"

#include <cstdint>
#include <cstring>
#include <new>

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace uet::prov {
namespace {

#ifdef __x86_64__
// CLWB keeps the line in the cache; the other two drop it. All CPUs of this kind have CLFLUSH.
__attribute__((target("clwb"))) void keep_line(const std::byte* line) {
  _mm_clwb(const_cast<std::byte*>(line));
}
__attribute__((target("clflushopt"))) void drop_line(const std::byte* line) {
  _mm_clflushopt(const_cast<std::byte*>(line));
}
void drop_line_in_order(const std::byte* line) { _mm_clflush(line); }
void wait_for_lines() { _mm_sfence(); }

PersistentMemory best_of_this_cpu() {
  constexpr unsigned kClwb = 1U << 24;
  constexpr unsigned kClflushopt = 1U << 23;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  const bool known = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0;
  if (known && (b & kClwb) != 0) return {keep_line, wait_for_lines};
  if (known && (b & kClflushopt) != 0) return {drop_line, wait_for_lines};
  return {drop_line_in_order, wait_for_lines};
}
#endif

}  // namespace

PersistentMemory* PersistentMemory::of_this_cpu() noexcept {
#ifdef __x86_64__
  // Never destroyed: objects may be closed when the process ends.
  static PersistentMemory* const kMemory = new (std::nothrow) PersistentMemory(best_of_this_cpu());
  return kMemory;
#else
  return nullptr;
#endif
}

void PersistentMemory::place(std::byte* there, std::span<const std::byte> bytes) noexcept {
  if (bytes.empty()) return;
  std::memcpy(there, bytes.data(), bytes.size());
  const auto begin = reinterpret_cast<std::uintptr_t>(there);
  const std::byte* line = there - begin % kLineBytes;
  for (; line < there + bytes.size(); line += kLineBytes) write_back_(line);
  fence_();
}

void PersistentMemory::fetch(std::span<std::byte> bytes, const std::byte* there) noexcept {
  if (!bytes.empty()) std::memcpy(bytes.data(), there, bytes.size());
}

}  // namespace uet::prov
