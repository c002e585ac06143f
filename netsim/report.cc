// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "netsim/report.h"

#include <algorithm>
#include <map>

#include "uet_report/page.h"
#include "uet_report/svg.h"

namespace uet::netsim {

namespace {

using report::Bar;
using report::Series;

constexpr std::size_t kPeriods = 50;    // of goodput
constexpr std::size_t kMapHosts = 128;  // that a map shows

// A curve over all samples.
template <class Number>
Series curve(const std::string& name, const std::vector<Sample>& samples, const Number& number) {
  Series series{name, false, {}};
  for (const Sample& sample : samples) {
    series.points.emplace_back(sample.time_us, static_cast<double>(number(sample)));
  }
  return series;
}

// Bytes of flows that end within a period, over its length.
Series goodput_of(const Outcome& outcome) {
  Series series{"finished flows", false, {}};
  const double length = outcome.simulated_us() / kPeriods;
  if (length <= 0) return series;
  std::vector<double> bytes(kPeriods);
  for (std::size_t i = 0; i < outcome.flows.size(); ++i) {
    const FlowRecord& record = outcome.flows[i];
    if (record.finished == kPsNever) continue;
    const auto period =
        static_cast<std::size_t>(microseconds(record.finished - outcome.begin) / length);
    bytes[std::min(period, kPeriods - 1)] += static_cast<double>(outcome.traffic->flows[i].bytes);
  }
  for (std::size_t i = 0; i < kPeriods; ++i) {
    series.points.emplace_back(length * (static_cast<double>(i) + 0.5), bytes[i] * 8e-3 / length);
  }
  return series;
}

std::string completion_times(const Outcome& outcome) {
  std::map<int, double> counts;  // by power of two, in us
  for (const FlowRecord& record : outcome.flows) {
    if (record.finished == kPsNever) continue;
    int power = 0;
    while (microseconds(record.finished - record.started) >=
           static_cast<double>(std::int64_t{1} << power)) {
      ++power;
    }
    ++counts[power];
  }
  std::vector<Bar> bars;
  for (const auto& [power, count] : counts) {
    bars.push_back(
        {"<" + report::short_number(static_cast<double>(std::int64_t{1} << power)), count});
  }
  return report::bar_chart({"Flow completion times", "us", "flows"}, bars);
}

std::string traffic_map(const Outcome& outcome) {
  const std::size_t hosts = std::min<std::size_t>(outcome.hosts.size(), kMapHosts);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < hosts; ++i) names.push_back("host " + std::to_string(i));
  std::vector<std::vector<double>> bytes(hosts, std::vector<double>(hosts));
  for (const Flow& flow : outcome.traffic->flows) {
    if (flow.source < hosts && flow.destination < hosts) {
      bytes[flow.source][flow.destination] += static_cast<double>(flow.bytes);
    }
  }
  return report::heat_map({"Traffic in bytes", "destination", "source"}, names, names, bytes);
}

std::string retransmissions_of_hosts(const Outcome& outcome) {
  std::vector<std::pair<double, double>> points;
  double all = 0;
  for (std::size_t i = 0; i < outcome.hosts.size(); ++i) {
    const auto count = static_cast<double>(outcome.hosts[i].retransmissions());
    points.emplace_back(static_cast<double>(i), count);
    all += count;
  }
  if (all == 0) points.clear();
  return report::line_chart({"Retransmitted packets", "host", "packets"},
                            {{"retransmissions", true, points}});
}

}  // namespace

void Report::keep(const Sample& sample) {
  if (calls_++ % stride_ != 0) return;
  if (samples_.size() == kMostSamples) {
    for (std::size_t i = 0; 2 * i < kMostSamples; ++i) samples_[i] = samples_[2 * i];
    samples_.resize(kMostSamples / 2);
    stride_ *= 2;
    if ((calls_ - 1) % stride_ != 0) return;
  }
  samples_.push_back(sample);
}

std::string Report::html(const Outcome& outcome) const {
  const report::Section over_time{
      "Over time",
      {report::line_chart(
           {"Congestion windows", "us", "bytes"},
           {curve("mean", samples_, [](const Sample& s) { return s.window_mean; }),
            curve("smallest", samples_, [](const Sample& s) { return s.window_min; }),
            curve("largest", samples_, [](const Sample& s) { return s.window_max; })}),
       report::line_chart(
           {"Longest queues", "us", "bytes"},
           {curve("last hop", samples_, [](const Sample& s) { return s.queue_last_hop; }),
            curve("inside", samples_, [](const Sample& s) { return s.queue_inside; })}),
       report::line_chart(
           {"Bytes in flight", "us", "bytes"},
           {curve("in flight", samples_, [](const Sample& s) { return s.in_flight; })}),
       report::line_chart({"Goodput", "us", "Gb/s"}, {goodput_of(outcome)})}};
  const report::Section whole{
      "Whole run",
      {completion_times(outcome), retransmissions_of_hosts(outcome), traffic_map(outcome)}};
  return report::page("uet-sim report", {over_time, whole});
}

}  // namespace uet::netsim
