// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet_exporter/metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace uet::exporter {

namespace {

constexpr std::string_view kNanoseconds = "_ns";
// The rest of such a name is a code of NACKs.
constexpr std::array<std::string_view, 3> kByCode{"pds_nacks_sent_", "pds_nacks_received_",
                                                  "nacks_received_"};

// All samples of one name, which Prometheus wants together.
struct Family {
  std::string name;
  std::string help;
  Type type = Type::Gauge;
  std::string samples;
};

class Text {
 public:
  void add(const Metric& metric, const std::string& help, const std::string& labels, double value) {
    const auto [found, is_new] = index_.try_emplace(metric.name, families_.size());
    if (is_new) {
      const std::string by_code = metric.code.empty() ? help : help.substr(0, help.find(','));
      families_.push_back({metric.name, by_code, metric.type, {}});
    }
    const std::string code = metric.code.empty() ? "" : ",code=\"" + metric.code + "\"";
    families_[found->second].samples +=
        metric.name + "{" + labels + code + "} " + text_of(value * metric.factor) + "\n";
  }
  // Without labels.
  void add(const std::string& name, const std::string& help, double value) {
    families_.push_back({name, help, Type::Gauge, name + " " + text_of(value) + "\n"});
  }
  std::string whole() const {
    std::string text;
    for (const Family& family : families_) {
      text += "# HELP " + family.name + " " + escaped(family.help, false) + "\n# TYPE " +
              family.name + (family.type == Type::Counter ? " counter\n" : " gauge\n") +
              family.samples;
    }
    return text;
  }

  static std::string escaped(const std::string& text, bool is_label) {
    std::string out;
    for (const char c : text) {
      if (c == '\\' || (is_label && c == '"')) out += '\\';
      if (c == '\n') {
        out += "\\n";
      } else {
        out += c;
      }
    }
    return out;
  }

 private:
  static std::string text_of(double value) {
    char text[40];
    std::snprintf(text, sizeof text, value == std::floor(value) ? "%.0f" : "%.9g", value);
    return text;
  }

  std::vector<Family> families_;
  std::unordered_map<std::string, std::size_t> index_;
};

std::string label(const std::string& name, const std::string& value) {
  return name + "=\"" + Text::escaped(value, true) + "\"";
}

std::string labels_of(const view::Domain& domain) {
  return label("pid", std::to_string(domain.pid)) + "," + label("domain", domain.address);
}

void add_domain(const view::Domain& domain, Text& text) {
  const std::string labels = labels_of(domain);
  const auto gauge = [&](const char* name, const char* help, double value) {
    text.add(Metric{.name = name, .type = Type::Gauge, .factor = 1, .code = {}}, help, labels,
             value);
  };
  text.add(Metric{.name = "uet_domain_info", .type = Type::Gauge, .factor = 1, .code = {}},
           "An open domain, its program, interface and NIC back end; always 1",
           labels + "," + label("program", domain.program) + "," +
               label("interface", domain.interface) + "," + label("nic", domain.nic),
           1);
  gauge("uet_domain_updated_timestamp_seconds", "When the domain wrote its numbers, since 1970",
        static_cast<double>(domain.updated_ns) / 1e9);
  gauge("uet_domain_peers", "Peers that the domain knows", static_cast<double>(domain.peers_known));
  for (const live::Counter& counter : domain.counters) {
    text.add(metric_for("uet_", counter.name, counter.gauge), counter.meaning, labels,
             static_cast<double>(counter.value));
  }
}

void add_peers(const view::Domain& domain, const Choice& choice, Text& text) {
  const auto columns = view::peer_columns();
  const std::size_t shown = std::min(choice.peers, domain.peers.size());
  for (std::size_t p = 0; p < shown; ++p) {
    const std::string labels = labels_of(domain) + "," + label("peer", domain.peers[p].name);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      text.add(metric_for("uet_peer_", columns[i].name, columns[i].gauge), columns[i].meaning,
               labels, static_cast<double>(domain.peers[p].values[i]));
    }
  }
}

// The domains to be shown, by PID and address.
std::vector<const view::Domain*> chosen(const view::Reading& reading) {
  std::map<std::pair<std::int64_t, std::string>, const view::Domain*> found;
  for (const view::Domain& domain : reading.domains) {
    if (domain.owner == live::Owner::Gone) continue;
    const view::Domain*& place = found[{domain.pid, domain.address}];
    if (place == nullptr || place->opened_ns < domain.opened_ns) place = &domain;
  }
  std::vector<const view::Domain*> domains;
  domains.reserve(found.size());
  for (const auto& [key, domain] : found) domains.push_back(domain);
  return domains;
}

}  // namespace

Metric metric_for(const std::string& prefix, const std::string& name, bool gauge) {
  Metric metric{.name = name, .type = gauge ? Type::Gauge : Type::Counter, .factor = 1, .code = {}};
  for (const std::string_view by_code : kByCode) {
    if (!name.starts_with(by_code)) continue;
    metric.code = name.substr(by_code.size());
    metric.name.resize(by_code.size() - 1);
  }
  if (metric.name.ends_with(kNanoseconds)) {
    metric.name.resize(metric.name.size() - kNanoseconds.size());
    metric.name += "_seconds";
    metric.factor = 1e-9;
  }
  metric.name = prefix + metric.name + (gauge ? "" : "_total");
  return metric;
}

std::string exposition(const view::Reading& reading, const Choice& choice) {
  Text text;
  text.add("uet_exporter_domains", "Domains of this user that are shown",
           static_cast<double>(chosen(reading).size()));
  text.add("uet_exporter_unreadable_pages", "Live pages that cannot be read",
           static_cast<double>(reading.problems.size()));
  for (const view::Domain* const domain : chosen(reading)) add_domain(*domain, text);
  for (const view::Domain* const domain : chosen(reading)) add_peers(*domain, choice, text);
  return text.whole();
}

}  // namespace uet::exporter
