// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How payload is copied to memory. An ordinary store first needs the line in the processor's own
// cache. If the line is there, or in a cache that both processors share, the store is quick and the
// reader finds the data in the cache. If the line must be fetched from the other processor's cache,
// or is uncached because the data in flight exceed the caches, non-temporal stores are several
// times faster, but the reader must then load from memory. No interface reports which case holds,
// and it changes: the kernel migrates processes, and hypervisors migrate virtual machines.
// Therefore both kinds of store are timed now and then.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "uet/base/device_memory.h"
#include "uet/base/packet.h"
#include "uet/base/time.h"
#include "uet/nic/memory_ranges.h"

namespace uet::nic {

struct CopyTurn {
  bool streams = false;
  bool timed = false;  // took() is to be told
};

// Chooses the kind of store for a ring, whose lines the reader has had, from recent copy times.
class RingChoice {
 public:
  CopyTurn next();
  // `bytes` > 0.
  void took(const CopyTurn& turn, Duration time, std::size_t bytes);

 private:
  static constexpr std::uint32_t kTimedEvery = 16;
  static constexpr std::uint32_t kOtherEvery = 256;  // copies, one of which goes the other way
  // Cached stores must be slower by this factor: non-temporal ones cost the reader more.
  static constexpr double kWorthIt = 2;
  // Recent times of one kind of store. The least counts, since any copy may have been preempted.
  // It is 0 before there are enough times, so that each kind of store is tried.
  struct Recent {
    double least() const;

    std::array<double, 4> ns_per_kib{};
    std::size_t next = 0;
  };

  Recent stored_;
  Recent streamed_;
  bool streams_ = false;  // the better way
  std::uint32_t copies_ = 0;
};

// Chooses the kind of store for the application's memory. After non-temporal stores the destination
// is uncached, so that a single cached store is always slow: a trial of cached stores therefore
// fills the caches. Among cached stores, a non-temporal store is rather too slow.
class PlacingChoice {
 public:
  CopyTurn next();
  // `bytes` > 0.
  void took(const CopyTurn& turn, Duration time, std::size_t bytes);

  // With cached stores: one copy of so many uses non-temporal stores, a decision follows so many
  // copies, and so many decisions in a row must agree.
  static constexpr std::uint32_t kOtherEvery = 256;
  static constexpr std::uint32_t kStoredRound = 2048;
  static constexpr std::uint32_t kAgreeing = 2;
  // With non-temporal stores: copies between two trials, and in a trial. At 8 KiB: 120 and 8 MiB.
  static constexpr std::uint32_t kBetweenTrials = 15 * 1024;
  static constexpr std::uint32_t kTrial = 1024;

 private:
  static constexpr std::uint32_t kTimedStreams = 1024;  // one of so many
  static constexpr std::uint32_t kTimedInTrial = 16;
  static constexpr double kWorthIt = 1.3;  // as in RingChoice
  // Recent times of one kind of store.
  struct Recent {
    double median() const;

    std::array<double, 8> ns_per_kib{};
    std::size_t next = 0;
  };

  Recent stored_;
  Recent streamed_;
  bool streams_ = false;
  std::uint32_t copies_ = 0;     // since it was decided
  std::uint32_t in_favour_ = 0;  // decisions for streaming, in a row
};

// Not thread-safe.
template <class Choice>
class AdaptiveCopy {
 public:
  // Returns the end of what was written. Others see it only after finish().
  std::byte* write(std::byte* to, const Slice& from);
  void finish();

 private:
  Choice choice_;
  bool unfinished_ = false;
};

using RingCopy = AdaptiveCopy<RingChoice>;
extern template class AdaptiveCopy<RingChoice>;
extern template class AdaptiveCopy<PlacingChoice>;

// Copies the payload that a Fep writes to the application's memory.
class PlacingCopy final : public HostCopy {
 public:
  // Only payload that lies there is copied adaptively: payload that the kernel or a device has just
  // written is fastest copied by memcpy. `memory`: outlives the copies; nullptr: all by memcpy.
  void adapt_to(const MemoryRanges* memory) { memory_ = memory; }
  void copy(std::byte* there, std::span<const std::byte> bytes) noexcept override;

 private:
  const MemoryRanges* memory_ = nullptr;
  AdaptiveCopy<PlacingChoice> copy_;
};

}  // namespace uet::nic
