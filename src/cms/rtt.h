// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the numbers in an ACK_CC header mean for congestion control, at both ends: the running count
// of received bytes (CMS-110, CMS-111), the service time and the round trip sample made from it
// (CMS-113, CMS-713). Pure functions; PDS owns the counters and the send records they work on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "uet/base/time.h"

namespace uet::cms {

inline constexpr std::uint32_t kRcvdBytesUnit = 256;          // bytes in one unit of rcvd_bytes
inline constexpr std::uint32_t kRcvdBytesMask = 0xFFFFFF;     // the field has 24 bits
inline constexpr std::uint16_t kServiceTimeInvalid = 0;       // not measured
inline constexpr std::uint16_t kServiceTimeTooLong = 0xFFFF;  // more than 8.388 ms
inline constexpr Duration kServiceTimeUnit{128};
inline constexpr int kBaseRttNoise = 8;  // round trips without a queue differ by 1/8

// The news in one rcvd_bytes field.
struct ReceivedBytes {
  std::uint64_t newly_received_bytes = 0;  // 0 for an ACK older than one already seen
  std::uint32_t last = 0;                  // keep this for the next ACK of the PDC

  friend constexpr bool operator==(const ReceivedBytes&, const ReceivedBytes&) = default;
};

// CMS-110, source side. `last`: field value of the newest ACK so far, 0 when the PDC opens; only
// the low 24 bits of both arguments count. The caller bounds the result by what it has outstanding
// (CMS-820), since the field comes from the peer.
constexpr ReceivedBytes newly_received(std::uint32_t last, std::uint32_t rcvd_bytes) {
  const std::uint32_t units = (rcvd_bytes - last) & kRcvdBytesMask;
  if (units >= (kRcvdBytesMask + 1) / 2) return {0, last & kRcvdBytesMask};
  return {std::uint64_t{units} * kRcvdBytesUnit, rcvd_bytes & kRcvdBytesMask};
}

// CMS-111, destination side: the field for a running count of nominal bytes of packets that arrived
// whole and for the first time on this PDC.
constexpr std::uint32_t encode_rcvd_bytes(std::uint64_t count_bytes) {
  return static_cast<std::uint32_t>((count_bytes + kRcvdBytesUnit - 1) / kRcvdBytesUnit) &
         kRcvdBytesMask;
}

// CMS-713, destination side: time from the request's arrival to its ACK in units of 128 ns, rounded
// to nearest, at least 1; kServiceTimeTooLong when it does not fit. A negative time is none.
constexpr std::uint16_t encode_service_time(Duration service) {
  if (service < Duration::zero()) return kServiceTimeInvalid;
  if (service > kServiceTimeTooLong * kServiceTimeUnit) return kServiceTimeTooLong;
  const auto units = (service + kServiceTimeUnit / 2) / kServiceTimeUnit;
  return units < 1 ? std::uint16_t{1} : static_cast<std::uint16_t>(units);
}

// The transmissions of one packet.
struct Transmissions {
  std::uint32_t sent = 0;     // all
  std::uint32_t trimmed = 0;  // a NACK of the peer has said so
  Time latest{};              // when the latest one left
  bool timed = true;          // `latest` is known
};

// CMS-113, source side: the round trip of the packet that ack_psn names, without the time the peer
// held it. `retx`: the ACK's RETX flag. Empty when it is not known which transmission the ACK
// answers, when the peer gave no service time, or when the result would not be positive.
// Of a packet that was sent more than twice the ACK counts as the answer to the latest transmission
// if it comes late enough for that: `base_rtt` after it (empty: not known), or 1/8 less; the
// result is at least `base_rtt`. Otherwise a window whose packets have all been lost twice
// would stay as small as the losses made it, since nothing tells it that the queue has gone.
constexpr std::optional<Duration> rtt_sample(const Transmissions& packet, bool retx, Time ack_time,
                                             std::uint16_t service_time,
                                             std::optional<Duration> base_rtt = {}) {
  const bool others_trimmed = packet.sent > 1 && packet.trimmed + 1 == packet.sent;
  const bool known = retx ? packet.sent == 2 || others_trimmed : packet.sent == 1;
  const bool likely = retx && packet.sent > 2 && base_rtt;
  if (!packet.timed || !(known || likely)) return std::nullopt;
  if (service_time == kServiceTimeInvalid || service_time == kServiceTimeTooLong) {
    return std::nullopt;
  }
  const Duration rtt = ack_time - packet.latest - service_time * kServiceTimeUnit;
  if (rtt <= Duration::zero()) return std::nullopt;
  if (known) return rtt;
  if (rtt < *base_rtt - *base_rtt / kBaseRttNoise) return std::nullopt;
  return std::max(rtt, *base_rtt);
}

// CMS-130: the round trip of a packet that a NACK says was trimmed; the peer holds no such packet.
// `packet` counts that NACK. Empty unless all transmissions were trimmed: else it is not known
// which of them the NACK answers.
constexpr std::optional<Duration> trimmed_rtt(const Transmissions& packet, Time nack_time) {
  if (packet.trimmed != packet.sent || !packet.timed || nack_time <= packet.latest)
    return std::nullopt;
  return nack_time - packet.latest;
}

}  // namespace uet::cms
