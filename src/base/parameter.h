// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A table of values that an operator may change: name, help, range and place of each. The default
// is what a value-initialised Target holds, so that it is written once. How the text comes in (a
// variable, a command line, a file) is for the host of the core.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "uet/base/time.h"

namespace uet {

// Digits, or 0x and hexadecimal digits; nothing else.
std::optional<std::uint64_t> parse_whole(std::string_view text);
// Digits with or without decimals, and nothing else: no sign, no exponent, no "inf".
std::optional<double> parse_real(std::string_view text);
// yes or no, 1 or 0, true or false, on or off.
std::optional<bool> parse_switch(std::string_view text);
std::string text_of(double value);

// The names that differ from `wrong` by a few letters, the nearest first, three at most.
std::vector<std::string> near_names(std::string_view wrong,
                                    std::span<const std::string_view> names);
// "; did you mean A, B?" or empty.
std::string near_names_text(std::string_view wrong, std::span<const std::string_view> names);

// Splits "name=value,name=value". Newlines separate as commas do, spaces around names and values
// and empty items are left out, '#' begins a comment to the end of its line. Calls `set` for each
// in order and stops at the first that it refuses with a text, which is returned. An item without
// '=' is refused.
using SetByName =
    std::function<std::optional<std::string>(std::string_view name, std::string_view value)>;
std::optional<std::string> for_each_setting(std::string_view list, const SetByName& set);

template <class Target>
struct Parameter {
  // Integers, and what is given as one: durations in a unit, rates.
  struct Whole {
    std::uint64_t (*read)(const Target&);
    void (*write)(Target&, std::uint64_t);
    std::uint64_t low;
    std::uint64_t high;
  };
  // With decimals, or only `whole` numbers.
  struct Real {
    double& (*at)(Target&);
    double low;
    double high;
    bool whole = false;
  };
  struct Switch {
    bool& (*at)(Target&);
  };
  // Anything else: `write` returns false if the value is not among `allowed`, a text that says what
  // is; `read` gives the present value, of a default one perhaps in words.
  struct Choice {
    bool (*write)(Target&, std::string_view);
    std::string (*read)(const Target&);
    const char* allowed;
  };

  const char* name;  // lower case, with its unit
  const char* help;  // one or more sentences that stand alone; range and default are added
  std::variant<Whole, Real, Switch, Choice> kind;
  bool variable = false;  // has a variable of its own (FI_UET_NAME), is not in FI_UET_TUNING
};

// The rows' access to a member: at<&A::b, &B::c> is target.b.c.
template <class Target, auto... Path>
constexpr auto& member_of(Target& target) {
  return (target.*....*Path);
}

template <class Target, auto... Path>
constexpr typename Parameter<Target>::Whole whole(std::uint64_t low, std::uint64_t high) {
  return {[](const Target& t) { return std::uint64_t{member_of<const Target, Path...>(t)}; },
          [](Target& t, std::uint64_t value) {
            auto& member = member_of<Target, Path...>(t);
            member = static_cast<std::remove_reference_t<decltype(member)>>(value);
          },
          low, high};
}

// In units of `Unit`, such as std::chrono::microseconds.
template <class Target, class Unit, auto... Path>
constexpr typename Parameter<Target>::Whole duration(std::uint64_t low, std::uint64_t high) {
  return {[](const Target& t) {
            return static_cast<std::uint64_t>(
                std::chrono::duration_cast<Unit>(member_of<const Target, Path...>(t)).count());
          },
          [](Target& t, std::uint64_t value) {
            member_of<Target, Path...>(t) = Unit(static_cast<typename Unit::rep>(value));
          },
          low, high};
}

template <class Target, auto... Path>
constexpr typename Parameter<Target>::Real real(double low, double high) {
  return {[](Target& t) -> double& { return member_of<Target, Path...>(t); }, low, high};
}

template <class Target, auto... Path>
constexpr typename Parameter<Target>::Real whole_real(double low, double high) {
  return {[](Target& t) -> double& { return member_of<Target, Path...>(t); }, low, high, true};
}

template <class Target, auto... Path>
constexpr typename Parameter<Target>::Switch on_off() {
  return {[](Target& t) -> bool& { return member_of<Target, Path...>(t); }};
}

template <class Target>
std::string range_text(const Parameter<Target>& row) {
  using P = Parameter<Target>;
  if (const auto* whole = std::get_if<typename P::Whole>(&row.kind)) {
    return std::to_string(whole->low) + " to " + std::to_string(whole->high);
  }
  if (const auto* real = std::get_if<typename P::Real>(&row.kind)) {
    return (real->whole ? "whole numbers from " : "") + text_of(real->low) + " to " +
           text_of(real->high);
  }
  if (const auto* choice = std::get_if<typename P::Choice>(&row.kind)) return choice->allowed;
  return "yes or no";
}

template <class Target>
std::string default_text(const Parameter<Target>& row) {
  using P = Parameter<Target>;
  Target preset{};
  if (const auto* whole = std::get_if<typename P::Whole>(&row.kind)) {
    return std::to_string(whole->read(preset));
  }
  if (const auto* real = std::get_if<typename P::Real>(&row.kind)) {
    return text_of(real->at(preset));
  }
  if (const auto* choice = std::get_if<typename P::Choice>(&row.kind)) return choice->read(preset);
  return std::get<typename P::Switch>(row.kind).at(preset) ? "yes" : "no";
}

// False if the value is not allowed; `target` may then be changed.
template <class Target>
bool set_value(Target& target, const Parameter<Target>& row, std::string_view text) {
  using P = Parameter<Target>;
  if (const auto* whole = std::get_if<typename P::Whole>(&row.kind)) {
    const auto value = parse_whole(text);
    if (!value || *value < whole->low || *value > whole->high) return false;
    whole->write(target, *value);
    return true;
  }
  if (const auto* real = std::get_if<typename P::Real>(&row.kind)) {
    std::optional<double> value = real->whole ? std::nullopt : parse_real(text);
    if (const auto count = real->whole ? parse_whole(text) : std::nullopt) {
      value = static_cast<double>(*count);
    }
    if (!value || *value < real->low || *value > real->high) return false;
    real->at(target) = *value;
    return true;
  }
  if (const auto* choice = std::get_if<typename P::Choice>(&row.kind)) {
    return choice->write(target, text);
  }
  const auto value = parse_switch(text);
  if (value) std::get<typename P::Switch>(row.kind).at(target) = *value;
  return value.has_value();
}

}  // namespace uet
