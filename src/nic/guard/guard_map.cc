// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The kernel reads while the process writes: words are written whole, and what they are counted
// with comes before `active`.
#include "nic/guard_map.h"

#include <bpf/bpf.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

namespace uet::nic {
namespace {

template <class Word>
void write_word(Word& word, Word value, std::memory_order order = std::memory_order_relaxed) {
  std::atomic_ref<Word>(word).store(value, order);
}

}  // namespace

void GuardMap::Unmap::operator()(UetGuard* guard) const { ::munmap(guard, sizeof *guard); }

std::unique_ptr<GuardMap> GuardMap::make() {
  std::unique_ptr<GuardMap> made(new GuardMap);
  bpf_map_create_opts options{};
  options.sz = sizeof options;
  options.map_flags = BPF_F_MMAPABLE;
  made->map_ = FileDescriptor(bpf_map_create(BPF_MAP_TYPE_ARRAY, "uet_guard", sizeof(std::uint32_t),
                                             sizeof(UetGuard), 1, &options));
  if (!made->map_.valid()) return nullptr;
  void* const mapped =
      ::mmap(nullptr, sizeof(UetGuard), PROT_READ | PROT_WRITE, MAP_SHARED, made->map_.get(), 0);
  if (mapped == MAP_FAILED) return nullptr;
  made->guard_.reset(static_cast<UetGuard*>(mapped));
  auto& secret = made->guard_->secret;
  if (::getrandom(secret, sizeof secret, 0) != sizeof secret) return nullptr;
  return made;
}

void GuardMap::start(std::uint32_t new_pdcs, Duration pace) {
  const auto interval = static_cast<std::uint64_t>(std::max<std::int64_t>(pace.count(), 1));
  write_word<__u64>(guard_->syn_interval_ns, interval);
  write_word<__u64>(guard_->syn_burst_ns, interval * std::max(new_pdcs, 1U));
  write_word<__u64>(guard_->active, 1, std::memory_order_release);
}

void GuardMap::set(PdcId id, bool is_open) {
  __u32& word = guard_->open[id.value / 32];
  const __u32 bit = __u32{1} << (id.value % 32);
  write_word<__u32>(word, is_open ? word | bit : word & ~bit);
}

void GuardMap::add_counts(NicCounters& counters) const {
  counters.strays_dropped += dropped(UET_GUARD_STRAY);
  counters.syns_dropped += dropped(UET_GUARD_SYN);
}

std::uint64_t GuardMap::dropped(UetGuardDrop reason) const {
  std::uint64_t sum = 0;
  for (auto& count : guard_->counts) {
    sum += std::atomic_ref<__u64>(count.dropped[reason]).load(std::memory_order_relaxed);
  }
  return sum;
}

}  // namespace uet::nic
