// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The Grafana dashboard asks for nothing that the exporter does not show.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "fep/stats.h"
#include "uet_exporter/metrics.h"
#include "unit/view/view_harness.h"

namespace uet::exporter {
namespace {

using Json = nlohmann::json;

Json dashboard() {
  std::ifstream file(UET_SOURCE_DIR "/tools/uet_exporter/grafana.json");
  return Json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
}

struct Exported {
  std::set<std::string> names;
  std::set<std::string> labels{"instance"};  // Prometheus adds it
};

Exported exported() {
  view::Domain domain = view::make_domain();
  domain.counters.clear();
  for (const fep::CounterName& counter : fep::counter_names()) {
    domain.counters.push_back(
        {std::string(counter.name), std::string(counter.meaning), counter.gauge, 0});
  }
  Exported all;
  std::istringstream lines(exposition({{domain}, {}}, {}));
  const std::regex label("([a-z_]+)=\"");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    all.names.insert(line.substr(0, line.find_first_of("{ ")));
    for (std::sregex_iterator each(line.begin(), line.end(), label), end; each != end; ++each) {
      all.labels.insert((*each)[1]);
    }
  }
  return all;
}

void expect_exported(const std::string& query, const Exported& all) {
  const std::regex name("uet_[a-z0-9_]+");
  std::size_t names = 0;
  for (std::sregex_iterator each(query.begin(), query.end(), name), end; each != end; ++each) {
    ++names;
    EXPECT_TRUE(all.names.count(each->str())) << each->str() << " in " << query;
  }
  EXPECT_GT(names, 0U) << query;
  const std::regex label("([a-z_]+)=~");
  for (std::sregex_iterator each(query.begin(), query.end(), label), end; each != end; ++each) {
    EXPECT_TRUE(all.labels.count((*each)[1])) << (*each)[1] << " in " << query;
  }
}

TEST(Dashboard, QueriesNameWhatIsExported) {
  const Json board = dashboard();
  const Exported all = exported();
  ASSERT_FALSE(board.at("panels").empty());
  for (const Json& panel : board.at("panels")) {
    ASSERT_FALSE(panel.at("targets").empty()) << panel.at("title");
    for (const Json& target : panel.at("targets")) {
      expect_exported(target.at("expr"), all);
      const std::string legend = target.at("legendFormat");
      const std::regex label("\\{\\{([a-z_]+)\\}\\}");
      for (std::sregex_iterator each(legend.begin(), legend.end(), label), end; each != end;
           ++each) {
        EXPECT_TRUE(all.labels.count((*each)[1])) << (*each)[1] << " in " << legend;
      }
    }
  }
  for (const Json& variable : board.at("templating").at("list")) {
    if (variable.at("type") == "query") expect_exported(variable.at("definition"), all);
  }
}

// A counter is asked for its speed, a gauge is not.
TEST(Dashboard, RatesAreThoseOfCounters) {
  const Json board = dashboard();
  const std::regex rated("rate\\((uet_[a-z0-9_]+)");
  const std::regex total("uet_[a-z0-9_]+_total");
  for (const Json& panel : board.at("panels")) {
    for (const Json& target : panel.at("targets")) {
      const std::string query = target.at("expr");
      std::smatch found;
      const bool is_rate = std::regex_search(query, found, rated);
      if (is_rate) {
        EXPECT_TRUE(found[1].str().ends_with("_total")) << query;
      }
      EXPECT_EQ(is_rate, std::regex_search(query, total)) << query;
    }
  }
}

}  // namespace
}  // namespace uet::exporter
