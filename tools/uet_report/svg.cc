// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet_report/svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace uet::report {

namespace {

constexpr double kWidth = 600, kHeight = 300;
constexpr double kLeft = 70, kRight = 575, kTop = 50, kBottom = 250;
constexpr int kTicks = 5;          // about as many
constexpr double kWidestBar = 80;  // few bars do not fill the chart
// Distinct for people who see few colours, and in grey print by their order of lightness.
constexpr std::array<const char*, 6> kColours{"#0072b2", "#d55e00", "#009e73",
                                              "#cc79a7", "#56b4e9", "#e69f00"};

std::string fixed(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

std::string text_at(double x, double y, const std::string& text, const char* anchor = "start",
                    const std::string& more = "") {
  return "<text x=\"" + fixed(x) + "\" y=\"" + fixed(y) + "\" text-anchor=\"" + anchor + "\"" +
         more + ">" + escape(text) + "</text>\n";
}

std::string rectangle(double x, double y, double width, double height, const std::string& fill,
                      const std::string& tip) {
  return "<rect x=\"" + fixed(x) + "\" y=\"" + fixed(y) + "\" width=\"" + fixed(width) +
         "\" height=\"" + fixed(height) + "\" fill=\"" + fill + "\"><title>" + escape(tip) +
         "</title></rect>\n";
}

std::string line(const char* kind, double x1, double y1, double x2, double y2) {
  return "<line class=\"" + std::string(kind) + "\" x1=\"" + fixed(x1) + "\" y1=\"" + fixed(y1) +
         "\" x2=\"" + fixed(x2) + "\" y2=\"" + fixed(y2) + "\"/>\n";
}

std::string begin(const Plot& plot, double width, double height) {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 " + fixed(width) +
         " " + fixed(height) + "\">\n" +
         text_at(width / 2, 18, plot.title, "middle", " class=\"title\"");
}

std::string nothing(const Plot& plot) {
  return "<p class=\"none\">" + escape(plot.title) + ": the sources hold no such numbers.</p>\n";
}

// A range of numbers along an axis.
struct Axis {
  double least = 0, most = 0;
  double from = 0, to = 0;  // places in the picture

  void include(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  double at(double value) const {
    return from + (to - from) * (value - least) / (most > least ? most - least : 1);
  }
  // Distance of the ticks: 1, 2 or 5 times a power of ten.
  double step() const {
    const double wanted = (most - least) / kTicks;
    if (!(wanted > 0)) return 1;
    const double power = std::pow(10, std::floor(std::log10(wanted)));
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor * power >= wanted * 0.999) return factor * power;
    }
    return 10 * power;
  }
  // Moves both ends outwards to a tick.
  void round() {
    const double by = step();
    least = std::floor(least / by) * by;
    most = std::max(std::ceil(most / by - 1e-9) * by, least + by);
  }
  std::vector<double> ticks() const {
    const double by = step();
    std::vector<double> out;
    for (double i = std::ceil(least / by - 1e-9); i * by <= most + by * 1e-6; ++i) {
      out.push_back(i * by + 0.0);  // no -0
    }
    return out;
  }
};

std::string vertical_axis(const Plot& plot, const Axis& axis) {
  std::string out;
  for (const double tick : axis.ticks()) {
    const double y = axis.at(tick);
    out += "<line class=\"grid\" x1=\"" + fixed(kLeft) + "\" x2=\"" + fixed(kRight) + "\" y1=\"" +
           fixed(y) + "\" y2=\"" + fixed(y) + "\"/>\n" +
           text_at(kLeft - 6, y + 4, short_number(tick), "end");
  }
  return out + text_at(14, (kTop + kBottom) / 2, plot.y_label, "middle",
                       " transform=\"rotate(-90 14 " + fixed((kTop + kBottom) / 2) + ")\"");
}

std::string horizontal_label(const Plot& plot) {
  return text_at((kLeft + kRight) / 2, kHeight - 8, plot.x_label, "middle");
}

std::string drawn(const Series& series, const Axis& x, const Axis& y, const char* colour) {
  std::string out;
  if (series.marks) {
    for (const auto& [px, py] : series.points) {
      out += "<circle cx=\"" + fixed(x.at(px)) + "\" cy=\"" + fixed(y.at(py)) +
             "\" r=\"3\" fill=\"" + colour + "\"/>\n";
    }
    return out;
  }
  out = "<polyline fill=\"none\" stroke-width=\"1.5\" stroke=\"" + std::string(colour) +
        "\" points=\"";
  for (const auto& [px, py] : series.points) out += fixed(x.at(px)) + "," + fixed(y.at(py)) + " ";
  return out + "\"/>\n";
}

}  // namespace

std::string escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c >= ' ' && c <= '~' ? c : '?';
    }
  }
  return out;
}

