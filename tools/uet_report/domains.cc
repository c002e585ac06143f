// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Plots of the counters of peers.
#include <algorithm>
#include <set>

#include "uet_report/sections.h"
#include "uet_report/svg.h"

namespace uet::report {

namespace {

double value_of(const view::Peer& peer, const char* column) {
  const std::size_t index = view::peer_column(column);
  return index < peer.values.size() ? static_cast<double>(peer.values[index]) : 0;
}

double retransmissions_of(const view::Peer& peer) {
  return value_of(peer, "rto_retransmissions") + value_of(peer, "nack_retransmissions") +
         value_of(peer, "inferred_loss_retransmissions");
}

// One row for each domain, one column for each address; both in the same order.
template <class Number>
std::string map_of(const std::vector<view::Domain>& domains, const std::string& title,
                   const Number& number) {
  std::vector<std::string> rows;
  std::set<std::string> known;
  for (const view::Domain& domain : domains) {
    rows.push_back(domain.address);
    known.insert(domain.address);
  }
  std::vector<std::string> columns = rows;
  for (const view::Domain& domain : domains) {
    for (const view::Peer& peer : domain.peers) {
      if (known.insert(peer.name).second) columns.push_back(peer.name);
    }
  }
  std::vector<std::vector<double>> values(rows.size(), std::vector<double>(columns.size()));
  for (std::size_t r = 0; r < domains.size(); ++r) {
    for (const view::Peer& peer : domains[r].peers) {
      const auto column = std::find(columns.begin(), columns.end(), peer.name);
      values[r][static_cast<std::size_t>(column - columns.begin())] += number(peer);
    }
  }
  return heat_map({title, "target", "initiator"}, rows, columns, values);
}

std::vector<Bar> bars_of(const view::Domain& domain, const char* column, double unit) {
  std::vector<Bar> bars;
  for (const view::Peer& peer : domain.peers) {
    if (bars.size() < 16) bars.push_back({peer.name, value_of(peer, column) / unit});
  }
  return bars;
}

}  // namespace

std::vector<Section> domain_sections(const std::vector<view::Domain>& domains) {
  std::vector<Section> sections;
  sections.push_back({"All domains",
                      {map_of(domains, "Traffic in bytes",
                              [](const view::Peer& peer) { return value_of(peer, "bytes_sent"); }),
                       map_of(domains, "Retransmitted packets", retransmissions_of)}});
  for (const view::Domain& domain : domains) {
    sections.push_back(
        {domain.program + " " + std::to_string(domain.pid) + ", " + domain.address,
         {bar_chart({"Round trip time of peers", "peer", "us"}, bars_of(domain, "rtt_ns", 1000)),
          bar_chart({"Congestion windows of peers", "peer", "bytes"},
                    bars_of(domain, "window_bytes", 1))}});
  }
  return sections;
}

}  // namespace uet::report
