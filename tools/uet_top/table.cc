// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet_top/table.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string_view>

#include "live_view/words.h"

namespace uet::top {

namespace {

Cell text(std::string shown) { return {std::move(shown), 0}; }
Cell count(double value) { return {view::short_count(value), value}; }
Cell time(double ns) { return {view::short_time(ns), ns}; }
// A dash for 0, so that movement is seen.
Cell rate(double value) { return {value == 0 ? "-" : view::short_count(value), value}; }

using Names = std::initializer_list<std::string_view>;

// Sums of one domain, or of the domains of a process.
struct Sums {
  double domains = 0;
  double peers = 0;
  double bytes_sent = 0;  // these and the following: per second
  double bytes_received = 0;
  double packets_sent = 0;
  double packets_received = 0;
  double again = 0;
  double marks = 0;
  double inflight = 0;
  double oldest_ns = 0;
};

double counter_rate(const Sample& sample, Names names) {
  double sum = 0;
  for (std::size_t i = 0; i < sample.domain.counters.size(); ++i) {
    const std::string& name = sample.domain.counters[i].name;
    if (std::find(names.begin(), names.end(), name) != names.end()) sum += sample.counter_rates[i];
  }
  return sum;
}

double counter_value(const Sample& sample, std::string_view name) {
  for (const live::Counter& counter : sample.domain.counters) {
    if (counter.name == name) return static_cast<double>(counter.value);
  }
  return 0;
}

void add(const Sample& sample, Sums& sums) {
  sums.domains += 1;
  sums.peers += static_cast<double>(sample.domain.peers_known);
  sums.bytes_sent += counter_rate(sample, {"nic_bytes_sent"});
  sums.bytes_received += counter_rate(sample, {"nic_bytes_received"});
  sums.packets_sent += counter_rate(sample, {"nic_packets_sent"});
  sums.packets_received += counter_rate(sample, {"nic_packets_received"});
  sums.again += counter_rate(sample, {"pds_rto_retransmissions", "pds_nack_retransmissions",
                                      "pds_inferred_loss_retransmissions"});
  sums.marks += counter_rate(sample, {"cms_marks_received"});
  sums.inflight += counter_value(sample, "cms_inflight_bytes");
  const std::size_t oldest = view::peer_column("oldest_outstanding_ns");
  for (const view::Peer& peer : sample.domain.peers) {
    sums.oldest_ns = std::max(sums.oldest_ns, static_cast<double>(peer.values[oldest]));
  }
}

void add_headings(Table& table) {
  const Heading all[] = {
      {"peers", Kind::Count},   {"sent_B/s", Kind::Rate},  {"recv_B/s", Kind::Rate},
      {"sent_p/s", Kind::Rate}, {"recv_p/s", Kind::Rate},  {"again/s", Kind::Rate},
      {"marks/s", Kind::Rate},  {"inflight", Kind::Count}, {"oldest", Kind::Time}};
  table.headings.insert(table.headings.end(), std::begin(all), std::end(all));
}

void add_cells(const Sums& sums, Row& row) {
  row.cells.insert(row.cells.end(),
                   {count(sums.peers), rate(sums.bytes_sent), rate(sums.bytes_received),
                    rate(sums.packets_sent), rate(sums.packets_received), rate(sums.again),
                    rate(sums.marks), count(sums.inflight), time(sums.oldest_ns)});
  row.traffic = sums.bytes_sent + sums.bytes_received;
}

std::string process_key(const view::Domain& domain) {
  return std::to_string(domain.pid) + "/" + std::to_string(domain.start_time);
}

Cell pid_of(const view::Domain& domain) {
  return {std::to_string(domain.pid), static_cast<double>(domain.pid)};
}

double peer_rate(const Sample& sample, std::size_t peer, Names names) {
  double sum = 0;
  for (const std::string_view name : names) sum += sample.peer_rates[peer][view::peer_column(name)];
  return sum;
}

double nack_rate(const Sample& sample, std::size_t peer) {
  double sum = 0;
  const auto columns = view::peer_columns();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name.starts_with("nacks_")) sum += sample.peer_rates[peer][i];
  }
  return sum;
}

Row peer_row(const Sample& sample, std::size_t index) {
  const view::Peer& peer = sample.domain.peers[index];
  const auto value = [&](std::string_view name) {
    return static_cast<double>(peer.values[view::peer_column(name)]);
  };
  const double sent = peer_rate(sample, index, {"bytes_sent"});
  const double received = peer_rate(sample, index, {"bytes_received"});
  const double again =
      peer_rate(sample, index,
                {"rto_retransmissions", "nack_retransmissions", "inferred_loss_retransmissions"});
  return {key_of(sample.domain, peer),
          {text(peer.name), pid_of(sample.domain), count(value("pdcs")), time(value("rtt_ns")),
           count(value("window_bytes")), count(value("inflight_bytes")), rate(sent), rate(received),
           rate(again), rate(peer_rate(sample, index, {"marks_received"})),
           rate(nack_rate(sample, index)), count(value("paths")), count(value("paths_banned")),
           time(value("oldest_outstanding_ns")), time(value("silent_ns"))},
          sent + received};
}

