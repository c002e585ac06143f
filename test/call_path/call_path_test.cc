// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The way of a write through the code: docs/architecture.md, section 6, lists the functions that
// are entered, and their number is bounded.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>

#include "call_path/frames.h"
#include "harness.h"

namespace uet::call_path {
namespace {

using e2e::check;
using e2e::Event;
using e2e::Node;
using e2e::Process;
using e2e::Region;
using e2e::require;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// ---- the parts ---------------------------------------------------------------------------------

TEST(ShortName, IsClassAndFunction) {
  EXPECT_EQ(short_name("uet::pds::Manager::send(uet::pds::Message&, long) const"), "Manager::send");
  EXPECT_EQ(short_name("uet::prov::(anonymous namespace)::rma_write(fid_ep*)"), "rma_write");
  EXPECT_EQ(short_name("long uet::prov::Endpoint::post<uet::Op, f(int)>(uet::Op&)"),
            "Endpoint::post");
  EXPECT_EQ(short_name("long uet::prov::Endpoint::post<uet::prov::f()::{lambda(int)#1}>(int)"),
            "Endpoint::post");
  EXPECT_EQ(short_name("main"), "main");
}

TEST(ParseSymbols, LambdasAreLeftOut) {
  const auto symbols = parse_symbols(
      "0x0000000000000010\nuet::A::f(int)::{lambda(int)#1}::operator()(int) const\n/t/src/a.cc:1\n"
      "long uet::A::g<uet::A::f(int)::{lambda(int)#1}>(uet::A::f(int)::{lambda(int)#1})\n"
      "/t/src/a.cc:2\nuet::A::f(int)::$_0::operator()(int) const\n/t/src/a.cc:3\noperator()\n"
      "/t/src/a.cc:4\n",
      "/t");
  EXPECT_THAT(symbols.at(0x10), ElementsAre(Frame{"A::g", "src/a.cc"}));
}

TEST(ParseSymbols, InlinedFunctionsStandBehindTheirCaller) {
  const auto symbols = parse_symbols(
      "0x0000000000000010\nuet::base::List::push()\n/t/include/uet/base/list.h:4\n"
      "std::move(int)\n/usr/include/c++/12/move.h:1\nuet::pds::Pdc::go()\n/t/src/pds/pdc.cc:7\n"
      "0x0000000000000020\n??\n??:0\nuet::of_another_tree()\n/tree/src/a.cc:2\n"
      "0x0000000000000030\nuet::f()\n/t/build/clang/../../src/a.cc:2 (discriminator 2)\n",
      "/t");
  EXPECT_THAT(symbols.at(0x10), ElementsAre(Frame{"Pdc::go", "src/pds/pdc.cc"},
                                            Frame{"List::push", "include/uet/base/list.h"}));
  EXPECT_THAT(symbols.at(0x20), IsEmpty());
  EXPECT_THAT(symbols.at(0x30), ElementsAre(Frame{"f", "src/a.cc"}));
}

TEST(CallStack, KnowsCallsFromPushes) {
  CallStack calls;
  calls.advance({0x100, 0x1000, 0});
  calls.advance({0x102, 0xff8, 0x7});  // push
  EXPECT_THAT(calls.call_sites(), IsEmpty());
  calls.advance({0x500, 0xff0, 0x107});  // call
  EXPECT_THAT(calls.call_sites(), ElementsAre(0x102));
  calls.advance({0x900, 0xff0, 0x107});  // jump to another function
  calls.advance({0x90a, 0xfe8, 0x905});  // call of the function behind the instruction
  EXPECT_THAT(calls.call_sites(), ElementsAre(0x102, 0x900));
  calls.advance({0x905, 0xff0, 0x107});  // return
  calls.advance({0x107, 0xff8, 0x7});    // return
  EXPECT_THAT(calls.call_sites(), IsEmpty());
}

TEST(ParseTables, TakesThoseBelowTheHeading) {
  const auto tables = parse_tables(
      "### A\n| function | file |\n| --- | --- |\n| `no` | `no` |\n### B\ntext\n"
      "| function | file | action |\n| --- | --- | --- |\n| `f` | `a.cc` | x |\n\n"
      "| function | file |\n| --- | --- |\n| `g` | `b.cc` |\n| other | table |\n### C\n| no | no "
      "|\n",
      "### B");
  EXPECT_THAT(tables,
              ElementsAre(Frames{{"f", "a.cc"}}, Frames{{"g", "b.cc"}, {"other", "table"}}));
}

TEST(Compare, TablesContinueEachOther) {
  const std::vector<Frames> entries = {{{"a", "1"}},
                                       {{"a", "1"}, {"b", "2"}},
                                       {{"a", "1"}, {"b", "2"}, {"c", "3"}},
                                       {{"a", "1"}, {"d", "4"}}};
  EXPECT_EQ(compare({{{"a", "1"}, {"b", "2"}, {"c", "3"}}, {{"d", "4"}}}, entries), "");
  EXPECT_THAT(compare({{{"a", "1"}, {"c", "3"}}}, entries),
              HasSubstr("rows:\n| `a` | `1` |\n| `b` | `2` |\n| `c` | `3` |\n"));
  EXPECT_THAT(compare({{{"a", "1"}, {"e", "3"}}}, entries), HasSubstr("e is not entered"));
  EXPECT_THAT(compare({{{"d", "9"}}}, entries), HasSubstr("| `d` | `4` |"));
  EXPECT_EQ(compare({{{"A::a", "1"}, {"d", "4"}}}, entries), "");
  EXPECT_THAT(compare({{{"a", "1"}, {"b", "2"}}}, {{{"A::a", "1"}}, {{"A::a", "1"}, {"b", "2"}}}),
              HasSubstr("| `A::a` |"));
}

// ---- the product -------------------------------------------------------------------------------

// The file of the plug-in in this process, and where it begins.
struct Module {
  std::string file;
  std::uint64_t base = 0;
};

Module find_plug_in() {
  Module found;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        if (std::strstr(info->dlpi_name, "libuet-fi.so") == nullptr) return 0;
        *static_cast<Module*>(out) = {info->dlpi_name, info->dlpi_addr};
        return 1;
      },
      &found);
  return found;
}

