// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Texts of parameters: numbers, lists of settings, and the names that a wrong one may stand for.
#include "base/parameter.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

namespace uet {
namespace {

constexpr std::size_t kMostNearNames = 3;
constexpr std::string_view kSpaces = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

// Letters to insert, delete, replace or swap with the next one.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t differs = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + differs});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::optional<std::uint64_t> parse_whole(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x")) {
    base = 16;
    text.remove_prefix(2);
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

std::optional<double> parse_real(std::string_view text) {
  if (text.find_first_not_of("0123456789.") != std::string_view::npos) return {};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

std::optional<bool> parse_switch(std::string_view text) {
  if (text == "1" || text == "yes" || text == "true" || text == "on") return true;
  if (text == "0" || text == "no" || text == "false" || text == "off") return false;
  return {};
}

std::string text_of(double value) {
  std::array<char, 64> text{};
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  return error == std::errc{} ? std::string(text.data(), end) : std::string();
}

std::vector<std::string> near_names(std::string_view wrong,
                                    std::span<const std::string_view> names) {
  const std::size_t most = std::max<std::size_t>(2, wrong.size() / 3);
  std::vector<std::pair<std::size_t, std::string_view>> found;
  // No name is longer than 64 letters: the work for one is bounded, whatever was given.
  if (wrong.size() > 64) return {};
  for (const std::string_view name : names) {
    const std::size_t distance = edit_distance(wrong, name);
    // "gamma" for "cc_gamma": a part of the name is near, too.
    const bool part = wrong.size() >= 4 && name.find(wrong) != std::string_view::npos;
    if (distance <= most || part) found.emplace_back(distance, name);
  }
  std::ranges::sort(found);
  std::vector<std::string> nearest;
  for (const auto& [distance, name] : found) {
    if (nearest.size() < kMostNearNames) nearest.emplace_back(name);
  }
  return nearest;
}

std::string near_names_text(std::string_view wrong, std::span<const std::string_view> names) {
  std::string text;
  for (const std::string& name : near_names(wrong, names)) {
    text += (text.empty() ? "; did you mean " : ", ") + name;
  }
  return text.empty() ? text : text + "?";
}

std::optional<std::string> for_each_setting(std::string_view list, const SetByName& set) {
  while (!list.empty()) {
    const std::size_t line_end = std::min(list.find('\n'), list.size());
    std::string_view line = list.substr(0, line_end);
    list.remove_prefix(std::min(line_end + 1, list.size()));
    line = line.substr(0, line.find('#'));
    while (!line.empty()) {
      const std::size_t end = std::min(line.find(','), line.size());
      const std::string_view item = trimmed(line.substr(0, end));
      line.remove_prefix(std::min(end + 1, line.size()));
      if (item.empty()) continue;
      const std::size_t equals = item.find('=');
      if (equals == std::string_view::npos) {
        return "'" + std::string(item) + "' is not valid; allowed: name=value";
      }
      auto why = set(trimmed(item.substr(0, equals)), trimmed(item.substr(equals + 1)));
      if (why) return why;
    }
  }
  return {};
}

}  // namespace uet
