// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// See attestation.h.
#include "attestation/attestation.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <sstream>
#include <utility>

namespace uet::attestation {
namespace {

constexpr std::size_t kColumns = 6;
constexpr std::array<std::string_view, 3> kProfiles = {"AI Base", "AI Full", "HPC"};
constexpr std::array<std::string_view, 4> kWanted = {"must", "optional", "no", "open"};

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(' ') - first + 1));
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = 0; end != std::string_view::npos; begin = end + 1) {
    end = text.find(separator, begin);
    parts.push_back(trimmed(text.substr(begin, end - begin)));
  }
  return parts;
}

bool parse_cell(const std::string& text, Cell& cell) {
  const std::vector<std::string> words = split(text, ' ');
  const auto wanted = std::find(kWanted.begin(), kWanted.end(), words[0]);
  if (words.size() != 2 || wanted == kWanted.end()) return false;
  cell.wanted = static_cast<Wanted>(wanted - kWanted.begin());
  cell.have = words[1] == "yes";
  return cell.have || words[1] == "no";
}

bool parse_feature(const std::string& line, Feature& feature) {
  const std::vector<std::string> columns = split(line, '|');
  if (columns.size() != kColumns || columns[0].empty() || columns[5].empty()) return false;
  feature.name = columns[0];
  for (std::size_t i = 0; i < kProfiles.size(); ++i) {
    if (!parse_cell(columns[1 + i], feature.profiles[i])) return false;
  }
  if (columns[4] != "-") feature.tests = split(columns[4], ',');
  feature.setting = columns[5];
  return true;
}

bool is_there(const Feature& feature) {
  return std::any_of(feature.profiles.begin(), feature.profiles.end(),
                     [](const Cell& cell) { return cell.have; });
}

// The name in "FI_UET_TUNING=name=value"; empty for other settings.
std::string tuned_name(const std::string& setting) {
  constexpr std::string_view kTuning = "FI_UET_TUNING=";
  if (!setting.starts_with(kTuning)) return {};
  const std::string rest = setting.substr(kTuning.size());
  return rest.substr(0, rest.find('='));
}

void check_setting(const Feature& feature, const Tree& tree, Complaints& complaints) {
  if (feature.setting == "always") return;
  const std::string name = feature.setting.substr(0, feature.setting.find('='));
  if (!name.starts_with("FI_")) {
    complaints.push_back(feature.name + ": '" + feature.setting + "' is no setting");
  } else if (name.starts_with("FI_UET_") && !tree.parameters.contains(name)) {
    complaints.push_back(feature.name + ": there is no parameter " + name);
  } else if (const std::string tuned = tuned_name(feature.setting);
             !tuned.empty() && !tree.parameters.contains(tuned)) {
    complaints.push_back(feature.name + ": FI_UET_TUNING has no " + tuned);
  } else if (tree.manual.find(name) == std::string::npos) {
    complaints.push_back(feature.name + ": fi_uet(7) says nothing of " + name);
  }
}

// "TSS" to FI_UET_TSS: a feature may have the name of the parameter that turns it on.
std::string parameter_named_as(const std::string& feature) {
  std::string name = "FI_UET_" + feature;
  std::ranges::transform(name, name.begin(), [](unsigned char letter) {
    return letter == ' ' ? '_' : std::toupper(letter);
  });
  return name;
}

// Of a feature that no profile has.
void check_reason(const Feature& feature, const Tree& tree, Complaints& complaints) {
  const std::string parameter = parameter_named_as(feature.name);
  if (tree.parameters.contains(parameter)) {
    complaints.push_back(feature.name + ": no profile has it, and there is a parameter " +
                         parameter);
  }
  if (feature.setting.find("to be built") != std::string::npos) {
    complaints.push_back(feature.name + ": \"to be built\" is a plan, not a reason");
  }
}

std::string text_of(const Cell& cell) {
  if (cell.wanted == Wanted::No) return cell.have ? "not asked for: yes" : "not asked for";
  static constexpr std::array<std::string_view, 4> kWords = {"must", "optional", "", "open"};
  return std::string(kWords[static_cast<std::size_t>(cell.wanted)]) +
         (cell.have ? ": **yes**" : ": no");
}

}  // namespace

