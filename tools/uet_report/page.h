// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Plots in one HTML file. The file is well-formed XML, has no script and loads
// nothing.
#pragma once

#include <string>
#include <vector>

namespace uet::report {

struct Section {
  std::string heading;
  std::vector<std::string> figures;  // of svg.h
};

std::string page(const std::string& title, const std::vector<Section>& sections);

}  // namespace uet::report
