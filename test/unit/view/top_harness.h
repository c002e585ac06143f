// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two processes, of which the first has two domains; and their numbers a second later.
#pragma once

#include <string>
#include <vector>

#include "uet_top/sample.h"
#include "unit/view/view_harness.h"

namespace uet::top {

inline view::Domain make_domain(std::int64_t pid, const std::string& program,
                                const std::string& address, std::uint64_t bytes) {
  view::Domain domain = view::make_domain();
  domain.file = "/dev/shm/uet-stats.0." + std::to_string(pid) + "." + address;
  domain.pid = pid;
  domain.program = program;
  domain.address = address;
  domain.counters = {{"nic_bytes_sent", "bytes", false, bytes},
                     {"pds_rto_retransmissions", "again", false, 0},
                     {"cms_inflight_bytes", "in flight", true, 500}};
  domain.peers = {view::make_peer("10.0.1.1:4793"), view::make_peer("10.0.1.2:4793")};
  value_of(domain.peers[0], "bytes_sent") = bytes;
  value_of(domain.peers[1], "oldest_outstanding_ns") = 2'000;
  return domain;
}

// `second`: a second after the first reading. The domains have then sent 100, 3,000 and 2,000 bytes
// more, the last one 7 packets again.
inline view::Reading reading(bool second) {
  const std::uint64_t more = second ? 1 : 0;
  view::Reading all{{make_domain(20, "alpha", "10.0.0.1:4793", 100 * more),
                     make_domain(20, "alpha", "10.0.0.2:4793", 3'000 * more),
                     make_domain(3, "beta", "10.0.0.3:4793", 2'000 * more)},
                    {}};
  all.domains[2].counters[1].value = 7 * more;
  for (view::Domain& domain : all.domains) domain.monotonic_ns += more * 1'000'000'000;
  return all;
}

inline std::vector<Sample> samples() {
  return take_samples(take_samples({}, reading(false).domains, 0), reading(true).domains, 1);
}

}  // namespace uet::top
