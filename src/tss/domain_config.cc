// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/domain_config.h"

#include <algorithm>

#include "uet/base/types.h"

namespace uet::tss {
namespace {

// True if two elements of `values` are equal.
template <class Value>
bool has_twice(std::vector<Value> values) {
  std::sort(values.begin(), values.end());
  return std::adjacent_find(values.begin(), values.end()) != values.end();
}

const char* reason_against_clients(const std::vector<Client>& clients) {
  if (clients.size() > DomainConfig::kMostClients) return "there are more than 65536 clients";
  std::vector<std::uint32_t> ssis;
  std::vector<std::array<std::uint8_t, 16>> addresses;
  for (const Client& client : clients) {
    ssis.push_back(client.ssi);
    addresses.push_back(client.address.bytes);
  }
  if (has_twice(std::move(ssis))) return "two clients have one SSI";
  if (has_twice(std::move(addresses))) return "two clients have one address";
  return nullptr;
}

}  // namespace

TscRange default_range(const DomainConfig& config) {
  if (config.mode != KeyMode::Server || !config.uses_ssi()) return {};
  return config.client ? kClientTscs : kServerTscs;
}

const char* reason_against(const DomainConfig& config) {
  if (config.sdi > kMaxSdi) return "an SDI has 24 bits";
  if (config.client && config.mode != KeyMode::Server) return "only server mode has clients";
  if (!config.clients.empty() && !config.server()) return "only a server lists clients";
  if (config.server() && config.ssi) return "a server has no SSI: its packets carry the client's";
  if (config.ipv6 && config.mode != KeyMode::Cluster && !config.uses_ssi()) {
    return "direct and server mode over IPv6 need an SSI (TSS-22)";
  }
  if (!is_valid(config.rekey)) return "the rekey mask and shift give more than 32 bits";
  if (config.tsc && !is_valid(*config.tsc)) return "the range of TSCs is empty or above 48 bits";
  if (config.max_epoch_age >= 0x8000) return "the largest age of an epoch is 32767";
  if (config.guard < Duration::zero()) return "the guard time is negative";
  if (config.jobs.size() > DomainConfig::kMostJobs) return "there are more than 65536 jobs";
  const auto has_job_bits = [](std::uint32_t job) { return job > kMaxJobId; };
  if (std::any_of(config.jobs.begin(), config.jobs.end(), has_job_bits)) {
    return "a JobID has 24 bits";
  }
  return reason_against_clients(config.clients);
}

}  // namespace uet::tss
