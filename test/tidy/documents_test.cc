// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The documents of the tree (documents.h). Each check is first shown a bad example.
#include "tidy/documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "tidy/source_tree.h"

namespace uet::tidy {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const fs::path kSource = UET_SOURCE_DIR;
const Phrases kPhrases = {{"way", "A"}, {"nobody"}, {"in", "place", "of"}};

std::string read(const std::string& path) {
  const std::optional<std::string> text = read_file(kSource / path);
  EXPECT_TRUE(text.has_value()) << path;
  return text.value_or("");
}

// Markdown of the tree. docs/spec has tables of header layouts and its own tests; pages that a
// program makes are not ours to word.
std::vector<std::string> documents() {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(kSource)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".md")) files.push_back(name);
  }
  for (const char* folder : {"docs", "src", "prov", "netsim", "fabtests", "examples", "tools",
                             "test", "bench", "contrib"}) {
    for (std::string& file : files_under(kSource, folder)) {
      const bool other = file.starts_with("docs/spec/") || file == "docs/conformance.md";
      if (file.ends_with(".md") && !other) files.push_back(std::move(file));
    }
  }
  return files;
}

constexpr const char* kManuals[] = {"prov/uet/fi_uet.7",
                                    "tools/uet_doctor/uet_doctor.1",
                                    "tools/uet_keyd/uet_keyd.1",
                                    "tools/uet_keys/uet_keys.1",
                                    "tools/uet_probe/uet_probe.1",
                                    "tools/uet_run/uet_run.1",
                                    "tools/uet_stats/uet_stats.1",
                                    "tools/uet_top/uet_top.1",
                                    "tools/uet_exporter/uet_exporter.1",
                                    "tools/uet_trace/uet_trace.1",
                                    "tools/uet_copy/uet_copy.1",
                                    "tools/uet_report/uet_report.1"};

std::string listed(const Findings& findings) {
  std::string text;
  for (const std::string& finding : findings) text += "\n  " + finding;
  return text;
}

void append(Findings& to, const Findings& more) { to.insert(to.end(), more.begin(), more.end()); }

// --- bad examples -------------------------------------------------------------------------------

TEST(TidyCells, RefusesLongOnes) {
  const std::string most(kMaxCell, 'x');
  EXPECT_THAT(check_cells("a.md", "| a | " + most + " |\n"), IsEmpty());
  EXPECT_THAT(check_cells("a.md", "text\n| a | " + most + "x | b |\n"),
              ElementsAre(HasSubstr("a.md:2: a table cell has 161 characters")));
  EXPECT_THAT(check_cells("a.md", "```\n| " + most + "x |\n```\n"), IsEmpty());
  EXPECT_THAT(check_cells("a.md", "| a \\| " + most + " |\n"), SizeIs(1));
  std::string umlauts;
  for (std::size_t i = 0; i < kMaxCell; ++i) umlauts += "\xC3\xBC";
  EXPECT_THAT(check_cells("a.md", "| " + umlauts + " |\n"), IsEmpty());
}

TEST(TidyLinks, RefusesThoseToNoFile) {
  const auto exists = [](const std::string& path) { return path == "docs/a.md"; };
  EXPECT_THAT(
      check_links("docs/b.md", "[a](a.md) [a](a.md#part) [x](https://x.org) [y](#y)\n", exists),
      IsEmpty());
  EXPECT_THAT(check_links("docs/b.md", "\n[a](c.md)\n", exists),
              ElementsAre("docs/b.md:2: no file c.md"));
  EXPECT_THAT(check_links("b.md", "[a](a.md)\n", exists), SizeIs(1));
}

