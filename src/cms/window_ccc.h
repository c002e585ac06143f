// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The common part of all algorithms that decide by one window: the bytes in flight, permission to
// send, destination flow control and the counts. An algorithm derives from it, says in on_ack what
// an ACK does to the window, and overrides what else it needs. It must not change inflight_bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "cms/ccc.h"
#include "cms/window.h"

namespace uet::cms {

class WindowCcc : public Ccc {
 public:
  bool may_send(std::uint32_t bytes) const override { return window_.may_send(bytes); }
  void on_sent(std::uint32_t bytes, Time) override { window_.inflight_bytes += bytes; }
  void on_nack(wire::NackCode code, std::uint32_t bytes, bool ce, std::optional<Duration>,
               Time) override {
    Counters& counts = parameters_.counts();
    counts.marks_received += ce ? 1 : 0;
    counts.trims_in_fabric += code == wire::NackCode::Trimmed ? 1 : 0;
    counts.trims_at_last_hop += code == wire::NackCode::TrimmedLastHop ? 1 : 0;
    window_.inflight_bytes -= bytes;
  }
  void on_inferred_loss(std::uint32_t bytes, LossCause cause, Time) override {
    window_.inflight_bytes -= bytes;
    count_loss(parameters_.counts(), cause);
  }
  void on_spurious_loss(std::uint32_t bytes) override {
    window_.inflight_bytes += bytes;
    ++parameters_.counts().losses_spurious;
  }
  void forget(std::int64_t bytes) override { window_.inflight_bytes -= bytes; }
  bool wants_ack(std::uint32_t bytes, std::uint32_t unasked_packets) const override {
    return window_.wants_ack(bytes, unasked_packets, parameters_->ack_gen_trigger_bytes);
  }
  std::uint64_t window_bytes() const override {
    return static_cast<std::uint64_t>(window_.cwnd_bytes);
  }
  std::uint64_t largest_window_bytes() const override {
    return static_cast<std::uint64_t>(window_.max_bytes);
  }
  std::int64_t inflight_bytes() const override { return window_.inflight_bytes; }
  Counters holdings() const override {
    Counters counters;
    counters.contexts = 1;
    counters.window_bytes = window_bytes();
    counters.inflight_bytes =
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, window_.inflight_bytes));
    return counters;
  }

 protected:
  // The window is `max_bytes`, within [MTU, Parameters::max_window_bytes] (CMS-100, CMS-101).
  WindowCcc(const SharedParameters& parameters, double max_bytes) : parameters_(parameters) {
    window_.mtu_bytes = std::max<std::uint32_t>(parameters->mtu_bytes, 1);
    const auto limit = static_cast<double>(parameters->max_window_bytes);
    window_.max_bytes = std::max(std::min(max_bytes, limit), window_.mtu_bytes);
    window_.cwnd_bytes = window_.max_bytes;
  }

  // First in on_ack: books what the ACK reports. True: the destination is busy, the window must not
  // grow now (CMS-301).
  bool take_report(const AckFeedback& feedback) {
    window_.inflight_bytes -= static_cast<std::int64_t>(feedback.newly_received_bytes);
    Counters& counts = parameters_.counts();
    counts.marks_received += feedback.ce ? 1 : 0;
    counts.pend_received += feedback.rcv_cwnd_pend > 0 ? 1 : 0;
    counts.restores_received += feedback.restore_cwnd ? 1 : 0;
    return window_.apply_destination_flow_control(feedback);
  }

  SharedParameters parameters_;
  Window window_;
};

}  // namespace uet::cms
