// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The page of uet_report, read by an XML parser: labels are there, and no plot is empty. Chromium
// draws it where it is installed; it is not among the packages that tests need.
#include "uet_report/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

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

std::string output_of(const std::string& command) {
  std::string out;
  FILE* const pipe = ::popen(command.c_str(), "r");
  char line[4096];
  while (pipe != nullptr && std::fgets(line, sizeof line, pipe) != nullptr) out += line;
  EXPECT_TRUE(pipe != nullptr && ::pclose(pipe) == 0) << out;
  return out;
}

std::string parsed(const std::string& text) {
  const auto file = std::filesystem::temp_directory_path() /
                    ("uet_report_" + std::to_string(::getpid()) + ".html");
  std::ofstream(file, std::ios::binary) << text;
  const std::string out = output_of(kParser + file.string() + " 2>&1");
  std::filesystem::remove(file);
  return out;
}

// Python reads the screenshot (PNG, 8 bits for each of 3 or 4 channels) and prints for each colour
// of plots how many columns of pixels have it, then how many columns at the right edge are empty.
constexpr const char* kPixels = R"(python3 -c '
import struct, sys, zlib
data = open(sys.argv[1], "rb").read()
at, packed = 8, b""
while at < len(data):
    size, kind = struct.unpack(">I4s", data[at:at + 8])
    if kind == b"IHDR": width, height, _, form = struct.unpack(">IIBB", data[at + 8:at + 18])
    if kind == b"IDAT": packed += data[at + 8:at + 8 + size]
    at += 12 + size
step = 4 if form == 6 else 3
raw, line, last, count = zlib.decompress(packed), width * step, None, {}
right = 0
for y in range(height):
    way = raw[y * (line + 1)]
    row = bytearray(raw[y * (line + 1) + 1:(y + 1) * (line + 1)])
    up = last or bytearray(line)
    for i in range(line if way else 0):
        a, b, c = row[i - step] if i >= step else 0, up[i], up[i - step] if i >= step else 0
        if way == 1: add = a
        elif way == 2: add = b
        elif way == 3: add = (a + b) // 2
        else:
            p = a + b - c
            add = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
        row[i] = (row[i] + add) & 255
    last = row
    for i in range(0, line, step):
        colour = bytes(row[i:i + 3])
        if colour != b"\xff\xff\xff": right = max(right, i // step)
        count.setdefault(colour, set()).add(i)
for colour in ("0072b2", "d55e00", "2828ff"): print(colour, len(count.get(bytes.fromhex(colour), ())))
print("margin", width - 1 - right)
' )";

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

// A page with plots of each kind, and Chromium to draw it.
class Chromium {
 public:
  Chromium() {
    std::vector<Section> sections =
        domain_sections({domain_with_peer("10.0.0.1:4793", "10.0.0.2:4793")});
    for (Section& one : trace_sections({dump_with_traffic()})) sections.push_back(std::move(one));
    std::filesystem::create_directory(directory_);
    std::ofstream(directory_ / "page.html", std::ios::binary) << page("report", sections);
  }
  ~Chromium() { std::filesystem::remove_all(directory_); }
  Chromium(const Chromium&) = delete;
  Chromium& operator=(const Chromium&) = delete;

  std::string file(const std::string& name) const { return directory_ / name; }
  // Without loading anything. Returns what it prints.
  std::string draw(const std::string& options) const {
    return output_of("HOME=" + directory_.string() +
                     " timeout 60 chromium --headless --no-sandbox --disable-gpu "
                     "--hide-scrollbars --user-data-dir=" +
                     file("data") + " " + options + " file://" + file("page.html") +
                     " 2>/dev/null");
  }

 private:
  std::filesystem::path directory_ = std::filesystem::temp_directory_path() /
                                     ("uet_report_" + std::to_string(::getpid()) + ".chromium");
};

constexpr std::array kTitles = {"Congestion window", "Round trip time",       "Goodput",
                                "seconds",           "Latency of operations", "ECN marks"};

TEST(ReportPage, Chromium_DrawsEachPlotAt1280Pixels) {
  if (std::system("command -v chromium >/dev/null && python3 -c 'import zlib'") != 0) {
    GTEST_SKIP() << "chromium or python3 is not there to draw the page";
  }
  const Chromium chromium;
  const std::string dom =
      chromium.draw("--window-size=1280,1500 --dump-dom --screenshot=" + chromium.file("page.png"));
  for (const std::string text : kTitles) EXPECT_THAT(dom, HasSubstr(">" + text + "<"));
  std::map<std::string, int> columns;
  std::istringstream lines(output_of(kPixels + chromium.file("page.png")));
  std::string name;
  for (int number = 0; lines >> name >> number;) columns[name] = number;
  EXPECT_GT(columns["0072b2"], 200);  // bars
  EXPECT_GT(columns["d55e00"], 50);   // a second line and marks; the legends have 20
  EXPECT_GT(columns["2828ff"], 20);   // the darkest cell of a map
  EXPECT_GE(columns["margin"], 8);    // no plot is wider than the page
}

TEST(ReportPage, Chromium_PrintsEachPlot) {
  if (std::system("command -v chromium >/dev/null && command -v pdftotext >/dev/null") != 0) {
    GTEST_SKIP() << "chromium or pdftotext (Debian: poppler-utils) is not there to print the page";
  }
  const Chromium chromium;
  chromium.draw("--print-to-pdf=" + chromium.file("page.pdf"));
  const std::string print = output_of("pdftotext -layout " + chromium.file("page.pdf") + " -");
  for (const char* text : kTitles) EXPECT_THAT(print, HasSubstr(text));
}

TEST(ReportPage, Ticks_AreRoundNumbers) {
  const std::string chart =
      line_chart({"T", "s", "us", 0.02}, {{"a", false, {{0.001, 3}, {0.0173, 97}}}});
  for (const char* tick : {">0<", ">20<", ">100<", ">0.005<", ">0.02<"}) {
    EXPECT_THAT(chart, HasSubstr(tick));
  }
  EXPECT_THAT(chart, Not(HasSubstr(">97<")));
  EXPECT_THAT(chart, Not(HasSubstr(">-0<")));
}

TEST(ReportPage, FewBars_DoNotFillTheChart) {
  EXPECT_THAT(bar_chart({"B", "x", "y"}, {{"a", 1}}), HasSubstr("width=\"80.00\""));
}

TEST(ReportPage, LargeMap_LabelsSomeRowsAndColumns) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < 100; ++i) names.push_back("host-" + std::to_string(i) + "-end");
  const std::vector<std::vector<double>> values(names.size(), std::vector<double>(names.size(), 1));
  const std::string map = heat_map({"T", "x", "y"}, names, names, values);
  std::size_t labels = 0;
  for (std::size_t at = 0; (at = map.find("-end</text>", at)) != std::string::npos; ++at) ++labels;
  EXPECT_EQ(labels, 68U);  // each third of the rows and of the columns
  EXPECT_THAT(map, HasSubstr(">host-0-end</text>"));
  EXPECT_THAT(map, HasSubstr(">host-99-end</text>"));
}