TEST(TidyNames, RefusesThoseThatTheManualLacks) {
  const std::string manual = ".B FI_UET_AB\nFI_UET_CD_1\npds_x_rod_ooo|y\n";
  EXPECT_THAT(
      check_names("a.md", "FI_UET_AB=1 `FI_UET_CD_*` XFI_UET_NO FI_UET_", "FI_UET_", manual),
      IsEmpty());
  EXPECT_THAT(check_names("a.md", "\nFI_UET_A and FI_UET_CD", "FI_UET_", manual),
              ElementsAre("a.md:2: FI_UET_A is not in the manual page",
                          "a.md:2: FI_UET_CD is not in the manual page"));
  EXPECT_THAT(check_names("a.md", "pds_x_* pds_y", "pds_", manual), SizeIs(1));
}

TEST(TidyWords, GlossaryNamesThem) {
  const Phrases phrases = words_to_avoid(
      "| no | x |\n## Words to avoid\n| avoid | write |\n| --- | --- |\n| way A, nobody | y |\n"
      "## More\n| no | x |\n");
  EXPECT_THAT(phrases, ElementsAre(ElementsAre("way", "A"), ElementsAre("nobody")));
}

TEST(TidyWords, RefusesPhrasesOutsideCode) {
  const auto found = [](const char* text) {
    return check_words("a.md", text, Markup::Markdown, kPhrases);
  };
  EXPECT_THAT(found("a\nNobody is there.\n"), ElementsAre(HasSubstr("a.md:2: 'nobody'")));
  EXPECT_THAT(found("b in place\nof c"), ElementsAre(HasSubstr("'in place of'")));
  EXPECT_THAT(found("it is way A."), SizeIs(1));
  EXPECT_THAT(found("in a way a word is"), IsEmpty());
  EXPECT_THAT(found("`nobody` and [x](nobody.md)\n```\nnobody\n```\n"), IsEmpty());
}

TEST(TidyWords, RefusesVagueSubjects) {
  const auto found = [](const char* text) {
    return check_words("a.md", text, Markup::Markdown, kPhrases);
  };
  EXPECT_THAT(found("What arrives is counted."), SizeIs(1));
  EXPECT_THAT(found("| a | Who waits |\n"), SizeIs(1));
  EXPECT_THAT(found("A packet. Those that wait leave."), SizeIs(1));
  EXPECT_THAT(found("What arrives?"), IsEmpty());
  EXPECT_THAT(found("It says what arrives. The peer who waits."), IsEmpty());
}

TEST(TidyWords, RefusesDoubleGenitives) {
  const auto found = [](const char* text) {
    return check_words("a.md", text, Markup::Markdown, kPhrases);
  };
  EXPECT_THAT(found("a call of the kernel's, which"), SizeIs(1));
  EXPECT_THAT(found("the size of the kernel's buffers"), IsEmpty());
}

TEST(TidyWords, ReadManualPages) {
  const auto found = [](const char* text) {
    return check_words("a.7", text, Markup::Manual, kPhrases);
  };
  EXPECT_THAT(found(".B nobody\nA send that\n.nf\nnobody\n.fi\n"), IsEmpty());
  EXPECT_THAT(found(".TP\nSent by nobody.\n"), ElementsAre(HasSubstr("a.7:2: 'nobody'")));
  EXPECT_THAT(found("pds_x|What was sent\n"), SizeIs(1));
}

TEST(TidyWords, ReadCommentsTextsAndTestNamesOfSources) {
  const auto found = [](const char* text) {
    return check_words("a.cc", text, Markup::Cpp, kPhrases);
  };
  EXPECT_THAT(found("int nobody = 0;  // in\n// place of\n"),
              ElementsAre(HasSubstr("a.cc:1: 'in place of'")));
  EXPECT_THAT(found("f();  // sends in\ng();\n// place of\n"), IsEmpty());
  EXPECT_THAT(found("x;  // What waits\n"), SizeIs(1));
  EXPECT_THAT(found("log(\"sent by nobody: %s\\n\", \"nobody\");\n"), SizeIs(1));
  EXPECT_THAT(found("log(\"done in \"\n    \"place of\");\n"), SizeIs(1));
  EXPECT_THAT(found("// `nobody`, \"http://nobody\"\n"), SizeIs(1));
  EXPECT_THAT(found("f(\"http://x\");\n"), IsEmpty());
  EXPECT_THAT(found("TEST_F(A, WhatIsSentArrives) {\n"), SizeIs(1));
  EXPECT_THAT(found("TEST(A, Pds4_NobodySends) {\n"), SizeIs(1));
  EXPECT_THAT(found("TEST(A, DataArrives) {\n"), IsEmpty());
}

