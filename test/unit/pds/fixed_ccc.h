// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A congestion context with fixed answers, which only adds up what is in flight.
#pragma once

#include <cstdint>
#include <optional>

#include "cms/ccc.h"

namespace uet::pds {

class FixedCcc final : public cms::Ccc {
 public:
  std::optional<Duration> rtt = std::chrono::microseconds(10);
  std::optional<cms::RecoveryRules> rules;
  std::uint64_t window = 0;
  std::int64_t inflight = 0;
  std::uint64_t spurious = 0;        // bytes
  std::optional<Duration> nack_rtt;  // of the last NACK

  bool may_send(std::uint32_t) const override { return true; }
  void on_sent(std::uint32_t bytes, Time) override { inflight += bytes; }
  bool on_ack(const cms::AckFeedback& feedback, Time) override {
    inflight -= static_cast<std::int64_t>(feedback.newly_received_bytes);
    return false;
  }
  void on_nack(wire::NackCode, std::uint32_t bytes, bool, std::optional<Duration> sample,
               Time) override {
    inflight -= bytes;
    nack_rtt = sample;
  }
  void on_inferred_loss(std::uint32_t bytes, cms::LossCause, Time) override { inflight -= bytes; }
  void on_spurious_loss(std::uint32_t bytes) override {
    inflight += bytes;
    spurious += bytes;
  }
  void forget(std::int64_t bytes) override { inflight -= bytes; }
  bool wants_ack(std::uint32_t, std::uint32_t) const override { return false; }
  std::optional<Duration> base_rtt() const override { return rtt; }
  std::optional<cms::RecoveryRules> recovery() const override { return rules; }
  std::uint64_t window_bytes() const override { return window; }
  std::uint64_t largest_window_bytes() const override { return window; }
  std::int64_t inflight_bytes() const override { return inflight; }
  cms::Counters holdings() const override { return {}; }
};

}  // namespace uet::pds
