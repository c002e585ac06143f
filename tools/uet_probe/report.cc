// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "report.h"

#include <algorithm>

namespace uet::probe {

std::size_t Report::deviations() const {
  return static_cast<std::size_t>(
      std::count_if(findings_.begin(), findings_.end(),
                    [](const Finding& finding) { return finding.weight == Weight::Deviation; }));
}

// The same finding of the same step once: answers to repeated packets would say it again.
void Report::add(Weight weight, std::string_view rule, std::string_view text) {
  const bool said = std::any_of(findings_.begin(), findings_.end(), [&](const Finding& finding) {
    return finding.step == step_ && finding.rule == rule && finding.text == text;
  });
  if (said) return;
  findings_.push_back({weight, step_, std::string(rule), std::string(text)});
  const char* mark = weight == Weight::Deviation ? "  DEVIATION " : "  note ";
  line(mark + std::string(rule) + ": " + std::string(text));
}

}  // namespace uet::probe
