// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/key_cache.h"

#include <algorithm>
#include <cstring>

#include "uet/base/check.h"

namespace uet::tss {

// A bound that no configuration comes near: g++ 12 warns of an unlimited array at link time.
constexpr std::size_t kMostEntries = std::size_t{1} << 24;

KeyCache::KeyCache(std::size_t entries, std::pmr::memory_resource& memory)
    : memory_(memory),
      most_on_trial_(std::max<std::size_t>(entries / 8, 1)),
      most_proved_(entries - most_on_trial_),
      entries_(entries),
      keys_(std::make_unique<DerivedKey[]>(std::min(entries, kMostEntries))),
      by_context_(entries) {
  UET_ASSERT(entries >= 2 && entries <= kMostEntries);
  for (std::size_t i = 0; i < entries; ++i) free_.push_back(keys_[i]);
}

// The context holds numbers of the sender's choice. A chain holds at most the keys on trial beside
// proved ones, whose number the attacker cannot raise, so that no secret is needed here.
std::uint64_t KeyCache::hash(std::uint64_t slot, const DerivationContext& context) {
  std::uint64_t h = slot;
  const auto bytes = context.bytes();
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min(sizeof word, bytes.size() - i));
    h = (h ^ word) * 0x9E3779B97F4A7C15ULL;
    h ^= h >> 29;
  }
  return h;
}

DerivedKey* KeyCache::find(std::uint64_t slot, const DerivationContext& context) {
  DerivedKey* key = by_context_.first(hash(slot, context));
  while (key != nullptr && (key->slot_ != slot || key->context_ != context)) {
    key = by_context_.next(*key);
  }
  if (key != nullptr && key->proved_) {
    proved_.remove(*key);
    proved_.push_back(*key);
  }
  return key;
}

DerivedKey* KeyCache::add(std::uint64_t slot, const DerivationContext& context,
                          const KeyMaterial& material) {
  ++counters_.misses;
  if (on_trial_count_ == most_on_trial_) release(on_trial_.front());
  DerivedKey& key = free_.front();
  if (!key.cipher.set_key(material.key, memory_)) return nullptr;
  free_.remove(key);
  key.mask = material.mask;
  key.slot_ = slot;
  key.context_ = context;
  key.proved_ = false;
  by_context_.push_back(key, hash(slot, context));
  on_trial_.push_back(key);
  ++on_trial_count_;
  return &key;
}

void KeyCache::prove(DerivedKey& key) {
  if (key.proved_) return;
  if (proved_count_ == most_proved_) {
    ++counters_.evictions;
    release(proved_.front());
  }
  on_trial_.remove(key);
  --on_trial_count_;
  key.proved_ = true;
  proved_.push_back(key);
  ++proved_count_;
}

// Its cipher keeps the old key until the next one replaces it: only forget() is told that the SDK
// has ended.
void KeyCache::release(DerivedKey& key) {
  by_context_.remove(key);
  Order::remove(key);
  --(key.proved_ ? proved_count_ : on_trial_count_);
  key.mask.clear();
  free_.push_front(key);
}

void KeyCache::forget(std::uint64_t slot) {
  for (std::size_t i = 0; i < entries_; ++i) {
    DerivedKey& key = keys_[i];
    if (key.slot_ != slot) continue;
    if (key.chained()) release(key);
    key.cipher.forget();
    key.slot_ = 0;
  }
}

void KeyCache::overwrite_keys() {
  for (std::size_t i = 0; i < entries_; ++i) {
    keys_[i].cipher.overwrite_key();
    keys_[i].mask.clear();
  }
}

}  // namespace uet::tss
