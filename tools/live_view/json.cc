// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "live_view/json.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace uet::view {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Domain& domain) {
  Json out{
      {"file", domain.file},
      {"pid", domain.pid},
      {"start_time", domain.start_time},
      {"process", word_for(domain.owner)},
      {"program", domain.program},
      {"interface", domain.interface},
      {"nic", domain.nic},
      {"address", domain.address},
      {"opened_ns", domain.opened_ns},
      {"updated_ns", domain.updated_ns},
      {"monotonic_ns", domain.monotonic_ns},
      {"torn", domain.torn},
      {"peers_known", domain.peers_known},
  };
  Json counters = Json::object();
  Json gauges = Json::object();
  for (const live::Counter& counter : domain.counters) {
    (counter.gauge ? gauges : counters)[counter.name] = counter.value;
  }
  out["counters"] = std::move(counters);
  out["gauges"] = std::move(gauges);
  Json peers = Json::array();
  const auto columns = peer_columns();
  for (const Peer& peer : domain.peers) {
    Json one{{"peer", peer.name}};
    for (std::size_t i = 0; i < columns.size(); ++i) one[columns[i].name] = peer.values[i];
    peers.push_back(std::move(one));
  }
  out["peers"] = std::move(peers);
  return out;
}

live::Owner owner_from(const std::string& word) {
  for (const auto owner : {live::Owner::Running, live::Owner::Gone}) {
    if (word == word_for(owner)) return owner;
  }
  return live::Owner::Unknown;
}

Domain domain_from(const Json& in) {
  Domain domain{
      .file = in.at("file"),
      .pid = in.at("pid"),
      .start_time = in.at("start_time"),
      .opened_ns = in.at("opened_ns"),
      .updated_ns = in.at("updated_ns"),
      .monotonic_ns = in.at("monotonic_ns"),
      .owner = owner_from(in.at("process")),
      .torn = in.at("torn"),
      .program = in.at("program"),
      .interface = in.at("interface"),
      .nic = in.at("nic"),
      .address = in.at("address"),
      .peers_known = in.at("peers_known"),
      .counters = {},
      .peers = {},
  };
  for (const bool gauge : {false, true}) {
    for (const auto& [name, value] : in.at(gauge ? "gauges" : "counters").items()) {
      domain.counters.push_back({name, "", gauge, value});
    }
  }
  const auto columns = peer_columns();
  for (const Json& one : in.at("peers")) {
    Peer peer{one.at("peer"), {}};
    for (const Column& column : columns) {
      peer.values.push_back(one.value(column.name, std::uint64_t{0}));
    }
    domain.peers.push_back(std::move(peer));
  }
  return domain;
}

}  // namespace

std::string to_json(const Reading& reading) {
  Json domains = Json::array();
  for (const Domain& domain : reading.domains) domains.push_back(json_of(domain));
  const Json out{{"domains", std::move(domains)}, {"problems", reading.problems}};
  // A name that is not UTF-8 must not end the program.
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<Domain> from_json(const std::string& text) {
  try {
    std::vector<Domain> domains;
    const Json whole = Json::parse(text);
    for (const Json& one : whole.at("domains")) domains.push_back(domain_from(one));
    return domains;
  } catch (const Json::exception& error) {
    throw std::runtime_error(std::string("not the JSON of uet_stats: ") + error.what());
  }
}

}  // namespace uet::view
