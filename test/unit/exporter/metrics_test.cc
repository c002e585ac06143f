// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Names, units, types and labels by the conventions of Prometheus.
#include "uet_exporter/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "fep/stats.h"
#include "unit/view/view_harness.h"

namespace uet::exporter {
namespace {

using testing::HasSubstr;
using testing::Not;
using view::make_domain;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
  return found;
}

TEST(Metrics, CountersEndWithTotal) {
  const Metric metric = metric_for("uet_", "pds_acks_sent", false);
  EXPECT_EQ(metric.name, "uet_pds_acks_sent_total");
  EXPECT_EQ(metric.type, Type::Counter);
  EXPECT_EQ(metric_for("uet_", "cms_window_bytes", true).name, "uet_cms_window_bytes");
}

TEST(Metrics, TimesAreSeconds) {
  const Metric metric = metric_for("uet_", "pds_blocked_by_nic_ns", false);
  EXPECT_EQ(metric.name, "uet_pds_blocked_by_nic_seconds_total");
  EXPECT_EQ(metric.factor, 1e-9);
  EXPECT_EQ(metric_for("uet_peer_", "rtt_ns", true).name, "uet_peer_rtt_seconds");
}

TEST(Metrics, NackCodeIsALabel) {
  const Metric metric = metric_for("uet_", "pds_nacks_sent_rod_ooo", false);
  EXPECT_EQ(metric.name, "uet_pds_nacks_sent_total");
  EXPECT_EQ(metric.code, "rod_ooo");
  EXPECT_EQ(metric_for("uet_peer_", "nacks_received_trimmed", false).name,
            "uet_peer_nacks_received_total");
}

// The names that promtool would find fault with.
TEST(Metrics, NoCounterOfAFepBreaksTheConventions) {
  for (const fep::CounterName& counter : fep::counter_names()) {
    const Metric metric = metric_for("uet_", std::string(counter.name), counter.gauge);
    EXPECT_EQ(metric.name.ends_with("_total"), !counter.gauge) << metric.name;
    for (const char* const unit : {"_ns", "_us", "_ms", "_ns_total", "_microseconds"}) {
      EXPECT_FALSE(metric.name.ends_with(unit)) << metric.name;
    }
  }
}

TEST(Exposition, HasSamplesWithLabelsAndUnits) {
  const std::string text = exposition({{make_domain()}, {"a page: is damaged"}}, {});
  EXPECT_THAT(text,
              HasSubstr("# HELP uet_pds_acks_sent_total ACKs sent\n"
                        "# TYPE uet_pds_acks_sent_total counter\n"
                        "uet_pds_acks_sent_total{pid=\"4711\",domain=\"10.0.0.1:4793\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE uet_cms_window_bytes gauge\n"));
  EXPECT_THAT(text, HasSubstr("uet_peer_rtt_seconds{pid=\"4711\",domain=\"10.0.0.1:4793\","
                              "peer=\"10.0.0.2:4793\"} 1.234e-05\n"));
  EXPECT_THAT(text, HasSubstr("uet_peer_nacks_received_total{pid=\"4711\",domain=\"10.0.0.1:4793\","
                              "peer=\"10.0.0.2:4793\",code=\"trimmed\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("nic=\"udp\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("uet_exporter_domains 1\n"));
  EXPECT_THAT(text, HasSubstr("uet_exporter_unreadable_pages 1\n"));
}

TEST(Exposition, SamplesOfANameStandTogetherAndAreDifferent) {
  view::Domain second = make_domain();
  second.address = "10.0.0.9:4793";
  const std::string text = exposition({{make_domain(), second}, {}}, {});
  std::istringstream lines(text);
  std::set<std::string> types;
  std::set<std::string> series;
  std::string current;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) {
      current = line.substr(7, line.rfind(' ') - 7);
      EXPECT_TRUE(types.insert(current).second) << current;
    }
    if (line.starts_with('#')) continue;
    EXPECT_EQ(line.substr(0, line.find_first_of("{ ")), current);
    EXPECT_TRUE(series.insert(line.substr(0, line.rfind(' '))).second) << line;
  }
  EXPECT_EQ(count(text, "\nuet_pds_acks_sent_total{"), 2U);
}

TEST(Exposition, EndedProcessesAndOlderPagesAreLeftOut) {
  view::Domain old = make_domain();
  old.opened_ns -= 1;
  old.counters[0].value = 1'111;
  view::Domain ended = make_domain();
  ended.pid = 9;
  ended.owner = live::Owner::Gone;
  const std::string text = exposition({{old, make_domain(), ended}, {}}, {});
  EXPECT_EQ(count(text, "\nuet_pds_acks_sent_total{"), 1U);
  EXPECT_THAT(text, Not(HasSubstr("1111")));
}

TEST(Exposition, PeersAreBounded) {
  view::Domain domain = make_domain();
  domain.peers.push_back(view::make_peer("10.0.0.3:4793"));
  EXPECT_EQ(count(exposition({{domain}, {}}, {.peers = 1}), "uet_peer_pdcs{"), 1U);
  EXPECT_THAT(exposition({{domain}, {}}, {.peers = 0}), Not(HasSubstr("uet_peer_")));
}

TEST(Exposition, LabelsAreEscaped) {
  view::Domain domain = make_domain();
  domain.program = "a\"b\\c";
  EXPECT_THAT(exposition({{domain}, {}}, {}), HasSubstr("program=\"a\\\"b\\\\c\""));
}

}  // namespace
}  // namespace uet::exporter