void store(const std::string& path, const std::vector<Step>& steps) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(steps.data()),
             static_cast<std::streamsize>(steps.size() * sizeof(Step)));
}

std::vector<Step> load(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(stream), {});
  std::vector<Step> steps(bytes.size() / sizeof(Step));
  std::memcpy(steps.data(), bytes.data(), steps.size() * sizeof(Step));
  return steps;
}

// The calls of an initiator whose peer is in the same process, over kernel UDP: a second write of
// few bytes, whose PDC both ends know, and the read of the CQ that returns the completion.
class Paths : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!kCanRecord) return;
    const std::string at = testing::TempDir() + "uet_call_path_" + std::to_string(::getpid());
    Process process("process", {{"FI_UET_LOCAL", "off"}}, [&] { record_write(at); });
    error_ = process.wait();
    std::ifstream module(at + ".module");
    Module plug_in;
    module >> plug_in.base >> plug_in.file;
    written_ = entries_of(load(at + ".write"), plug_in);
    completed_ = entries_of(load(at + ".read"), plug_in);
    for (const char* part : {".module", ".write", ".read"}) std::remove((at + part).c_str());
  }

  static void record_write(const std::string& at) {
    Node initiator;
    Node target;
    std::vector<std::byte> memory(64);
    std::vector<std::byte> data(8);
    const fi_addr_t to = initiator.insert(target.name());
    const Region region = target.expose(memory.data(), memory.size(), 7);
    const auto write = [&] {
      return fi_write(initiator.ep.get(), data.data(), data.size(), nullptr, to, region.address,
                      region.key, nullptr);
    };
    fi_cq_tagged_entry entry{};
    const auto read = [&] { return fi_cq_read(initiator.cq.get(), &entry, 1); };
    check(write(), "first write");
    while (read() == -FI_EAGAIN) target.keep_events();
    ssize_t result = 0;
    const std::vector<Step> written = record([&] { result = write(); });
    check(result, "second write");
    std::vector<Step> completed;
    for (result = -FI_EAGAIN; result == -FI_EAGAIN;) {
      target.keep_events();
      completed = record([&] { result = read(); });
    }
    require(result == 1, "the second write did not complete");
    const Module plug_in = find_plug_in();
    std::ofstream(at + ".module") << plug_in.base << " " << plug_in.file;
    store(at + ".write", written);
    store(at + ".read", completed);
  }

  static std::vector<Frames> entries_of(const std::vector<Step>& steps, const Module& module) {
    std::set<std::uint64_t> addresses;
    for (const Step& step : steps) {
      if (step.at - module.base < kMostBytes) addresses.insert(step.at - module.base);
    }
    const std::vector<std::uint64_t> list(addresses.begin(), addresses.end());
    return first_entries(steps, module.base, find_symbols(module.file, list, UET_SOURCE_DIR));
  }

  void SetUp() override {
    if (!kCanRecord) GTEST_SKIP() << "no steps can be recorded here";
    ASSERT_EQ(error_, "");
    if (written_.empty()) {
      GTEST_SKIP() << "the plug-in was built without debug information: build preset debug";
    }
    std::ifstream file(std::string(UET_SOURCE_DIR) + "/docs/architecture.md");
    document_.assign(std::istreambuf_iterator<char>(file), {});
  }

  static void expect_equal(const std::vector<Frames>& tables, const std::vector<Frames>& entries) {
    ASSERT_FALSE(tables.empty()) << "docs/architecture.md has no table of functions";
    const std::string difference = compare(tables, entries);
    if (!difference.empty()) ADD_FAILURE() << "docs/architecture.md: " << difference;
  }

  // At most so many functions in so many files. The numbers may only fall.
  void expect_short(const std::vector<Frames>& tables, std::size_t functions, std::size_t files) {
    std::set<std::string> all_functions;
    std::set<std::string> all_files;
    for (const Frames& table : tables) {
      for (const Frame& frame : table) {
        all_functions.insert(frame.function);
        all_files.insert(frame.file);
      }
    }
    EXPECT_LE(all_functions.size(), functions);
    EXPECT_LE(all_files.size(), files);
  }

  static constexpr std::uint64_t kMostBytes = 1 << 28;  // of a module
  static inline std::string error_;
  static inline std::vector<Frames> written_;
  static inline std::vector<Frames> completed_;
  std::string document_;
};

TEST_F(Paths, WriteGoesToTheNicAsTheDocumentTells) {
  const std::vector<Frames> tables = parse_tables(document_, "### Sending");
  expect_equal(tables, written_);
  expect_short(tables, 15, 9);
}

TEST_F(Paths, AckCompletesTheWriteAsTheDocumentTells) {
  const std::vector<Frames> tables = parse_tables(document_, "### Completing, at the initiator");
  expect_equal(tables, completed_);
  expect_short(tables, 12, 7);
}

}  // namespace
}  // namespace uet::call_path
