// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Protecting the destination (CMS 3.4, 4.1): what a receiver tells its sources when its memory
// fills up, and how much of the link's rate it grants. The callers know which memory this is and
// which sources they tell.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/rng.h"
#include "cms/tuning.h"
#include "uet/base/time.h"

namespace uet::cms {

// How full the receive resources of a FEP are; read once per pass.
struct ReceiveLoad {
  double occupancy = 0;     // of the fullest of them, 0 to 1 (CMS-305)
  std::uint64_t bytes = 0;  // received and not taken by anybody yet (CMS-233)
};

// The penalty of NSCC's ACKs; one for a FEP, since its resources are shared (CMS-306).
class DestinationPressure {
 public:
  static constexpr std::uint8_t kMostPend = 127;

  explicit DestinationPressure(const Tuning& tuning)
      : low_(tuning.pend_low), high_(tuning.pend_high), restore_below_(tuning.restore_below) {}

  void update(double occupancy) {
    pend_ = pend_of(occupancy);
    relieved_ = occupancy < restore_below_;
  }
  // rcv_cwnd_pend: 0 = none, 127 = about one packet per round trip (CMS-300).
  std::uint8_t pend() const { return pend_; }
  // So little is left in use that windows may be as before (CMS-305).
  bool relieved() const { return pend_ == 0 && relieved_; }

  // CMS-304.
  std::uint8_t pend_of(double occupancy) const {
    if (occupancy < low_) return 0;
    if (occupancy >= high_) return kMostPend;
    return static_cast<std::uint8_t>(std::lround(kMostPend * (occupancy - low_) / (high_ - low_)));
  }

 private:
  double low_;
  double high_;
  double restore_below_;
  std::uint8_t pend_ = 0;
  bool relieved_ = true;
};

// The fields that the ACKs of one PDC carry: the penalty, and for a while after it that it is over.
class DestinationReport {
 public:
  static constexpr std::uint8_t kRestoreAcks = 8;  // CMS-305

  struct Fields {
    std::uint8_t pend = 0;
    bool restore = false;
  };
  // `own`: occupancy, 0 to 1, of what the peer alone fills.
  Fields next(const DestinationPressure& pressure, double own = 0) {
    const std::uint8_t pend = std::max(pressure.pend(), pressure.pend_of(own));
    if (pend > 0) {
      penalised_ = true;
      restore_acks_left_ = 0;
    } else if (penalised_ && pressure.relieved()) {
      penalised_ = false;
      restore_acks_left_ = kRestoreAcks;
    }
    const bool restore = restore_acks_left_ > 0;
    if (restore) --restore_acks_left_;
    return {pend, restore};
  }

 private:
  bool penalised_ = false;  // the source knows of a penalty and not that it is over
  std::uint8_t restore_acks_left_ = 0;
};

// CMS-231: the part of the rate that a host still grants which does not keep up.
inline double backlog_rate_factor(const Tuning& tuning, std::uint64_t backlog_bytes) {
  constexpr double kLeast = 0.001;
  constexpr double kFullAt = 0.95;  // of the upper limit
  const auto backlog = static_cast<double>(backlog_bytes);
  const double low = tuning.backlog_low_bytes;
  const double high = tuning.backlog_high_bytes;
  if (backlog <= low) return 1;
  if (backlog > kFullAt * high) return kLeast;
  const double left = (backlog - high) / (high - low);
  return std::clamp(left * left, kLeast, 1.0);
}

// CMS-230: congestion inside the fabric, which credit alone does not see.
class OversubscriptionControl {
 public:
  // The packets that arrived in a period: all, marked ones, and those trimmed at the last hop and
  // elsewhere.
  struct Arrivals {
    std::uint32_t all = 0;
    std::uint32_t ce = 0;
    std::uint32_t trimmed_at_last_hop = 0;
    std::uint32_t trimmed_elsewhere = 0;
  };

  explicit OversubscriptionControl(const Tuning& tuning) : tuning_(tuning) {}

  // The end of a period. Nothing arrived: nothing is known.
  void on_period(const Arrivals& arrivals);
  double rate() const { return rate_; }  // part of the link's rate, 0.01 to 1
  double marked_average() const { return marked_; }
  // The length of the next period.
  Duration period(Duration rtt, Rng& rng) const;

 private:
  Tuning tuning_;
  double rate_ = 1;
  double marked_ = 0;  // g
};

}  // namespace uet::cms
