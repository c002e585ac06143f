// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Derived keys that are ready for use, a bounded number of them (TSS-31, TSS-69). Sources are clear
// fields that anyone can invent, so that a key is on trial until a packet was opened with it: keys
// on trial have an eighth of the entries and replace one another, never a proved key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>

#include "base/chain_table.h"
#include "tss/kdf.h"
#include "tss/packet_cipher.h"
#include "uet/base/intrusive_list.h"

namespace uet::tss {

struct CacheOrderTag;
struct CacheHashTag;

// A derived key. Its cipher and mask are for the caller, the rest for the cache.
class DerivedKey : public ListNode<CacheOrderTag>, public ChainNode<CacheHashTag> {
 public:
  PacketCipher cipher;
  IvMask mask;

 private:
  friend class KeyCache;
  std::uint64_t slot_ = 0;
  DerivationContext context_;
  bool proved_ = false;
};

struct KeyCacheCounters {
  std::uint64_t misses = 0;     // keys that were derived: three CMACs and a key schedule each
  std::uint64_t evictions = 0;  // proved keys that a newer one replaced
};

class KeyCache {
 public:
  // `entries`: at least 2; twice the number of live peers is enough (TSS-69). OpenSSL contexts are
  // allocated in `memory`, which outlives the cache, when an entry is first used, and kept.
  explicit KeyCache(std::size_t entries,
                    std::pmr::memory_resource& memory = *std::pmr::new_delete_resource());
  KeyCache(const KeyCache&) = delete;
  KeyCache& operator=(const KeyCache&) = delete;

  // The key derived from the SDK in `slot` by `context`, which becomes the most recently used one;
  // nullptr if it is not there. `slot`: number of an installed SDK, never used for another SDK.
  DerivedKey* find(std::uint64_t slot, const DerivationContext& context);
  // Adds a key on trial. The oldest key on trial leaves when there are too many. The reference is
  // valid until the next add(), prove() or forget(). nullptr if OpenSSL has no memory.
  DerivedKey* add(std::uint64_t slot, const DerivationContext& context,
                  const KeyMaterial& material);
  // A packet was opened with `key`, or is to be sealed with it: only the least recent use among the
  // proved keys makes it leave now.
  void prove(DerivedKey& key);
  // Zeroes all keys that were derived from the SDK in `slot`.
  void forget(std::uint64_t slot);

  // As PacketCipher::overwrite_key(), of all keys.
  void overwrite_keys();

  const KeyCacheCounters& counters() const { return counters_; }

 private:
  using Order = IntrusiveList<DerivedKey, CacheOrderTag>;
  static std::uint64_t hash(std::uint64_t slot, const DerivationContext& context);
  void release(DerivedKey& key);

  std::pmr::memory_resource& memory_;
  std::size_t most_on_trial_;
  std::size_t most_proved_;
  std::size_t entries_;
  std::unique_ptr<DerivedKey[]> keys_;
  ChainTable<DerivedKey, CacheHashTag> by_context_;
  Order free_;
  Order on_trial_;  // the oldest first
  Order proved_;    // the least recently used first
  std::size_t on_trial_count_ = 0;
  std::size_t proved_count_ = 0;
  KeyCacheCounters counters_;
};

}  // namespace uet::tss
