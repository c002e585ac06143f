// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "live_view/words.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace uet::view {

namespace {

struct Unit {
  double size;
  const char* name;
};

// Three digits and the largest unit of which there is one.
template <std::size_t Units>
std::string in_units(double value, const std::array<Unit, Units>& units) {
  const Unit* unit = &units[0];
  for (const Unit& each : units) {
    // 999.6 of a unit would be shown as 1000 of it.
    if (std::fabs(value) >= each.size * 0.9995) unit = &each;
  }
  const double number = value / unit->size;
  const double size = std::fabs(number);
  const bool whole = number == std::floor(number) && unit == &units[0];
  const int digits = whole || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  char text[32];
  std::snprintf(text, sizeof text, "%.*f%s", digits, number, unit->name);
  return text;
}

constexpr std::array<Unit, 7> kCounts{
    {{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}, {1e15, "P"}, {1e18, "E"}}};
constexpr std::array<Unit, 6> kTimes{
    {{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}, {3600e9, "h"}, {86400e9, "d"}}};

}  // namespace

std::string short_count(double value) { return in_units(value, kCounts); }

std::string short_time(double ns) { return ns == 0 ? "0" : in_units(ns, kTimes); }

std::string short_value(const std::string& name, double value) {
  return name.ends_with("_ns") ? short_time(value) : short_count(value);
}

}  // namespace uet::view
