// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A ring of packets in memory that two processes share: one puts, the other takes, neither waits.
// How the memory came to both and how a sleeper is woken is not known here (local.h).
//
// The other process is of the same user, but it may be broken: what it has written is checked
// before it is used, and nothing it writes makes a side read or write outside the ring.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "nic/adaptive_copy.h"
#include "nic/ring_pages.h"
#include "uet/base/packet.h"

namespace uet::nic {

// At the beginning of the memory, which is zero at first. Each word has a cache line: a word that
// is seldom written stays in the cache of the side that reads it often.
struct RingControl {
  alignas(64) std::atomic<std::uint64_t> tail;  // bytes ever put; the producer's
  alignas(64) std::atomic<std::uint64_t> head;  // bytes ever given back; the consumer's
  std::atomic<std::uint64_t> looked;            // the consumer has read nothing from here on
  // Set by the consumer, cleared by the producer that wakes it.
  alignas(64) std::atomic<std::uint32_t> consumer_sleeps;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

inline constexpr std::size_t kRingControlBytes = 4096;
inline constexpr std::size_t kMinRingBytes = 128 * 1024;  // the longest packet fits
inline constexpr std::size_t kMaxRingBytes = 64 * 1024 * 1024;

// Whether a ring may have this capacity: a power of two within the bounds.
bool is_ring_capacity(std::size_t bytes);
// The memory that a ring of this capacity needs.
constexpr std::size_t ring_memory_bytes(std::size_t capacity) {
  return kRingControlBytes + capacity;
}

class RingProducer {
 public:
  // `memory`: ring_memory_bytes(capacity), page aligned, all zero; it must live longer.
  explicit RingProducer(std::span<std::byte> memory);

  // False: the ring is full, or the packet is too long. The consumer sees it after publish().
  bool put(const Packet& packet);
  // True if the consumer may sleep and must be woken; returned once for each announcement.
  bool publish();
  // Where the next packet begins, unless it turns back.
  std::uint64_t position() const { return tail_; }
  // If the consumer is gone, it has read nothing from this position on. If the position that it
  // wrote is impossible, everything counts as read.
  std::uint64_t unread_from() const {
    const std::uint64_t looked = control_->looked.load(std::memory_order_acquire);
    return looked <= tail_ ? looked : UINT64_MAX;
  }
  // The consumer has given back all that was put.
  bool drained() const { return control_->head.load(std::memory_order_acquire) == tail_; }

 private:
  bool has_room(std::uint64_t bytes);
  bool may_turn_back(std::uint64_t bytes, std::uint64_t behind) const;

  RingControl* control_;
  std::byte* data_;
  std::uint64_t capacity_;
  std::uint64_t tail_ = 0;       // of what has been put
  std::uint64_t seen_head_ = 0;  // never more than the true one
  bool burst_begins_ = true;     // nothing was put since publish()
  RingPages pages_;
  RingCopy copy_;
};

class RingConsumer {
 public:
  enum class Next : std::uint8_t { Empty, Packet, Broken };

  explicit RingConsumer(std::span<std::byte> memory);

  // Makes the packets published so far available to next(). Called once for each burst, because the
  // producer writes the cache line that is read here.
  void look() {
    if (quiet_looks_ < kQuietLooks) {
      ++quiet_looks_;
      prefetch_next();
    }
    const std::uint64_t tail = control_->tail.load(std::memory_order_acquire);
    if (tail == seen_tail_) return;
    quiet_looks_ = 0;
    control_->looked.store(tail, std::memory_order_relaxed);
    seen_tail_ = tail;
  }
  // `out`: bytes, entropy, ECN and DSCP of the next packet, a view until release(). Empty: look()
  // has seen no further packet. Broken: the producer wrote an impossible value; the consumer can
  // take no more packets.
  Next next(RxPacket& out);
  // Gives back the space of all packets that next() has handed out.
  void release();
  bool empty() const { return control_->tail.load(std::memory_order_acquire) == position_; }
  // next() has handed out all that look() has seen.
  bool taken() const { return seen_tail_ == position_; }
  // Before going to sleep, followed by a fence and a look at empty(). The announcement lasts until
  // publish() has returned true for it, even if another thread of the consumer takes packets.
  bool is_sleep_announced() const {
    return control_->consumer_sleeps.load(std::memory_order_relaxed) != 0;
  }
  void announce_sleep() { control_->consumer_sleeps.store(1, std::memory_order_relaxed); }

 private:
  // After so many looks without a packet the ring's data is left out of the caches until one comes.
  static constexpr unsigned kQuietLooks = 4096;
  static constexpr std::size_t kLineBytes = 64;

  // A short packet comes from the producer's cache while the tail does, not after it.
  void prefetch_next() const {
    const std::byte* const next = data_ + (position_ & (capacity_ - 1));
    for (std::size_t line = 0; line < 3; ++line) __builtin_prefetch(next + line * kLineBytes);
  }

  RingControl* control_;
  const std::byte* data_;
  std::uint64_t capacity_;
  std::uint64_t position_ = 0;   // of what next() has handed out
  std::uint64_t released_ = 0;   // value of head
  std::uint64_t seen_tail_ = 0;  // never more than the true one
  unsigned quiet_looks_ = kQuietLooks;
  RingPages pages_;
};

}  // namespace uet::nic
