// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The page of uet-sim --report.
#include "netsim/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "netsim/run_line.h"

namespace uet::netsim {
namespace {

using testing::HasSubstr;
using testing::Not;

// The page of an incast of four hosts, with a sample for each `every_us`.
std::string page_of_incast(double every_us) {
  RunSetup setup;
  EXPECT_TRUE(parse_line("--incast 4 --hosts 8 --size 400000 --topology one-switch", setup).run);
  Network network(setup.network, setup.traffic);
  Report report;
  network.watch(static_cast<Picoseconds>(every_us * kPsPerUs),
                [&](const Sample& sample) { report.keep(sample); });
  network.run(setup.limit, nullptr);
  return report.html(outcome_of(network));
}

TEST(Report, Incast_HasItsPlots) {
  const std::string html = page_of_incast(1);
  for (const char* text :
       {"Congestion windows", "Longest queues", "Bytes in flight", "Goodput", "Flow completion",
        "Traffic in bytes", "<polyline", "host 0", "</html>"}) {
    EXPECT_THAT(html, HasSubstr(text));
  }
  EXPECT_THAT(html, Not(HasSubstr("windows: the sources hold no")));
}

TEST(Report, ManySamples_AreThinnedOut) {
  const std::string html = page_of_incast(0.01);
  const std::size_t begin = html.find("points=\"");
  ASSERT_NE(begin, std::string::npos);
  const std::string points = html.substr(begin, html.find('"', begin + 8) - begin);
  const auto count = std::count(points.begin(), points.end(), ',');
  EXPECT_GE(count, 1000);
  EXPECT_LE(count, 2000);
}

}  // namespace
}  // namespace uet::netsim
