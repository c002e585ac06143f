// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From live pages to domains.
#include "live_view/domain.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "live/fields.h"

namespace uet::view {

namespace {

std::size_t find(const std::vector<Column>& columns, std::string_view name) {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const Column& column) { return column.name == name; });
  return static_cast<std::size_t>(found - columns.begin());
}

struct Columns {
  std::vector<Column> all;
  std::array<std::size_t, live::kNackCodes> of_nack{};
};

Columns make_columns() {
  Columns made;
  for (const live::PeerField& field : live::peer_fields()) {
    made.all.push_back({field.name, field.meaning, !field.counts});
  }
  for (std::size_t code = 0; code < live::kNackCodes; ++code) {
    const std::string word = live::nack_name(code);
    const std::string name = "nacks_received_" + word;
    made.of_nack[code] = find(made.all, name);
    if (made.of_nack[code] == made.all.size()) {
      made.all.push_back({name, "NACKs received, code " + word, false});
    }
  }
  return made;
}

const Columns& columns() {
  static const Columns kAll = make_columns();
  return kAll;
}

Peer peer_of(const live::PeerRecord& record) {
  Peer peer{live::peer_name(record), {}};
  for (const live::PeerField& field : live::peer_fields()) {
    peer.values.push_back(record.*field.value);
  }
  peer.values.resize(columns().all.size());
  for (std::size_t code = 0; code < live::kNackCodes; ++code) {
    peer.values[columns().of_nack[code]] += record.nacks_received[code];
  }
  return peer;
}

}  // namespace

std::span<const Column> peer_columns() { return columns().all; }

std::size_t peer_column(std::string_view name) { return find(columns().all, name); }

Domain domain_of(const live::Snapshot& page) {
  Domain domain{
      .file = page.file,
      .pid = page.head.pid,
      .start_time = page.head.start_time,
      .opened_ns = page.head.opened_ns,
      .updated_ns = page.moment.updated_ns,
      .monotonic_ns = page.moment.monotonic_ns,
      .owner = page.owner,
      .torn = page.torn,
      .program = page.program(),
      .interface = page.interface(),
      .nic = page.nic(),
      .address = page.address(),
      .peers_known = page.moment.peers_known,
      .counters = page.counters,
      .peers = {},
  };
  for (std::string* const text :
       {&domain.program, &domain.interface, &domain.nic, &domain.address}) {
    for (char& c : *text) {
      if (std::iscntrl(static_cast<unsigned char>(c)) != 0) c = '?';  // no orders to a terminal
    }
  }
  for (const live::PeerRecord& record : page.peers) domain.peers.push_back(peer_of(record));
  return domain;
}

bool same_domain(const Domain& a, const Domain& b) {
  return a.file == b.file && a.pid == b.pid && a.start_time == b.start_time &&
         a.opened_ns == b.opened_ns;
}

const char* word_for(live::Owner owner) {
  switch (owner) {
    case live::Owner::Running:
      return "running";
    case live::Owner::Gone:
      return "gone";
    case live::Owner::Unknown:
      break;
  }
  return "unknown";
}

Reading read_domains(pid_t pid) {
  Reading reading;
  for (const std::string& file : live::find_pages(pid)) {
    std::string why;
    const auto page = live::read_page(file, why);
    if (page) {
      reading.domains.push_back(domain_of(*page));
    } else {
      reading.problems.push_back(file + ": " + why);
    }
  }
  return reading;
}

}  // namespace uet::view
