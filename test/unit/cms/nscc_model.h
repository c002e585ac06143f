// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A context of NSCC on the reference network, fed event by event, for tests of its rules.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>

#include "cms/nscc.h"

namespace uet::cms::test {

inline Time at(double us) { return time_from_ns(std::llround(us * 1000)); }
inline Duration us(double value) { return Duration(std::llround(value * 1000)); }

inline Parameters reference_network(bool trimming = true) {
  Parameters p;
  p.mtu_bytes = 4096;
  p.link_rate_bps = 100'000'000'000;
  p.base_rtt = us(12);
  p.trimming = trimming;
  return p;
}

// The state that the examples of CMS 2.6 start from.
struct Model {
  NsccConstants c;
  NsccState s;

  explicit Model(const Parameters& p = reference_network())
      : c(nscc_constants(p, *p.base_rtt)), s(nscc_start(c, at(0))) {
    s.qa_end_time = at(1e9);
  }
  NsccReaction ack(double now_us, std::uint64_t bytes, bool ecn, std::optional<double> rtt_us,
                   std::uint8_t pend = 0, bool restore = false) {
    AckFeedback f;
    f.newly_received_bytes = bytes;
    f.ce = ecn;
    if (rtt_us) f.rtt = us(*rtt_us);
    f.rcv_cwnd_pend = pend;
    f.restore_cwnd = restore;
    return nscc_on_ack(s, c, f, at(now_us));
  }
  void sent(double now_us, std::uint32_t bytes) { nscc_on_sent(s, c, bytes, at(now_us)); }
  void trim(double now_us, std::uint32_t bytes, std::optional<double> rtt_us = std::nullopt) {
    nscc_on_trim(s, c, bytes, rtt_us ? std::optional(us(*rtt_us)) : std::nullopt, at(now_us));
  }
  void loss(double now_us, std::uint32_t bytes, LossCause cause = LossCause::Path) {
    nscc_on_inferred_loss(s, bytes, cause, at(now_us));
  }
};

inline void expect_close(double value, double expected, double tolerance = 1e-6) {
  EXPECT_NEAR(value, expected, std::abs(expected) * tolerance);
}

}  // namespace uet::cms::test
