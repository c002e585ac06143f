// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet_top/sample.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

namespace uet::top {

namespace {

// A domain at rest does not write its page: the time between its updates may be longer than that
// between the readings, and its numbers have grown within the latter.
double seconds_between(const view::Domain& before, const view::Domain& now, double elapsed_s) {
  if (now.monotonic_ns <= before.monotonic_ns) return 0;
  const double updates = static_cast<double>(now.monotonic_ns - before.monotonic_ns) / 1e9;
  return updates > 2 * elapsed_s ? elapsed_s : updates;
}

double rate(std::uint64_t before, std::uint64_t now, double seconds) {
  return seconds > 0 && now > before ? static_cast<double>(now - before) / seconds : 0;
}

void rate_counters(const view::Domain& before, double seconds, Sample& sample) {
  const auto& counters = sample.domain.counters;
  // Pages of one domain have their counters in one order.
  const std::size_t known = std::min(before.counters.size(), counters.size());
  for (std::size_t i = 0; i < known; ++i) {
    if (counters[i].gauge) continue;
    sample.counter_rates[i] = rate(before.counters[i].value, counters[i].value, seconds);
  }
}

void rate_peers(const view::Domain& before, double seconds, Sample& sample) {
  std::unordered_map<std::string, const view::Peer*> earlier;
  for (const view::Peer& peer : before.peers) earlier[peer.name] = &peer;
  const auto columns = view::peer_columns();
  for (std::size_t p = 0; p < sample.domain.peers.size(); ++p) {
    const view::Peer& peer = sample.domain.peers[p];
    const auto found = earlier.find(peer.name);
    // A peer that comes into the list may have had its traffic long ago.
    if (found == earlier.end()) continue;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].gauge) continue;
      sample.peer_rates[p][i] = rate(found->second->values[i], peer.values[i], seconds);
    }
  }
}

}  // namespace

std::vector<Sample> take_samples(const std::vector<Sample>& before,
                                 std::vector<view::Domain> domains, double elapsed_s) {
  std::unordered_map<std::string, const view::Domain*> earlier;
  for (const Sample& sample : before) earlier[sample.domain.file] = &sample.domain;
  std::vector<Sample> samples;
  for (view::Domain& domain : domains) {
    Sample sample{std::move(domain), {}, {}};
    sample.counter_rates.resize(sample.domain.counters.size());
    sample.peer_rates.resize(sample.domain.peers.size(),
                             std::vector<double>(view::peer_columns().size()));
    const auto found = earlier.find(sample.domain.file);
    if (found != earlier.end() && view::same_domain(*found->second, sample.domain)) {
      const double seconds = seconds_between(*found->second, sample.domain, elapsed_s);
      rate_counters(*found->second, seconds, sample);
      rate_peers(*found->second, seconds, sample);
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace uet::top
