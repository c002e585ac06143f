// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Plots as SVG elements. A plot without numbers becomes a sentence instead of empty axes. Must not
// know what the numbers mean.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace uet::report {

struct Series {
  std::string name;
  bool marks = false;  // a mark for each point; else a line through them
  std::vector<std::pair<double, double>> points;
};

struct Plot {
  std::string title;
  std::string x_label;
  std::string y_label;
  double x_end = 0;  // of line charts: the x axis leads at least to here, so that charts compare
};

// Lines and marks; both axes begin at 0 or at the least number, whichever is lower. Ticks are at 1,
// 2 or 5 times a power of ten, and the y axis ends at one.
std::string line_chart(const Plot& plot, const std::vector<Series>& series);

struct Bar {
  std::string label;
  double value = 0;
  double least = 0, most = 0;  // spread, a thin line; 0: not drawn
};
// A value to be reached: a dashed line across the chart.
struct Target {
  std::string label;
  double value = 0;
};
std::string bar_chart(const Plot& plot, const std::vector<Bar>& bars,
                      const std::vector<Target>& targets = {});

// values[row][column]; a cell of value 0 is white, the largest one is darkest.
std::string heat_map(const Plot& plot, const std::vector<std::string>& rows,
                     const std::vector<std::string>& columns,
                     const std::vector<std::vector<double>>& values);

// `text` with the characters that XML reserves replaced; other control characters become '?'.
std::string escape(const std::string& text);
// "1.5", "20k", "3.2M"
std::string short_number(double value);

}  // namespace uet::report