TEST(ReportPage, Trace_RoundTripTimeAndGoodput) {
  const auto sections = trace_sections({dump_with_traffic()});
  ASSERT_EQ(sections.size(), 2U);
  EXPECT_THAT(sections[0].heading, HasSubstr("solver 4711, 10.0.0.1:4793: operations"));
  EXPECT_THAT(sections[0].figures.at(0), HasSubstr("&lt;128: 1"));  // 70 us
  EXPECT_THAT(sections[1].heading, HasSubstr("to 10.0.0.2:4793"));
  EXPECT_THAT(sections[1].figures.at(1), HasSubstr(">20</text>"));  // us, the top of the axis
}

// Packet 1 is answered after 40 us with a mark, packet 2 is sent twice.
TEST(ReportPage, Capture_RttGoodputAndRetransmissions) {
  const auto sent = [](std::int64_t time_ns, std::uint32_t psn, bool again = false) {
    tracing::CapturedPacket packet;
    packet.realtime_ns = time_ns;
    packet.source = "10.0.0.1";
    packet.destination = "10.0.0.2:4793";
    packet.pdc = 7;
    packet.psn = psn;
    packet.bytes = 5000;
    packet.has_psn = packet.request = true;
    packet.again = again;
    return packet;
  };
  const auto answer = [](std::int64_t time_ns, std::uint32_t psn, bool marked) {
    tracing::CapturedPacket packet;
    packet.realtime_ns = time_ns;
    packet.source = "10.0.0.2";
    packet.destination = "10.0.0.1:4793";
    packet.acked_pdc = 7;
    packet.acked_psn = packet.cack = psn;
    packet.ack = true;
    packet.marked = marked;
    return packet;
  };
  const tracing::Capture capture{.file = "a.pcap",
                                 .packets = {sent(0, 1), sent(1'000, 2), answer(40'000, 1, true),
                                             sent(50'000, 2, true), answer(90'000, 2, false)},
                                 .problem = ""};
  const auto sections = capture_sections({capture});
  ASSERT_EQ(sections.size(), 1U);
  EXPECT_EQ(sections[0].heading, "a.pcap: 10.0.0.1 to 10.0.0.2:4793");
  EXPECT_THAT(sections[0].figures.at(0), HasSubstr(">40</text>"));  // us, the only sample
  // 5,000 bytes in the last of 50 periods of 50 us.
  EXPECT_THAT(sections[0].figures.at(1), HasSubstr(">40</text>"));
  const std::string& losses = sections[0].figures.at(2);
  EXPECT_THAT(losses, HasSubstr("retransmitted packets"));
  EXPECT_THAT(losses, HasSubstr("ECN marks"));
  EXPECT_EQ(capture_sections({}).size(), 0U);
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
  EXPECT_THAT(chart, HasSubstr("y1=\"225.00\" x2=\"196.25\" y2=\"150.00\"/>"));
  EXPECT_THAT(chart, HasSubstr("uet: 2"));
  EXPECT_THROW(bench_sections("{\"results\": 1}"), std::runtime_error);
}

TEST(ReportPage, Texts_AreEscaped) {
  EXPECT_EQ(escape("<a href=\"x\">&\n"), "&lt;a href=&quot;x&quot;&gt;&amp;?");
  EXPECT_EQ(short_number(1'250'000), "1.25M");
}

}  // namespace
}  // namespace uet::report
