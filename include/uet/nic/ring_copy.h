// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How payload gets into memory that another processor reads next. An ordinary store needs the line
// in the own cache first. Where both processors share a cache that is quick, and the reader finds
// everything there; where they do not, each line is taken back from the other's cache, several
// times slower than writing past the caches (streaming stores), after which the reader has to go to
// memory. Processes are moved from one to the other while they run, and virtual machines with all
// their processors: both ways are timed now and then.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "uet/base/packet.h"
#include "uet/base/time.h"

namespace uet::nic {

// Which way to copy, from what copies took lately.
class CopyChoice {
 public:
  struct Turn {
    bool streams = false;
    bool timed = false;  // took() is to be told
  };
  Turn next();
  // `bytes` > 0.
  void took(const Turn& turn, Duration time, std::size_t bytes);

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

// Not thread-safe, as the ring that it fills.
class RingCopy {
 public:
  // Returns the end of what was written. Others see it only after finish().
  std::byte* write(std::byte* to, const Slice& from);
  void finish();

 private:
  CopyChoice choice_;
  bool unfinished_ = false;
};

}  // namespace uet::nic