TEST(TidyFirstWords, RefuseCellsThatNeedAnotherRow) {
  const auto found = [](const char* text, Markup markup = Markup::Markdown) {
    return check_first_words("a.md", text, markup);
  };
  EXPECT_THAT(found("| a | Its length |\n"), ElementsAre(HasSubstr("a.md:1: a table cell begins")));
  EXPECT_THAT(found("| a | the same |\n| also b | c |\n"), SizeIs(2));
  EXPECT_THAT(found("| item | orders; and the same |\n"), IsEmpty());
  EXPECT_THAT(found("It is text.\n```\n| it |\n```\n"), IsEmpty());
  EXPECT_THAT(found("pds_x|their bytes\n", Markup::Manual), SizeIs(1));
  EXPECT_THAT(found("pds_x|bytes sent\nAnd text.\n", Markup::Manual), IsEmpty());
}

TEST(TidyRefusals, NeedCallObjectProblemAndRemedy) {
  const auto found = [](const char* text) { return check_refusals("a.cc", text); };
  EXPECT_THAT(found("return refuse_mr(-1, \"fi_mr_reg: offset: not supported; pass 0\");\n"),
              IsEmpty());
  EXPECT_THAT(found("refuse_x(1, \"fi_send, fi_write: a: b \"\n    \"c; d\");\n"), IsEmpty());
  EXPECT_THAT(found("\nrefuse_x(1, \"endpoint: not enabled\");\n"),
              ElementsAre(HasSubstr("a.cc:2: 'endpoint: not enabled' is not")));
  EXPECT_THAT(found("refuse_x(1, \"fi_send: no object; do\");\n"), SizeIs(1));
  EXPECT_THAT(found("refuse_x(1, \"fi_send: a: no remedy\");\n"), SizeIs(1));
  EXPECT_THAT(found("refuse_x(1, c ? \"fi_a: b: c; d\" : \"none\");\n"), SizeIs(1));
  EXPECT_THAT(found("refuse_x(1, \"fi_send: \" + why);\nint refuse_x(int);\n"), IsEmpty());
}

TEST(TidyTestNames, RefusesLongOnes) {
  const auto found = [](const std::string& text) { return check_test_names("a.cc", text); };
  const std::string most(kMaxTestName - 6, 'x');
  EXPECT_THAT(found("TEST(Suite, Pds12_" + most + ") {\n"), IsEmpty());
  EXPECT_THAT(found("\nTEST(Suite, Pds12_" + most + "x) {\n"),
              ElementsAre(HasSubstr("a.cc:2: the name Pds12_" + most + "x has 46 characters")));
  EXPECT_THAT(found("TEST_P(Suite, Pds12_Ses3And4_Wire38_" + most + ") {\n"), IsEmpty());
  EXPECT_THAT(found("TEST_F(Suite, Pds12_Ses3_" + most + "x) {\n"), SizeIs(1));
  EXPECT_THAT(found("TYPED_TEST(Suite,\n     Pds12_" + most + "x) {\n"), SizeIs(1));
}

TEST(TidyWords, ReadCommentsAndTextsOfScripts) {
  const auto found = [](const char* text) {
    return check_words("a.sh", text, Markup::Script, kPhrases);
  };
  EXPECT_THAT(found("#!/bin/nobody\nnobody=1\n"), IsEmpty());
  EXPECT_THAT(found("x=1\n# sent in\n# place of y\n"),
              ElementsAre(HasSubstr("a.sh:2: 'in place of'")));
  EXPECT_THAT(found("# sent in\nx=1\n# place of y\n"), IsEmpty());
  EXPECT_THAT(found("run  # nobody waits\n"), SizeIs(1));
  EXPECT_THAT(found("echo \"sent by nobody\"\n"), SizeIs(1));
  EXPECT_THAT(found("option(A \"What waits is sent\" ON)\n"), SizeIs(1));
  EXPECT_THAT(found("chown \"nobody x\"\n"), IsEmpty());
}

