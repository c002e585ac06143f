// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the probe has to say, as it finds it: one line for each step, indented ones for findings.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace uet::probe {

enum class Weight : std::uint8_t {
  Note,       // allowed, or not to be decided from outside
  Deviation,  // from revision 1.0.3, or from its description in the secondary sources
};

struct Finding {
  Weight weight;
  std::string step;  // during which it was found
  std::string rule;  // "PDS-104"; the references of docs/revision.md number them
  std::string text;
};

class Report {
 public:
  // `print` is given each line without its end; it may be empty.
  explicit Report(std::function<void(const std::string&)> print = {}) : print_(std::move(print)) {}

  void begin(std::string_view step) {
    step_ = step;
    line(step_ + ":");
  }
  void say(std::string_view text) { line("  " + std::string(text)); }
  void note(std::string_view rule, std::string_view text) { add(Weight::Note, rule, text); }
  void deviation(std::string_view rule, std::string_view text) {
    add(Weight::Deviation, rule, text);
  }

  const std::vector<Finding>& findings() const { return findings_; }
  std::size_t deviations() const;

 private:
  void add(Weight weight, std::string_view rule, std::string_view text);
  void line(const std::string& text) const {
    if (print_) print_(text);
  }

  std::function<void(const std::string&)> print_;
  std::string step_;
  std::vector<Finding> findings_;
};

}  // namespace uet::probe
