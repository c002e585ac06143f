// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Shares of a bounded amount (table entries, bytes) that any host may ask for, so that no host
// takes all: a holder may have at most `weight` times as much as is free. With weight 1 one host
// gets at most 1/2, two 1/3 each, n hosts 1/(n + 1) each, and as much stays free for the next; with
// weight 3 3/4, 3/7, 3/(3n + 1). Known from shared switch buffers as dynamic thresholds.
//
// Holders are identified by a hash, in a table of fixed size: hosts with the same entry have one
// share together, and invented addresses take no memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <optional>

#include "base/indexed_pool.h"
#include "uet/base/check.h"

namespace uet {

class Shares {
 public:
  // Holders who are not known to be the host that they name: all have one share.
  static constexpr std::uint64_t kUnknownHost = ~std::uint64_t{0};

  // `weight`: see above, 1 or more. `seed`: decides which hosts fall on one entry; if an attacker
  // does not know it, it cannot choose an address that shares the entry of another host.
  Shares(std::size_t weight, std::uint64_t seed) : weight_(weight), seed_(seed) {}
  Shares(const Shares&) = delete;
  Shares& operator=(const Shares&) = delete;

  // May a holder with the hash take `amount` more, of which `available` are free now?
  bool allows(std::uint64_t hash, std::size_t amount, std::size_t available) const {
    return allows_beside(held(hash), amount, available);
  }
  // The same if it holds `held` now.
  bool allows_beside(std::size_t held, std::size_t amount, std::size_t available) const {
    if (amount > available) return false;
    const std::size_t left = available - amount;
    const std::size_t most = left > std::numeric_limits<std::size_t>::max() / weight_
                                 ? std::numeric_limits<std::size_t>::max()
                                 : left * weight_;
    return held + amount <= most + weight_;
  }
  void take(std::uint64_t hash, std::size_t amount) { entry(index_of(hash)) += amount; }
  void give_back(std::uint64_t hash, std::size_t amount) {
    std::size_t& held = entry(index_of(hash));
    UET_ASSERT(held >= amount);
    held -= amount;
  }
  std::size_t held(std::uint64_t hash) const {
    if (table_ == nullptr) return all_;
    const std::size_t index = index_of(hash);
    const std::size_t* part = table_->parts[index / kPart];
    return part == nullptr ? 0 : part[index % kPart];
  }

 private:
  static constexpr std::size_t kEntries = 1024;
  static constexpr std::size_t kPart = 32;  // entries that share an allocation

  std::size_t index_of(std::uint64_t hash) const {
    if (hash == kUnknownHost) return kEntries;
    return ((hash ^ seed_) * 0x9E3779B97F4A7C15ULL >> 32) % kEntries;
  }

  struct Table {
    std::array<std::size_t*, kEntries / kPart + 1> parts{};  // the last for kUnknownHost
    std::array<std::size_t, kPart> spare{};
    ~Table() {
      for (const std::size_t* part : parts) {
        if (part != spare.data()) delete[] part;
      }
    }
  };

  std::size_t& entry(std::size_t index) {
    if (table_ != nullptr) [[likely]] {
      std::size_t* const part = table_->parts[index / kPart];
      if (part != nullptr) [[likely]]
        return part[index % kPart];
    }
    return new_entry(index);
  }
  // Memory comes with the first use. Where there is none, entries of all such parts share those of
  // one, as hosts share an entry; without a table all share one.
  [[gnu::noinline, gnu::cold]] std::size_t& new_entry(std::size_t index) {
    if (table_ == nullptr && !without_table_) table_.reset(new (std::nothrow) Table);
    without_table_ = table_ == nullptr;
    if (without_table_) return all_;
    std::size_t*& part = table_->parts[index / kPart];
    part = new (std::nothrow) std::size_t[kPart]();
    if (part == nullptr) part = table_->spare.data();
    return part[index % kPart];
  }

  std::size_t weight_;
  std::uint64_t seed_;
  std::unique_ptr<Table> table_;
  std::size_t all_ = 0;
  bool without_table_ = false;
};

// An IndexedPool of which each host has a share.
template <class T>
class SharedPool {
 public:
  SharedPool(std::size_t capacity, std::size_t weight, std::uint64_t seed)
      : pool_(capacity), shares_(weight, seed) {}

  // take() for a host with this hash has one.
  bool has(std::uint64_t host) const {
    return shares_.allows(host, 1, pool_.available()) && pool_.ready();
  }
  // The same, if besides `more` and all that the host holds are available.
  bool has_beside(std::uint64_t host, std::size_t more) const {
    const std::size_t available = pool_.available();
    const std::size_t held = shares_.held(host);
    return more + held <= available && shares_.allows_beside(held, 1, available) && pool_.ready();
  }
  std::optional<std::uint16_t> take(std::uint64_t host) {
    if (!has(host)) return std::nullopt;
    shares_.take(host, 1);
    return pool_.take();
  }
  void give_back(std::uint64_t host, std::uint16_t index) {
    shares_.give_back(host, 1);
    pool_.give_back(index);
  }
  // `amount` of what `from` holds is held by `to`, whatever the share of that.
  void move(std::uint64_t from, std::uint64_t to, std::size_t amount) {
    shares_.give_back(from, amount);
    shares_.take(to, amount);
  }
  T& operator[](std::uint16_t index) { return pool_[index]; }
  std::size_t held(std::uint64_t host) const { return shares_.held(host); }
  std::size_t in_use() const { return pool_.in_use(); }
  std::size_t available() const { return pool_.available(); }

 private:
  mutable IndexedPool<T> pool_;  // grows when asked
  Shares shares_;
};

}  // namespace uet