TEST(TidyWords, BacklogOnlyShrinks) {
  const Backlog backlog = parse_backlog("# c\n3 a.md\n");
  EXPECT_THAT(backlog.complaints, IsEmpty());
  EXPECT_EQ(backlog.counts.at("a.md"), 3U);
  EXPECT_THAT(parse_backlog("a.md\n0 b.md\n1 c.md\n1 c.md\n").complaints, SizeIs(3));
  EXPECT_THAT(compare_with_backlog("a.md", 3, 3), IsEmpty());
  EXPECT_THAT(compare_with_backlog("a.md", 4, 3), HasSubstr("4 findings, 3 are allowed"));
  EXPECT_THAT(compare_with_backlog("a.md", 2, 3), HasSubstr("\"2 a.md\""));
}

// --- the tree -----------------------------------------------------------------------------------

TEST(TreeDocuments, CellsAreShort) {
  Findings findings;
  std::vector<std::string> files = documents();
  for (std::string& file : files_under(kSource, "docs/spec")) files.push_back(std::move(file));
  for (const std::string& file : files) append(findings, check_cells(file, read(file)));
  EXPECT_TRUE(findings.empty()) << listed(findings);
}

TEST(TreeDocuments, CellsStandAlone) {
  Findings findings;
  for (const std::string& file : documents()) {
    append(findings, check_first_words(file, read(file), Markup::Markdown));
  }
  for (const char* file : kManuals) {
    append(findings, check_first_words(file, read(file), Markup::Manual));
  }
  EXPECT_TRUE(findings.empty()) << listed(findings);
}

TEST(TreeDocuments, LinksLeadToFiles) {
  Findings findings;
  const auto exists = [](const std::string& path) { return fs::exists(kSource / path); };
  for (const std::string& file : documents()) {
    append(findings, check_links(file, read(file), exists));
  }
  EXPECT_TRUE(findings.empty()) << listed(findings);
}

// "src/pds" of src/pds/pdc.cc: the folder of C++ sources that has one number in the backlog.
std::string folder_of(const std::string& file) {
  const bool header = file.starts_with("include/uet/");
  const auto second =
      file.find('/', header ? std::string("include/uet/").size() : file.find('/') + 1);
  return file.substr(0, second == std::string::npos ? file.find('/') : second);
}

// Shell, Python and CMake.
std::vector<std::string> scripts() {
  std::vector<std::string> files = {"CMakeLists.txt", ".ci/run"};
  for (const char* tree : {"cmake", "scripts", "bench", "contrib", "netsim", "fabtests", "examples",
                           "tools", "test", "src", "prov"}) {
    for (std::string& file : files_under(kSource, tree)) {
      if (file.starts_with("test/fuzz/corpus/")) continue;
      const std::string name = file.substr(file.rfind('/') + 1);
      const bool is_script = name == "CMakeLists.txt" || name.ends_with(".cmake") ||
                             name.ends_with(".sh") || name.ends_with(".py") ||
                             name.find('.') == std::string::npos;
      if (is_script) files.push_back(std::move(file));
    }
  }
  return files;
}