Row number_row(const std::string& name, bool gauge, std::uint64_t value, double per_second,
               const std::string& meaning) {
  const double number = static_cast<double>(value);
  return {name,
          {text(name),
           {std::to_string(value), number},
           gauge ? Cell{"", 0} : rate(per_second),
           text(meaning)},
          0};
}

std::vector<Heading> number_headings() {
  return {{"name"}, {"value", Kind::Count}, {"per_second", Kind::Rate}, {"meaning"}};
}

}  // namespace

std::size_t Table::column(const std::string& name) const {
  const auto found = std::find_if(headings.begin(), headings.end(),
                                  [&](const Heading& heading) { return heading.name == name; });
  return static_cast<std::size_t>(found - headings.begin());
}

void Table::sort(std::size_t column, bool reverse) {
  if (column >= headings.size()) return;
  const bool by_text = headings[column].kind == Kind::Text;
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& left, const Row& right) {
    const Cell& a = (reverse ? right : left).cells[column];
    const Cell& b = (reverse ? left : right).cells[column];
    return by_text ? a.text < b.text : a.number > b.number;
  });
}

std::string key_of(const view::Domain& domain) {
  return domain.file + " " + process_key(domain) + " " + std::to_string(domain.opened_ns);
}

std::string key_of(const view::Domain& domain, const view::Peer& peer) {
  return key_of(domain) + " " + peer.name;
}

Table processes(const std::vector<Sample>& samples) {
  Table table{{{"pid", Kind::Count}, {"program"}, {"process"}, {"domains", Kind::Count}}, {}};
  add_headings(table);
  std::map<std::string, std::pair<const view::Domain*, Sums>> found;
  for (const Sample& sample : samples) {
    auto& [domain, sums] = found[process_key(sample.domain)];
    domain = &sample.domain;
    add(sample, sums);
  }
  for (const auto& [key, value] : found) {
    const auto& [domain, sums] = value;
    Row row{key,
            {pid_of(*domain), text(domain->program), text(view::word_for(domain->owner)),
             count(sums.domains)},
            0};
    add_cells(sums, row);
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table domains(const std::vector<Sample>& samples, const std::string& process) {
  Table table{{{"address"}, {"pid", Kind::Count}, {"program"}, {"interface"}, {"nic"}}, {}};
  add_headings(table);
  for (const Sample& sample : samples) {
    const view::Domain& domain = sample.domain;
    if (!process.empty() && process_key(domain) != process) continue;
    Sums sums;
    add(sample, sums);
    Row row{key_of(domain),
            {text(domain.address), pid_of(domain), text(domain.program), text(domain.interface),
             text(domain.nic)},
            0};
    add_cells(sums, row);
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table peers(const std::vector<Sample>& samples, const std::string& domain) {
  Table table{{{"peer"},
               {"pid", Kind::Count},
               {"pdcs", Kind::Count},
               {"rtt", Kind::Time},
               {"window", Kind::Count},
               {"inflight", Kind::Count},
               {"sent_B/s", Kind::Rate},
               {"recv_B/s", Kind::Rate},
               {"again/s", Kind::Rate},
               {"marks/s", Kind::Rate},
               {"nacks/s", Kind::Rate},
               {"paths", Kind::Count},
               {"banned", Kind::Count},
               {"oldest", Kind::Time},
               {"silent", Kind::Time}},
              {}};
  for (const Sample& sample : samples) {
    if (!domain.empty() && key_of(sample.domain) != domain) continue;
    for (std::size_t i = 0; i < sample.domain.peers.size(); ++i) {
      table.rows.push_back(peer_row(sample, i));
    }
  }
  return table;
}

Table counters(const std::vector<Sample>& samples, const std::string& domain) {
  Table table{number_headings(), {}};
  for (const Sample& sample : samples) {
    if (key_of(sample.domain) != domain) continue;
    for (std::size_t i = 0; i < sample.domain.counters.size(); ++i) {
      const live::Counter& each = sample.domain.counters[i];
      if (each.value == 0) continue;
      table.rows.push_back(
          number_row(each.name, each.gauge, each.value, sample.counter_rates[i], each.meaning));
    }
  }
  return table;
}

Table numbers(const std::vector<Sample>& samples, const std::string& peer) {
  Table table{number_headings(), {}};
  const auto columns = view::peer_columns();
  for (const Sample& sample : samples) {
    for (std::size_t p = 0; p < sample.domain.peers.size(); ++p) {
      const view::Peer& each = sample.domain.peers[p];
      if (key_of(sample.domain, each) != peer) continue;
      for (std::size_t i = 0; i < columns.size(); ++i) {
        table.rows.push_back(number_row(columns[i].name, columns[i].gauge, each.values[i],
                                        sample.peer_rates[p][i], columns[i].meaning));
      }
    }
  }
  return table;
}

}  // namespace uet::top
