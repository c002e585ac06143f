// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Names of tests, files and functions in the documents of the tree (references.h).
#include "tidy/references.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tidy/source_tree.h"

namespace uet::tidy {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const fs::path kSource = UET_SOURCE_DIR;

// --- bad examples -------------------------------------------------------------------------------

TEST(TidyReferences, FindsTestsOfASource) {
  EXPECT_THAT(tests_in("TEST(A, B) {}\nTEST_F(Suite, Pds4_Name) {\n}\nTEST_P(C,\n       D) {}\n"),
              ElementsAre("A.B", "C.D", "Suite.Pds4_Name"));
}

TEST(TidyReferences, RefusesTestsThatAreNotThere) {
  const std::set<std::string> tests = {"A1.B2"};
  EXPECT_THAT(check_test_names("a.md", "`A1.B2`, A1.B3, `A1.B2*`, `x.Y`\n", tests), IsEmpty());
  EXPECT_THAT(check_test_names("a.md", "\n| x | `A1.B2`; `A1.B3` |\n", tests),
              ElementsAre("a.md:2: no test is named A1.B3"));
}

TEST(TidyReferences, RefusesFilesThatAreNotThere) {
  const auto exists = [](const std::string& file) { return file == "pds/a.h" || file == "b.cc"; };
  const auto found = [&](const char* text) { return check_file_names("a.md", text, exists); };
  EXPECT_THAT(found("`pds/a.h` x.h `sys/socket.h` `src/NAME/x.cc`\n```\n`c.h`\n```\n"), IsEmpty());
  EXPECT_THAT(found("`pds/a.cc`, `run c.h`"),
              ElementsAre("a.md:1: there is no file pds/a.cc", "a.md:1: there is no file c.h"));
  EXPECT_THAT(found("`pds/a.h/.cc`"), ElementsAre("a.md:1: there is no file pds/a.cc"));
  EXPECT_THAT(found("`b.h/.cc`"), ElementsAre("a.md:1: there is no file b.h"));
}

TEST(TidyReferences, RefusesFunctionsThatAreNotThere) {
  std::set<std::string, std::less<>> words;
  add_words_of("class Pdc { void pump(); };", words);
  EXPECT_THAT(check_function_names("a.md", "`Pdc::pump` and Pdc::no\n", words), IsEmpty());
  EXPECT_THAT(check_function_names("a.md", "`x Pdc::no()`\n", words),
              ElementsAre("a.md:1: the sources have no Pdc::no"));
}

// --- the tree -----------------------------------------------------------------------------------

// Documents that describe the tree as it is: not the history, and not decisions, which keep the
// names of their time.
std::vector<std::string> documents() {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(kSource)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".md") && name != "CHANGELOG.md") files.push_back(name);
  }
  for (const char* folder :
       {"docs", "src", "prov", "netsim", "fabtests", "examples", "tools", "test", "contrib"}) {
    for (std::string& file : files_under(kSource, folder)) {
      if (file.ends_with(".md") && !file.starts_with("docs/decisions/")) {
        files.push_back(std::move(file));
      }
    }
  }
  return files;
}

std::string read(const std::string& file) {
  const std::optional<std::string> text = read_file(kSource / file);
  EXPECT_TRUE(text.has_value()) << file;
  return text.value_or("");
}

std::vector<std::string> sources() {
  std::vector<std::string> files;
  for (const char* folder :
       {"include", "src", "prov", "netsim", "examples", "fabtests", "tools", "test"}) {
    for (std::string& file : files_under(kSource, folder)) {
      if (is_cpp(file)) files.push_back(std::move(file));
    }
  }
  return files;
}

template <class Check>
void expect_none(Check check) {
  std::string listed;
  for (const std::string& file : documents()) {
    for (const std::string& finding : check(file, read(file))) listed += "\n  " + finding;
  }
  EXPECT_EQ(listed, "");
}

TEST(TreeReferences, TestsExist) {
  std::set<std::string> tests;
  for (const std::string& file : sources()) tests.merge(tests_in(read(file)));
  ASSERT_THAT(tests, testing::Contains("TreeReferences.TestsExist"));
  expect_none([&](const std::string& file, const std::string& text) {
    return check_test_names(file, text, tests);
  });
}

TEST(TreeReferences, FilesExist) {
  const std::vector<std::string> files = sources();
  const auto exists = [&](const std::string& name) {
    return std::any_of(files.begin(), files.end(), [&](const std::string& file) {
      return file == name || file.ends_with("/" + name);
    });
  };
  expect_none([&](const std::string& file, const std::string& text) {
    return check_file_names(file, text, exists);
  });
}

TEST(TreeReferences, FunctionsExist) {
  std::set<std::string, std::less<>> words;
  for (const std::string& file : sources()) add_words_of(read(file), words);
  expect_none([&](const std::string& file, const std::string& text) {
    return check_function_names(file, text, words);
  });
}

}  // namespace
}  // namespace uet::tidy