std::string short_number(double value) {
  constexpr std::array<const char*, 5> kUnits{"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  while (std::fabs(value) >= 1000 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.3g%s", value, kUnits[unit]);
  return text;
}

std::string line_chart(const Plot& plot, const std::vector<Series>& series) {
  Axis x{.from = kLeft, .to = kRight}, y{.from = kBottom, .to = kTop};
  bool any = false;
  for (const Series& one : series) {
    for (const auto& [px, py] : one.points) {
      x.include(px);
      y.include(py);
      any = true;
    }
  }
  if (!any) return nothing(plot);
  x.include(plot.x_end);
  y.round();
  std::string out = begin(plot, kWidth, kHeight) + vertical_axis(plot, y) + horizontal_label(plot);
  for (const double tick : x.ticks()) {
    out += text_at(x.at(tick), kBottom + 16, short_number(tick), "middle");
  }
  double legend = kLeft;
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (series[i].points.empty()) continue;
    const char* const colour = kColours[i % kColours.size()];
    out += drawn(series[i], x, y, colour) + rectangle(legend, 28, 10, 10, colour, series[i].name) +
           text_at(legend + 14, 37, series[i].name);
    legend += 24 + 7 * static_cast<double>(series[i].name.size());
  }
  return out + "</svg>\n";
}

std::string bar_chart(const Plot& plot, const std::vector<Bar>& bars,
                      const std::vector<Target>& targets) {
  Axis y{.from = kBottom, .to = kTop};
  for (const Bar& bar : bars) y.include(std::max(bar.value, bar.most));
  if (y.most <= 0) return nothing(plot);
  for (const Target& target : targets) y.include(target.value);
  y.round();
  std::string out = begin(plot, kWidth, kHeight) + vertical_axis(plot, y) + horizontal_label(plot);
  const double step = (kRight - kLeft) / static_cast<double>(bars.size());
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double x = kLeft + step * static_cast<double>(i);
    const double top = y.at(bars[i].value);
    const double width = std::min(step * 0.8, kWidestBar);
    out += rectangle(x + (step - width) / 2, top, width, kBottom - top, kColours[0],
                     bars[i].label + ": " + short_number(bars[i].value)) +
           text_at(x + step / 2, kBottom + 16, bars[i].label, "middle");
    if (bars[i].most > bars[i].least) {
      out += line("spread", x + step / 2, y.at(bars[i].least), x + step / 2, y.at(bars[i].most));
    }
  }
  for (const Target& target : targets) {
    const double at = y.at(target.value);
    out += line("target", kLeft, at, kRight, at) +
           text_at(kRight, at - 3, target.label + ": " + short_number(target.value), "end");
  }
  return out + "</svg>\n";
}

std::string heat_map(const Plot& plot, const std::vector<std::string>& rows,
                     const std::vector<std::string>& columns,
                     const std::vector<std::vector<double>>& values) {
  double most = 0;
  for (const auto& row : values) {
    for (const double value : row) most = std::max(most, value);
  }
  if (most <= 0) return nothing(plot);
  constexpr double kLabels = 150;
  const double cell =
      std::clamp(440 / static_cast<double>(std::max(rows.size(), columns.size())), 4.0, 40.0);
  const double height = kTop + cell * static_cast<double>(rows.size()) + kLabels;
  std::string out = begin(plot, kWidth, std::max(height, kHeight));
  // Labels need 10 pixels: of a large map each n-th row and column has one, and every cell has its
  // tooltip.
  const auto each = static_cast<std::size_t>(std::ceil(10 / cell));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const double y = kTop + cell * static_cast<double>(r);
    if (r % each == 0) out += text_at(kLabels - 4, y + cell / 2 + 4, rows[r], "end");
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const double share = std::max(0.0, values[r][c]) / most;
      const int light = static_cast<int>(std::lround(255 - 215 * share));
      char fill[16];
      std::snprintf(fill, sizeof fill, "#%02x%02xff", light, light);
      out += rectangle(kLabels + cell * static_cast<double>(c), y, cell, cell, fill,
                       rows[r] + " to " + columns[c] + ": " + short_number(values[r][c]));
    }
  }
  for (std::size_t c = 0; c < columns.size(); c += each) {
    const double x = kLabels + cell * (static_cast<double>(c) + 0.5);
    const double y = kTop + cell * static_cast<double>(rows.size()) + 8;
    out += text_at(x, y, columns[c], "end",
                   " transform=\"rotate(-60 " + fixed(x) + " " + fixed(y) + ")\"");
  }
  return out +
         text_at(kLabels, 38,
                 plot.y_label + " (rows) to " + plot.x_label +
                     " (columns); darkest: " + short_number(most)) +
         "</svg>\n";
}

}  // namespace uet::report
