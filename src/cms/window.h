// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A congestion window and the bytes in flight against it: permission to send, demand for an early
// ACK, destination flow control. The congestion control makes the window grow and shrink otherwise.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cms/ccc.h"

namespace uet::cms {

// Bytes are nominal packet sizes (CMS-6). Invariant: mtu_bytes <= cwnd_bytes <= max_bytes
// (CMS-101).
struct Window {
  double mtu_bytes = 0;
  double least_bytes = 0;  // Tuning::min_window_bytes
  double max_bytes = 0;
  double cwnd_bytes = 0;
  double saved_cwnd_bytes = 0;      // window before the destination's penalty, 0 = none (CMS-301)
  std::int64_t inflight_bytes = 0;  // sent and not yet reported; may dip below 0 (CMS-104)

  double inflight() const { return static_cast<double>(inflight_bytes); }

  void set_cwnd(double bytes) {
    const double least = std::max(mtu_bytes, least_bytes);
    cwnd_bytes = std::clamp(bytes, least, std::max(least, max_bytes));
  }

  // CMS-133: a packet of `bytes` fits; with nothing in flight one always does.
  bool may_send(std::uint32_t bytes) const {
    return inflight_bytes <= 0 || inflight() + bytes <= cwnd_bytes;
  }

  // CMS-124, for a packet of `bytes` behind unasked_packets without ACK request. True if less than
  // a packet of the window remains behind it, or if the whole window is small. If the peer collects
  // more than kAckGenTrigger and more than a quarter of the window before it acknowledges, the
  // window would run dry: true then once so many bytes are without a request.
  bool wants_ack(std::uint32_t bytes, std::uint32_t unasked_packets,
                 std::uint32_t ack_gen_trigger_bytes) const {
    if (cwnd_bytes - inflight() - bytes < mtu_bytes) return true;
    if (cwnd_bytes < std::min(ack_gen_trigger_bytes, kAckGenTrigger)) return true;
    const double interval_bytes = std::max<double>(kAckGenTrigger, cwnd_bytes / 4);
    return interval_bytes < ack_gen_trigger_bytes &&
           (unasked_packets + 1) * mtu_bytes >= interval_bytes;
  }

  // CMS-301, CMS-302, after the ACK's bytes have left the flight. True: the destination is busy,
  // the window must not grow now.
  bool apply_destination_flow_control(const AckFeedback& feedback) {
    if (feedback.rcv_cwnd_pend > 0) {
      if (saved_cwnd_bytes == 0) saved_cwnd_bytes = cwnd_bytes;
      const std::uint64_t pend = std::min<std::uint64_t>(feedback.rcv_cwnd_pend, 127);
      const std::uint64_t cut = (pend * feedback.newly_received_bytes) >> 7;
      set_cwnd(std::min(cwnd_bytes, inflight()) - static_cast<double>(cut));
      return true;
    }
    if (feedback.restore_cwnd && saved_cwnd_bytes != 0) {
      set_cwnd(saved_cwnd_bytes);
      saved_cwnd_bytes = 0;
    }
    return false;
  }
};

}  // namespace uet::cms
