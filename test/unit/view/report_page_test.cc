// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The page of uet_report, read by an XML parser: labels are there, and no plot is empty. No browser
// looks at it: chromium is not among the packages that tests need (docs/dependencies.md).
#include "uet_report/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "uet_report/sections.h"
#include "uet_report/svg.h"
#include "unit/view/trace_harness.h"

namespace uet::report {
namespace {

using testing::HasSubstr;
using testing::Not;
using trace::Kind;

// Two packets that are acknowledged 20 us later with a mark, one that is lost, an operation.
live::TraceDump dump_with_traffic() {
  live::TraceDump dump = tracing::hanging_dump();
  const auto one = [](std::int64_t time, Kind kind, std::uint32_t psn, std::uint64_t a,
                      std::uint8_t detail = 0) {
    return trace::Record{
        .time_ns = time, .kind = kind, .detail = detail, .pdc = 0x4A21, .psn = psn, .a = a, .b = 0};
  };
  constexpr std::uint64_t kWindow = std::uint64_t{9000} << 32;
  dump.records = {one(0, Kind::Posted, 17, 8),
                  one(1'000, Kind::Sent, 1, tracing::kOnePacket + 4000),
                  one(21'000, Kind::AckReceived, 1, kWindow + 4000, 1),
                  one(30'000, Kind::Sent, 2, tracing::kOnePacket + 4000),
                  one(50'000, Kind::AckReceived, 2, kWindow),
                  one(60'000, Kind::Lost, 3, 5),
                  one(70'000, Kind::Ended, 17, 0)};
  return dump;
}

view::Domain domain_with_peer(const std::string& address, const std::string& peer) {
  view::Domain domain{};
  domain.pid = 4711;
  domain.program = "solver";
  domain.address = address;
  domain.peers.push_back({peer, std::vector<std::uint64_t>(view::peer_columns().size(), 3)});
  return domain;
}

// Python's XML parser prints the texts of each plot, EMPTY for one that draws nothing.
// marks.
constexpr const char* kParser = R"(python3 -c '
import sys, xml.etree.ElementTree as tree
svg = "{http://www.w3.org/2000/svg}"
page = tree.parse(sys.argv[1])
for plot in page.iter(svg + "svg"):
    drawn = [e for e in plot.iter() if e.tag[len(svg):] in ("polyline", "circle", "rect")]
    print("plot", "|".join(t.text or "" for t in plot.iter(svg + "text")), "" if drawn else "EMPTY")
for e in page.iter():
    if "href" in e.attrib or "src" in e.attrib or e.tag.endswith("script"): print("LOADS", e.tag)
' )";

std::string parsed(const std::string& text) {
  const auto file = std::filesystem::temp_directory_path() /
                    ("uet_report_" + std::to_string(::getpid()) + ".html");
  std::ofstream(file, std::ios::binary) << text;
  std::string out;
  FILE* const pipe = ::popen((kParser + file.string() + " 2>&1").c_str(), "r");
  char line[4096];
  while (pipe != nullptr && std::fgets(line, sizeof line, pipe) != nullptr) out += line;
  EXPECT_TRUE(pipe != nullptr && ::pclose(pipe) == 0) << out;
  std::filesystem::remove(file);
  return out;
}

TEST(ReportPage, Parser_FindsLabelsAndNoEmptyPlot) {
  if (std::system("python3 -c 'import xml.etree' 2>/dev/null") != 0) {
    GTEST_SKIP() << "python3 is not there to parse the page";
  }
  std::vector<Section> sections =
      domain_sections({domain_with_peer("10.0.0.1:4793", "10.0.0.2:4793"),
                       domain_with_peer("10.0.0.2:4793", "10.0.0.1:4793")});
  for (Section& one : trace_sections({dump_with_traffic()})) sections.push_back(std::move(one));
  const std::string out = parsed(page("a < b & \"c\"", sections));
  for (const char* title : {"plot Congestion window|", "plot Round trip time|", "plot Goodput|",
                            "plot Losses and marks|", "plot Latency of operations|",
                            "plot Traffic in bytes|", "plot Retransmitted packets|", "|seconds|",
                            "|Gb/s|", "|RTT ", "|ECN marks", "10.0.0.2:4793", "target (columns)"}) {
    EXPECT_THAT(out, HasSubstr(title));
  }
  EXPECT_THAT(out, Not(HasSubstr("EMPTY")));
  EXPECT_THAT(out, Not(HasSubstr("LOADS")));
}

TEST(ReportPage, Trace_RoundTripTimeAndGoodput) {
  const auto sections = trace_sections({dump_with_traffic()});
  ASSERT_EQ(sections.size(), 2U);
  EXPECT_THAT(sections[0].heading, HasSubstr("solver 4711, 10.0.0.1:4793: operations"));
  EXPECT_THAT(sections[0].figures.at(0), HasSubstr("&lt;128: 1"));  // 70 us
  EXPECT_THAT(sections[1].heading, HasSubstr("to 10.0.0.2:4793"));
  EXPECT_THAT(sections[1].figures.at(1), HasSubstr(">20</text>"));  // us, the top of the axis
}

TEST(ReportPage, NoNumbers_ASentenceInsteadOfAPlot) {
  EXPECT_EQ(line_chart({"RTT", "s", "us"}, {{"a", false, {}}}),
            "<p class=\"none\">RTT: the sources hold no such numbers.</p>\n");
  EXPECT_THAT(bar_chart({"B", "x", "y"}, {}), HasSubstr("no such numbers"));
  EXPECT_THAT(heat_map({"H", "x", "y"}, {"a"}, {"b"}, {{0}}), HasSubstr("no such numbers"));
}

TEST(ReportPage, Bench_BarsWithSpreadAndTarget) {
  const auto sections = bench_sections(R"({"machine": "m", "results": [
    {"metric": "lat 8", "unit": "us", "transport": "uet", "median": 2, "values": [1, 2, 4]},
    {"metric": "lat 8", "unit": "us", "transport": "tcp", "median": 8, "values": [8]}],
    "targets": [{"text": "half of tcp", "metric": "lat 8", "own": "uet", "other_metric": "lat 8",
                 "other": "tcp", "sign": "<=", "ratio": 0.5}]})");
  ASSERT_EQ(sections.size(), 1U);
  ASSERT_EQ(sections[0].figures.size(), 1U);
  const std::string& chart = sections[0].figures[0];
  EXPECT_THAT(chart, HasSubstr("half of tcp: 4</text>"));
  EXPECT_THAT(chart, HasSubstr("<line class=\"target\" x1=\"70.00\" y1=\"150.00\""));
  // From 1 to 4 of 8.
  EXPECT_THAT(chart, HasSubstr("y1=\"225.00\" x2=\"200.00\" y2=\"150.00\"/>"));
  EXPECT_THAT(chart, HasSubstr("uet: 2"));
  EXPECT_THROW(bench_sections("{\"results\": 1}"), std::runtime_error);
}

TEST(ReportPage, Texts_AreEscaped) {
  EXPECT_EQ(escape("<a href=\"x\">&\n"), "&lt;a href=&quot;x&quot;&gt;&amp;?");
  EXPECT_EQ(short_number(1'250'000), "1.25M");
}

}  // namespace
}  // namespace uet::report
