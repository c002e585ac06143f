// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The tables of uet_top: processes, domains, peers, and all numbers of one domain or peer. Must not
// know a screen.
#pragma once

#include <string>
#include <vector>

#include "uet_top/sample.h"

namespace uet::top {

enum class Kind : std::uint8_t { Text, Count, Time, Rate };

struct Heading {
  std::string name;  // also the member of the JSON
  Kind kind = Kind::Text;
};

struct Cell {
  std::string text;  // as it is shown
  double number = 0;
};

struct Row {
  std::string key;  // the same in each sample
  std::vector<Cell> cells;
  double traffic = 0;  // bytes per second both ways, for the history
};

struct Table {
  std::vector<Heading> headings;
  std::vector<Row> rows;

  // The index of a heading; headings.size() if there is none of that name.
  std::size_t column(const std::string& name) const;
  // Texts rise from A; numbers fall from the largest, unless `reverse`.
  void sort(std::size_t column, bool reverse);
};

// Keys of the rows of domains and of peers.
std::string key_of(const view::Domain& domain);
std::string key_of(const view::Domain& domain, const view::Peer& peer);

Table processes(const std::vector<Sample>& samples);
// All domains, or those of the process with this key.
Table domains(const std::vector<Sample>& samples, const std::string& process = {});
// All peers, or those of the domain with this key.
Table peers(const std::vector<Sample>& samples, const std::string& domain = {});
// The counters of a domain that are not 0, or the numbers of a peer; no row if it is not there.
Table counters(const std::vector<Sample>& samples, const std::string& domain);
Table numbers(const std::vector<Sample>& samples, const std::string& peer);

}  // namespace uet::top
