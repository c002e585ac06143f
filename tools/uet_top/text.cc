// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet_top/text.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace uet::top {

namespace {

constexpr std::size_t kHeights = 8;
constexpr std::array<const char*, kHeights + 1> kBlocks{
    " ", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"};
constexpr std::array<const char*, kHeights + 1> kSigns{" ", ".", ".", ":", ":", "|", "|", "#", "#"};

void put(std::string& line, const std::string& text, Kind kind, std::size_t width) {
  const std::string blanks(width - std::min(width, text.size()), ' ');
  if (!line.empty()) line += ' ';
  line += kind == Kind::Text ? text + blanks : blanks + text;
}

}  // namespace

std::vector<std::size_t> widths(const Table& table) {
  std::vector<std::size_t> width;
  for (const Heading& heading : table.headings) width.push_back(heading.name.size());
  for (const Row& row : table.rows) {
    for (std::size_t i = 0; i < width.size(); ++i) {
      width[i] = std::max(width[i], row.cells[i].text.size());
    }
  }
  return width;
}

std::string heading_line(const Table& table, const std::vector<std::size_t>& width) {
  std::string line;
  for (std::size_t i = 0; i < width.size(); ++i) {
    put(line, table.headings[i].name, table.headings[i].kind, width[i]);
  }
  return line;
}

std::string row_line(const Table& table, const Row& row, const std::vector<std::size_t>& width) {
  std::string line;
  for (std::size_t i = 0; i < width.size(); ++i) {
    put(line, row.cells[i].text, table.headings[i].kind, width[i]);
  }
  return line;
}

std::string bars(const std::deque<double>& values, std::size_t columns, bool utf8) {
  const auto& signs = utf8 ? kBlocks : kSigns;
  const std::size_t shown = std::min(columns, values.size());
  const auto first = values.end() - static_cast<std::ptrdiff_t>(shown);
  const double most = shown == 0 ? 0 : *std::max_element(first, values.end());
  std::string line(columns - shown, ' ');
  for (auto value = first; value != values.end(); ++value) {
    std::size_t height = 0;
    // Any traffic is seen, however small it is.
    if (*value > 0) {
      height = std::max<std::size_t>(1, static_cast<std::size_t>(*value / most * kHeights));
    }
    line += signs[height];
  }
  return line;
}

std::string to_text(const Table& table) {
  const std::vector<std::size_t> width = widths(table);
  std::string text = heading_line(table, width) + "\n";
  for (const Row& row : table.rows) text += row_line(table, row, width) + "\n";
  return text;
}

std::string to_json(const Table& table) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  for (const Row& row : table.rows) {
    Json one = Json::object();
    for (std::size_t i = 0; i < table.headings.size(); ++i) {
      const Heading& heading = table.headings[i];
      if (heading.kind == Kind::Text) {
        one[heading.name] = row.cells[i].text;
      } else {
        one[heading.name] = row.cells[i].number;
      }
    }
    rows.push_back(std::move(one));
  }
  return rows.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace uet::top
