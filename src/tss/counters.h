// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Counters of transport security (TSS section 9).
#pragma once

#include <cstdint>

namespace uet::tss {

// Of one secure domain.
struct DomainCounters {
  std::uint64_t out_auth = 0;            // packets sealed
  std::uint64_t out_errored = 0;         // packets not sealed: no active key, OpenSSL failed
  std::uint64_t out_invoke_fail = 0;     // packets not sealed: the TSCs are used up (TSS-36)
  std::uint64_t in_auth = 0;             // packets opened
  std::uint64_t in_auth_fail = 0;        // ICV does not match
  std::uint64_t in_late = 0;             // epoch too old
  std::uint64_t in_invalid = 0;          // no SSI although the domain uses them, or latched
  std::uint64_t in_invalid_sa = 0;       // disabled, or no key in the slot that AN selects
  std::uint64_t in_binding_failure = 0;  // authentic, but not of this PDC, peer or domain
  std::uint64_t auth_fail_alarms = 0;    // seconds with more failures than auth_fail_alarm
  friend bool operator==(const DomainCounters&, const DomainCounters&) = default;
};

// Of a port: packets that no secure domain counts.
struct PortCounters {
  std::uint64_t in_errored = 0;               // cut short, or of an unknown SDI
  std::uint64_t out_errored = 0;              // to be sealed in a domain that is not there
  std::uint64_t in_rx_encryption_bypass = 0;  // without security header
  std::uint64_t in_trimmed = 0;               // trimmed, so that the ICV is gone (TSS-13)
  friend bool operator==(const PortCounters&, const PortCounters&) = default;
};

}  // namespace uet::tss
