// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SIRD: credit of the receiver with informed overcommitment. After K. Prasopoulos, R. Kosta,
// E. Bugnion and M. Kogias, "SIRD: A Sender-Informed, Receiver-Driven Datacenter Transport
// Protocol", NSDI 2025 (arXiv 2312.15403).
//
// RCCC grants at the rate of the receiver's link, whatever has become of earlier grants. SIRD
// grants only while the credit that is outstanding, granted and not yet arrived as data, is less
// than a bound B of all sources and less than the bucket of its source. Two control loops size each
// bucket: one by the sender's mark, which says that credit accumulates there since other receivers
// grant as well, one by ECN marks of the network. Packets and counters are those of RCCC.
//
// Differences from the paper, with reasons:
// - The sender's mark needs no field that UET lacks. A source that has enough credit asks for
//   nothing: its credit_target is the credit that it knows. A receiver that has granted less than
//   the source once asked for reads that as the mark.
// - Credit whose packet was lost never comes back as data. Credit older than two periods counts as
//   lost: the paper's receivers learn of losses from time-outs of their own.
// - A packet that was trimmed inside the network counts as one with an ECN mark.
// - Sources take turns; the paper may prefer the shortest remaining message, which CMS-225 forbids.
// - A first BDP leaves without credit as with RCCC (CMS-210), whatever the length of the message.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cms/algorithms.h"
#include "uet/base/time.h"

namespace uet::cms {

struct Parameters;

// In bytes.
struct SirdLimits {
  double all = 0;      // B: outstanding credit of all sources together
  double largest = 0;  // bucket of one source
  double least = 0;    // one turn of the pacer: a smaller bucket would never be served
  double step = 0;     // a bucket grows by so much per bucket of data without mark
};
// Outstanding credit becomes lost after one to two of them. Above 0.
Duration credit_period(const Parameters& parameters);
SirdLimits sird_limits(const Parameters& parameters, double turn_bytes);
// A source with so much credit asks for no more (SThr).
std::int64_t sird_enough_bytes(const Parameters& parameters);

// AIMD as DCTCP has it: once per bucket of data the bucket shrinks by half the averaged part of the
// data that was marked, or grows by a step if none was.
class SirdBucket {
 public:
  void on_arrival(std::uint64_t bytes, bool marked, const SirdLimits& limits);
  double bytes(const SirdLimits& limits) const { return began_ ? bytes_ : limits.largest; }

 private:
  static constexpr double kGain = 0.08;
  double bytes_ = 0;
  double marked_part_ = 0;  // averaged
  std::uint64_t arrived_bytes_ = 0;
  std::uint64_t marked_bytes_ = 0;
  bool began_ = false;
};

// Credit that was granted and has not arrived as data.
class OutstandingCredit {
 public:
  // The number of the period that it is now: forgets what was granted before the last one.
  void enter(std::int64_t period);
  void grant(std::uint64_t bytes) {
    bytes_ += bytes;
    in_period_ += bytes;
  }
  void arrive(std::uint64_t bytes) { bytes_ -= std::min(bytes, bytes_); }
  double bytes() const { return static_cast<double>(bytes_); }

 private:
  std::uint64_t bytes_ = 0;
  std::uint64_t in_period_ = 0;
  std::uint64_t in_last_period_ = 0;
  std::int64_t period_ = 0;
};

// A source, as a receiver with SIRD sees it.
struct SirdSource {
  SirdBucket by_sender;
  SirdBucket by_network;

  double bucket_bytes(const SirdLimits& limits) const {
    return std::min(by_sender.bytes(limits), by_network.bytes(limits));
  }
};

}  // namespace uet::cms
