// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "security/security_counters.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "uet/base/check.h"

namespace uet::prov {
namespace {

struct Counts {
  tss::PortCounters port;
  tss::DomainCounters domain;
  tss::KeyCacheCounters cache;
};

struct CounterRow {
  const char* name;
  const char* meaning;
  std::uint64_t (*read)(const Counts&);
};

template <auto Member>
constexpr CounterRow port(const char* name, const char* meaning) {
  return {name, meaning, [](const Counts& counts) { return counts.port.*Member; }};
}
template <auto Member>
constexpr CounterRow domain(const char* name, const char* meaning) {
  return {name, meaning, [](const Counts& counts) { return counts.domain.*Member; }};
}
template <auto Member>
constexpr CounterRow cache(const char* name, const char* meaning) {
  return {name, meaning, [](const Counts& counts) { return counts.cache.*Member; }};
}

using P = tss::PortCounters;
using D = tss::DomainCounters;
using C = tss::KeyCacheCounters;

constexpr CounterRow kCounterRows[] = {
    domain<&D::out_auth>("tss_out_auth", "packets sealed"),
    domain<&D::out_errored>("tss_out_errored", "packets dropped on sending: no active key"),
    domain<&D::out_invoke_fail>("tss_out_invoke_fail",
                                "packets dropped on sending: no TSC is left, or known"),
    domain<&D::in_auth>("tss_in_auth", "packets opened"),
    domain<&D::in_auth_fail>("tss_in_auth_fail",
                             "packets dropped on arrival: sealed with another key, or damaged"),
    domain<&D::in_late>("tss_in_late", "packets dropped on arrival: their epoch is too old"),
    domain<&D::in_invalid>("tss_in_invalid",
                           "packets dropped on arrival: without the SSI that the domain asks for"),
    domain<&D::in_invalid_sa>("tss_in_invalid_sa",
                              "packets dropped on arrival: no key for their AN"),
    domain<&D::in_binding_failure>("tss_in_binding_failure",
                                   "packets dropped on arrival: authentic, of another member"),
    domain<&D::auth_fail_alarms>("tss_auth_fail_alarms",
                                 "seconds with more failures than the key file allows"),
    port<&P::in_errored>("tss_in_errored",
                         "packets dropped on arrival: cut short, or of another secure domain"),
    port<&P::out_errored>("tss_port_out_errored",
                          "packets dropped on sending: the secure domain is gone"),
    port<&P::in_rx_encryption_bypass>("tss_in_rx_encryption_bypass",
                                      "packets dropped on arrival: not protected"),
    port<&P::in_trimmed>("tss_in_trimmed",
                         "packets dropped on arrival: protected, and trimmed by a switch"),
    cache<&C::misses>("tss_derived_keys", "packet keys derived"),
    cache<&C::evictions>("tss_derived_keys_replaced", "packet keys dropped for newer ones"),
};

}  // namespace

std::span<const fep::CounterName> security_counter_names() {
  // Never destroyed: statistics may be written when the process ends.
  static const std::vector<fep::CounterName>& all = *[] {
    auto names = std::make_unique<std::vector<fep::CounterName>>();
    for (const CounterRow& row : kCounterRows) names->push_back({row.name, row.meaning});
    return names.release();
  }();
  return all;
}

void read_security_counters(const tss::SdTable* table, std::uint32_t sdi,
                            std::span<std::uint64_t> values) {
  UET_ASSERT(values.size() == std::size(kCounterRows));
  Counts counts;
  if (table != nullptr) {
    counts.port = table->port_counters();
    counts.cache = table->cache_counters();
    const tss::SecureDomain* const found = table->find(sdi);
    if (found != nullptr) counts.domain = found->counters();
  }
  std::uint64_t* out = values.data();
  for (const CounterRow& row : kCounterRows) *out++ = row.read(counts);
}

}  // namespace uet::prov