TEST(TreeDocuments, WordsArePlain) {
  const Phrases phrases = words_to_avoid(read("docs/glossary.md"));
  ASSERT_THAT(phrases, testing::Contains(ElementsAre("nobody")));
  const Backlog backlog = parse_backlog(read("test/tidy/plain_words.txt"));
  std::map<std::string, Findings> findings;  // of a document, or of a folder of sources
  const auto look = [&](const std::string& file, Markup markup) {
    std::string text = read(file);
    if (file == "docs/glossary.md") text.resize(text.find("## Words to avoid"));
    append(findings[markup == Markup::Cpp ? folder_of(file) : file],
           check_words(file, text, markup, phrases));
  };
  for (const std::string& file : documents()) look(file, Markup::Markdown);
  for (const char* file : kManuals) look(file, Markup::Manual);
  for (const char* tree :
       {"include", "src", "prov", "netsim", "examples", "fabtests", "tools", "test"}) {
    for (const std::string& file : files_under(kSource, tree)) {
      const bool shows_bad_examples = file.starts_with("test/tidy/");
      if (is_cpp(file) && !shows_bad_examples) look(file, Markup::Cpp);
    }
  }
  for (const std::string& file : scripts()) look(file, Markup::Script);
  Findings complaints = backlog.complaints;
  for (const auto& [path, found] : findings) {
    const auto allowed = backlog.counts.find(path);
    const std::size_t most = allowed == backlog.counts.end() ? 0 : allowed->second;
    const std::string complaint = compare_with_backlog(path, found.size(), most);
    if (!complaint.empty()) complaints.push_back(complaint);
    if (found.size() > most) append(complaints, found);
  }
  for (const auto& [path, count] : backlog.counts) {
    if (!findings.contains(path)) complaints.push_back("plain_words.txt: there is no " + path);
  }
  EXPECT_TRUE(complaints.empty()) << listed(complaints);
}

TEST(TreeDocuments, RefusalsNameCallAndRemedy) {
  Findings findings;
  for (const std::string& file : files_under(kSource, "prov")) {
    if (is_cpp(file)) append(findings, check_refusals(file, read(file)));
  }
  EXPECT_TRUE(findings.empty()) << listed(findings);
}

TEST(TreeDocuments, TestNamesAreShort) {
  Findings findings;
  for (const char* tree : {"test", "fabtests", "examples", "tools", "netsim"}) {
    for (const std::string& file : files_under(kSource, tree)) {
      if (file.ends_with(".cc")) append(findings, check_test_names(file, read(file)));
    }
  }
  EXPECT_TRUE(findings.empty()) << listed(findings);
}

TEST(TreeDocuments, ParametersAndCountersExist) {
  const std::string manual = read("prov/uet/fi_uet.7");
  Findings findings;
  for (const std::string& file : documents()) {
    append(findings, check_names(file, read(file), "FI_UET_", manual));
  }
  for (const char* file : {"docs/debugging.md", "docs/tuning.md"}) {
    for (const char* prefix : {"pds_", "cms_", "ses_", "nic_"}) {
      append(findings, check_names(file, read(file), prefix, manual));
    }
  }
  EXPECT_TRUE(findings.empty()) << listed(findings);
}

TEST(TreeDocuments, ReadmeIsShortAndSaysFirstWhatThisIs) {
  const std::string text = read("README.md");
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 100);
  const std::string first = text.substr(0, text.find('\n'));
  EXPECT_THAT(first, HasSubstr("libfabric"));
  EXPECT_THAT(first, HasSubstr("Ultra Ethernet"));
}

TEST(TreeDocuments, DecisionsAreListedByNumber) {
  const std::string index = read("docs/decisions/README.md");
  Findings complaints;
  std::set<std::string> numbers;
  for (const std::string& file : files_under(kSource, "docs/decisions")) {
    const std::string name = fs::path(file).filename().string();
    if (name == "README.md") continue;
    const std::string number = name.substr(0, 3);
    if (!read(file).starts_with("# " + number + ": ")) complaints.push_back(file + ": title");
    if (!numbers.insert(number).second) complaints.push_back(file + ": number twice");
    if (index.find("](" + name + ")") == std::string::npos) {
      complaints.push_back(file + ": not in docs/decisions/README.md");
    }
  }
  EXPECT_FALSE(numbers.empty());
  EXPECT_TRUE(complaints.empty()) << listed(complaints);
}

}  // namespace
}  // namespace uet::tidy