Matrix parse_matrix(std::string_view text) {
  Matrix matrix;
  std::set<std::string> names;
  std::string heading;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("## ")) {
      heading = line.substr(3);
      continue;
    }
    if (line.empty() || line[0] == '#') continue;
    Feature feature;
    if (!parse_feature(line, feature)) {
      matrix.complaints.push_back("not 'feature | 3 profiles | tests | setting': " + line);
      continue;
    }
    if (!names.insert(feature.name).second) {
      matrix.complaints.push_back("twice in the matrix: " + feature.name);
    }
    feature.heading = std::exchange(heading, {});
    matrix.features.push_back(std::move(feature));
  }
  return matrix;
}

void add_tests(std::string_view source, Tree& tree) {
  static const std::regex test(R"(TEST(?:_[FP])?\(\s*(\w+)\s*,\s*(\w+)\s*\))");
  const std::string text(source);
  for (std::sregex_iterator it(text.begin(), text.end(), test), end; it != end; ++it) {
    tree.tests.insert(it->str(1) + "." + it->str(2));
  }
}

void add_parameters(std::string_view params_source, Tree& tree) {
  static const std::regex row(R"re(\{"([a-z0-9_]+)",)re");
  const std::string text(params_source);
  for (std::sregex_iterator it(text.begin(), text.end(), row), end; it != end; ++it) {
    std::string variable = "FI_UET_" + it->str(1);
    std::ranges::transform(variable, variable.begin(),
                           [](unsigned char letter) { return std::toupper(letter); });
    tree.parameters.insert(variable);
    tree.parameters.insert(it->str(1));
  }
}

Complaints check(const Matrix& matrix, const Tree& tree) {
  Complaints complaints = matrix.complaints;
  if (matrix.features.empty()) complaints.push_back("the matrix is empty");
  for (const Feature& feature : matrix.features) {
    for (const std::string& test : feature.tests) {
      if (!tree.tests.contains(test)) {
        complaints.push_back(feature.name + ": there is no test " + test);
      }
    }
    if (is_there(feature)) {
      if (feature.tests.empty()) complaints.push_back(feature.name + ": no test shows it");
      check_setting(feature, tree, complaints);
    } else {
      if (!feature.tests.empty()) {
        complaints.push_back(feature.name + ": no profile has it, and a test shows it");
      }
      check_reason(feature, tree, complaints);
    }
  }
  return complaints;
}

std::string page_of(const Matrix& matrix) {
  std::size_t wanted = 0;
  std::size_t had = 0;
  for (const Feature& feature : matrix.features) {
    for (const Cell& cell : feature.profiles) {
      if (cell.wanted != Wanted::Must) continue;
      ++wanted;
      if (cell.have) ++had;
    }
  }
  std::ostringstream page;
  page << "<!-- made by scripts/attestation; do not edit -->\n# Self-attestation\n\n"
          "Which features of UET 1.0.3 uet has in which profile (`FI_UET_PROFILE=ai_base`, "
          "`ai_full`, `hpc`), the tests that show it, and the setting that turns it on.\n"
          "Only the authors of uet attest this; `docs/revision.md` says where the requirements "
          "are from. \"open\": the sources differ.\n\n"
          "Of "
       << wanted << " requirements (a feature that a profile must have) uet meets " << had << ".\n";
  for (const Feature& feature : matrix.features) {
    if (!feature.heading.empty()) {
      page << "\n## " << feature.heading << "\n| feature |";
      for (const std::string_view profile : kProfiles) page << " " << profile << " |";
      page << " tests | setting |\n| --- | --- | --- | --- | --- | --- |\n";
    }
    page << "| " << feature.name << " |";
    for (const Cell& cell : feature.profiles) page << " " << text_of(cell) << " |";
    page << " ";
    for (std::size_t i = 0; i < feature.tests.size(); ++i) {
      page << (i > 0 ? ", " : "") << "`" << feature.tests[i] << "`";
    }
    const bool name = feature.setting.starts_with("FI_");
    page << " | " << (name ? "`" : "") << feature.setting << (name ? "`" : "") << " |\n";
  }
  return page.str();
}

}  // namespace uet::attestation
