// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Plots of results.json of scripts/bench.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "uet_report/sections.h"
#include "uet_report/svg.h"

namespace uet::report {

std::vector<Section> bench_sections(const std::string& json) {
  try {
    const auto whole = nlohmann::json::parse(json);
    std::vector<std::string> order;
    std::map<std::string, std::vector<Bar>> bars;  // by "metric, unit"
    std::map<std::string, std::string> units;
    std::map<std::string, std::map<std::string, double>> medians;  // by metric and transport
    for (const auto& row : whole.at("results")) {
      const auto metric = row.at("metric").get<std::string>();
      const auto transport = row.at("transport").get<std::string>();
      const auto values = row.at("values").get<std::vector<double>>();
      if (!bars.contains(metric)) order.push_back(metric);
      Bar bar{transport, row.at("median").get<double>()};
      if (!values.empty()) {
        bar.least = *std::min_element(values.begin(), values.end());
        bar.most = *std::max_element(values.begin(), values.end());
      }
      bars[metric].push_back(bar);
      units[metric] = row.at("unit").get<std::string>();
      medians[metric][transport] = bar.value;
    }
    std::map<std::string, std::vector<Target>> targets;
    for (const auto& mark : whole.value("targets", nlohmann::json::array())) {
      const auto other = medians[mark.at("other_metric")].find(mark.at("other"));
      const auto metric = mark.at("metric").get<std::string>();
      if (other == medians[mark.at("other_metric")].end()) continue;
      targets[metric].push_back({mark.at("text"), other->second * mark.at("ratio").get<double>()});
    }
    Section section{"Medians, with the least and the largest value of all rounds; " +
                        whole.value("machine", std::string("unknown machine")),
                    {}};
    for (const std::string& metric : order) {
      section.figures.push_back(
          bar_chart({metric, "transport", units[metric], 0}, bars[metric], targets[metric]));
    }
    return {section};
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(std::string("not the results of scripts/bench: ") + error.what());
  }
}

}  // namespace uet::report
