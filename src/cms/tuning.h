// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The numbers of congestion control that an operator may change (CMS section 9), with the defaults
// named there. How they are used is said at the rules; how they are read from the environment is
// not known here.
#pragma once

namespace uet::cms {

// Where 0 is said to mean "by rule", the value follows from link rate, base RTT and MTU (CMS 2.1).
// "RTTs" are base round trip times, "BDPs" link rate times base round trip time.
struct Tuning {
  // NSCC (CMS 9.1, 9.2)
  double max_window_bdp = 1.5;           // Wmax, BDPs
  double initial_window_bytes = 0;       // 0 = Wmax
  double min_window_bytes = 0;           // 0 = MTU; never less than it
  double reference_rate_mbps = 100'000;  // the reference network of scaling_a
  double reference_rtt_us = 12;          // the same, and of scaling_b
  double target_qdelay_us = 0;           // 0 = by rule
  double alpha_bytes_per_us = 0;         // gain of RISE; 0 = by rule
  double fi_bytes = 0;                   // gain of FAIR; 0 = by rule
  double eta_bytes = 0;                  // increase per period; 0 = by rule
  double fi_scale = 0;                   // gain of fast increase; 0 = by rule
  double gamma = 0.8;                    // gain of a decrease
  double max_md_jump = 0.5;              // what a decrease leaves at least, part of the window
  double qa_gate = 3;                    // quick adapt fires below Wmax / 2^qa_gate
  double qa_threshold_us = 0;            // delay at which it fires without trimming; 0 = by rule
  double adjust_bytes = 0;               // increase applied after so many bytes; 0 = by rule
  double adjust_period_us = 0;           // ... or after so long; 0 = by rule
  double quiet_us = 0;                   // "delay is zero" tolerance; 0 = by rule (CMS-711)
  double delay_average_rtts = 1;         // memory of the averaged delay (CMS-120)
  double decrease_spacing_rtts = 1;      // between two decreases
  double raise_after_rtts = 1000;        // CMS-142
  double synthetic_ecn_at = 1.5;         // delay that counts as a mark, in target delays (CMS-703)
  // Swift (swift.h)
  double swift_increase_packets = 1;  // per round trip below the target
  double swift_scaling_range = 1;     // most that a small window adds to the target, base targets
  // SIRD (sird.h)
  double sird_credit_bdp = 1.5;  // granted to all sources and not arrived, at most, BDPs
  double sird_enough_bdp = 0.5;  // credit with which a source asks for no more, BDPs
  // RCCC (CMS 9.3)
  double speculative_bdp = 1.0;  // may be sent before there is credit, BDPs (CMS-210)
  double grant_bytes = 0;        // of one turn; 0 = 4 MTU (CMS-221)
  double pacer_fraction = 0.99;  // of the link's rate is granted (CMS-222)
  double unsolicited_bdp = 1;  // granted beyond targets if no source asks, BDPs (CMS-223); 0 = off
  double zero_grant_bytes = 1024;  // that a Credit which grants nothing new counts as (CMS-223)
  double credit_request_rtts = 2;  // without credit, then a Credit Request (CMS-215)
  double oversubscription_period_rtts = 1;  // CMS-230
  double oversubscription_gain = 0.5;
  double oversubscription_target = 0.9;  // part of the packets that may be marked
  double oversubscription_cut = 0.15;
  double oversubscription_step = 0.08;
  double backlog_low_bytes = 1e6;  // received and not taken: from here on less is granted (CMS-231)
  double backlog_high_bytes = 5e6;
  // Destination flow control: parts of the receive resources (CMS-304, CMS-305)
  double pend_low = 0.25;       // from here on peers are asked for less
  double pend_high = 0.75;      // from here on for next to nothing
  double restore_below = 0.10;  // below, their windows may be as before
  // Paths (CMS 9.4)
  double penalty_ecn = 1;  // bitmap, mixed (CMS-412)
  double penalty_nack = 4;
  double penalty_timeout = 15;
  double penalty_limit = 15;
  double reps_ring = 8;              // entries (CMS-413)
  double reps_explore_bdp = 1;       // begins with random paths for so long, BDPs
  double reps_freeze_us = 0;         // 0 = max(100 us, 8 RTTs) (CMS-414)
  double reps_explore_packets = 16;  // random paths after a freeze
  double path_rest_rtts = 1;     // what drew a mark or a NACK rests so long at most (CMS-406), RTTs
  double path_silence_rtts = 3;  // without an answer counts as a loss (CMS-423), RTTs; 0 = never
  double path_ban_after = 3;     // losses in a row (CMS-419); 0 = never
  double path_ban_s = 1;         // the first ban; each one in a row is twice as long ...
  double path_ban_longest_s = 60;  // ... up to this
  // A single path is exchanged after a time-out, at most once in so many RTTs (CMS-401);
  // 0 = never.
  double reroute_rtts = 10;
  // A packet that later ones of its path have overtaken is waited for so long (CMS-421), RTTs
  double path_inference_wait_rtts = 0.25;
  // Losses found without knowing paths (CMS-150, CMS-151)
  double recovery_windows = 1.5;  // reported above a gap prove a loss: of the window, Wmax at most
  double recovery_packets = 5;    // ... and of packets at least
  double recovery_silence_rtts = 3;  // without an ACK, then a Probe
  double recovery_retry_rtts = 5;    // until the next Probe
};

}  // namespace uet::cms
