// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How payload gets into memory. An ordinary store needs the line in the own cache first. Where it
// is there, or in a cache that both processors share, that is quick, and the reader finds
// everything there. Where the line has to be taken back from the other processor's cache, or is in
// none because more is under way than caches hold, writing past the caches (streaming stores) is
// several times faster, after which the reader has to go to memory. Nothing tells which it is, and
// it changes: processes are moved while they run, and virtual machines with all their processors.
// So both ways are timed now and then.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "uet/base/device_memory.h"
#include "uet/base/packet.h"
#include "uet/base/time.h"

namespace uet::nic {

struct CopyTurn {
  bool streams = false;
  bool timed = false;  // took() is to be told
};

// Which way to copy into a ring, whose lines the reader has had, from what copies took lately.
class RingChoice {
 public:
  CopyTurn next();
  // `bytes` > 0.
  void took(const CopyTurn& turn, Duration time, std::size_t bytes);

 private:
  static constexpr std::uint32_t kTimedEvery = 16;
  static constexpr std::uint32_t kOtherEvery = 256;  // copies, one of which goes the other way
  // As many times slower must stores be before streaming pays: it costs the reader more.
  static constexpr double kWorthIt = 2;
  // What one way took lately. The least counts, as any copy may have lost its processor; 0 before
  // there are enough, so that each way gets its turn.
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

// Which way to copy into the application's memory. What was streamed lies in no cache, so that one
// store between streams is slow whatever is right: storing is tried for as long as it takes to fill
// the caches. Between stores it is rather the streams that are slow.
class PlacingChoice {
 public:
  CopyTurn next();
  // `bytes` > 0.
  void took(const CopyTurn& turn, Duration time, std::size_t bytes);

  // While copies are stored: one of so many is streamed, after so many it is decided, and so many
  // decisions in a row must say the same.
  static constexpr std::uint32_t kOtherEvery = 256;
  static constexpr std::uint32_t kStoredRound = 2048;
  static constexpr std::uint32_t kAgreeing = 2;
  // While they are streamed: between two trials of storing, and in one. At 8 KiB: 120 and 8 MiB.
  static constexpr std::uint32_t kBetweenTrials = 15 * 1024;
  static constexpr std::uint32_t kTrial = 1024;

 private:
  static constexpr std::uint32_t kTimedStreams = 1024;  // one of so many
  static constexpr std::uint32_t kTimedInTrial = 16;
  static constexpr double kWorthIt = 1.3;  // as in RingChoice
  // What one way took lately.
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

// For what a Fep places in the application's memory.
class PlacingCopy final : public HostCopy {
 public:
  void copy(std::byte* there, std::span<const std::byte> bytes) noexcept override;

 private:
  AdaptiveCopy<PlacingChoice> copy_;
};

}  // namespace uet::nic
