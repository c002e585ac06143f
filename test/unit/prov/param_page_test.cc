// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The manual says what the tables of parameters say, and end-to-end tests set every variable.
#include "settings/param_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "settings/params.h"

namespace uet::prov {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::filesystem::path kSource = UET_SOURCE_DIR;

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string manual() { return read(kSource / "prov/uet/fi_uet.7"); }

// The text below ".B FI_UET_NAME" up to the next entry; its lines as one.
std::string entry_of(const std::string& page, const std::string& variable) {
  const std::string head = ".TP\n.B " + variable + "\n";
  const std::size_t begin = page.find(head);
  if (begin == std::string::npos) return {};
  const std::string rest = page.substr(begin + head.size());
  std::string text = rest.substr(0, std::min({rest.find("\n.TP"), rest.find("\n.S"), rest.size()}));
  std::ranges::replace(text, '\n', ' ');
  return text;
}

TEST(Manual, TuningIsWhatTheTablesSay) {
  const std::string page = manual();
  const std::size_t begin = page.find(kManualBegin);
  const std::size_t end = page.find(kManualEnd);
  ASSERT_NE(begin, std::string::npos) << kManualBegin;
  ASSERT_NE(end, std::string::npos) << kManualEnd;
  EXPECT_EQ(page.substr(begin, end + std::string(kManualEnd).size() - begin), tuning_in_manual())
      << "between these lines of fi_uet.7 belongs what `uet_parameters manual` prints";
}

TEST(Manual, EachVariableHasItsRangeAndDefault) {
  const std::string page = manual();
  std::size_t entries = 0;
  for (std::size_t at = 0; (at = page.find("\n.B FI_UET_", at)) != std::string::npos; ++at) {
    entries += page.compare(at - 3, 3, ".TP") == 0 ? 1 : 0;
  }
  std::size_t variables = 0;
  for (const ParamText& row : param_texts()) {
    if (!row.variable) continue;
    ++variables;
    const std::string name = variable_name(row.name);
    const std::string text = entry_of(page, name);
    ASSERT_NE(text, "") << "not in fi_uet.7: " << name;
    EXPECT_THAT(text, HasSubstr("Default: " + row.preset + ".")) << name;
    if (row.range.find_first_not_of("0123456789 to") == std::string::npos) {
      EXPECT_THAT(text, HasSubstr(row.range)) << name;
    }
  }
  EXPECT_EQ(entries, variables) << "fi_uet.7 has entries of variables that do not exist";
}

TEST(Manual, NamesOnlyVariablesThatExist) {
  const std::string header = read(kSource / "include/uet/fi_ext_uet.h");
  const auto names_in = [](const std::string& text) {
    static const std::regex kName("FI_UET_[A-Z0-9_]*[A-Z0-9]");
    return std::set<std::string>(std::sregex_token_iterator(text.begin(), text.end(), kName), {});
  };
  std::set<std::string> known = names_in(header);
  for (const ParamText& row : param_texts()) {
    if (row.variable) known.insert(variable_name(row.name));
  }
  for (const std::string& name : names_in(manual())) {
    EXPECT_TRUE(known.contains(name)) << name << " is neither a variable nor in fi_ext_uet.h";
  }
}

TEST(Markdown, ListsEveryParameter) {
  const std::string text = parameters_in_markdown();
  for (const ParamText& row : param_texts()) {
    const std::string name = row.variable ? variable_name(row.name) : row.name;
    EXPECT_THAT(text, HasSubstr("- `" + name + "` (" + row.range + "; default: " + row.preset));
  }
}

// Text in code type of docs/tuning.md that is no parameter, though it looks like one.
const std::set<std::string> kNoParameters = {"uet_doctor", "uet_top", "auth_key", "ai_base",
                                             "ai_full"};

// Names of the kind a_b in code type, without counters.
std::set<std::string> lower_names_in(const std::string& markdown) {
  static const std::regex name("`([a-z0-9]+(_[a-z0-9]+)+)`");
  static const std::regex counter("(pds|cms|ses|nic)_.*");
  std::set<std::string> names;
  for (std::sregex_iterator it(markdown.begin(), markdown.end(), name), end; it != end; ++it) {
    if (!std::regex_match(it->str(1), counter)) names.insert(it->str(1));
  }
  return names;
}

// The page says that parameters in lower case belong to FI_UET_TUNING.
TEST(TuningPage, NamesInLowerCaseAreOfTheTuning) {
  EXPECT_THAT(lower_names_in("`a_b`, c_d, `pds_x`, `FI_UET_A`, `e`"), ElementsAre("a_b"));
  std::set<std::string> tuning = kNoParameters;
  for (const ParamText& row : param_texts()) {
    if (!row.variable) tuning.insert(row.name);
  }
  const std::set<std::string> named = lower_names_in(read(kSource / "docs/tuning.md"));
  ASSERT_TRUE(named.contains("rto_retries"));
  for (const std::string& name : named) EXPECT_TRUE(tuning.contains(name)) << name;
}

// Each line up to its comment.
std::string without_comments(const std::string& text) {
  static const std::regex comment("(//|# ).*");
  return std::regex_replace(text, comment, "");
}

// A variable that no test sets may have been broken for long.
TEST(Variables, AreSetByEndToEndTests) {
  std::string tests;
  for (const char* directory : {"test/e2e", "test/nic"}) {
    for (const auto& entry : std::filesystem::directory_iterator(kSource / directory)) {
      if (entry.is_regular_file()) tests += without_comments(read(entry.path()));
    }
  }
  ASSERT_THAT(without_comments("a  // b=\n# c=\nd"), "a  \n\nd");
  std::set<std::string> unset;
  for (const ParamText& row : param_texts()) {
    const std::string name = variable_name(row.name);
    if (!row.variable || tests.find('"' + name + '"') != std::string::npos ||
        tests.find(name + "=") != std::string::npos) {
      continue;
    }
    unset.insert(name);
  }
  EXPECT_THAT(unset, IsEmpty());
}

}  // namespace
}  // namespace uet::prov
