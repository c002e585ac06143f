// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The file of a sweep: which cases its lines mean, and what is refused.
#include "netsim/sweep_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace uet::netsim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

SweepFile read(const std::string& text) {
  std::istringstream in(text);
  return read_sweep(in);
}

TEST(SweepFile, ListsMultiplyOutLastOneFastest) {
  const SweepFile file =
      read("# comment\n\n  perm : --cc {nscc,swift} --seed {1..2}\r\nlone: -x\n");
  ASSERT_EQ(file.complaint, "");
  ASSERT_EQ(file.cases.size(), 5U);
  EXPECT_EQ(file.cases[0].name, "perm/nscc/1");
  EXPECT_EQ(file.cases[1].name, "perm/nscc/2");
  EXPECT_EQ(file.cases[2].name, "perm/swift/1");
  EXPECT_THAT(file.cases[2].options, ElementsAre("--cc", "swift", "--seed", "1"));
  EXPECT_EQ(file.cases[3].line, 3U);
  EXPECT_EQ(file.cases[4].name, "lone");
  EXPECT_EQ(file.cases[4].line, 4U);
}

TEST(SweepFile, RangesHaveSteps) {
  const SweepFile file = read("a: --hosts {10..30..10} --tune x={-1..0},y={0.5}\n");
  ASSERT_EQ(file.cases.size(), 6U);
  EXPECT_EQ(file.cases[5].name, "a/30/0/0.5");
  EXPECT_THAT(file.cases[5].options, ElementsAre("--hosts", "30", "--tune", "x=0,y=0.5"));
}

TEST(SweepFile, CommonOptionsComeFirstInLaterLines) {
  const SweepFile file = read("a: -a\nall: --hosts {2,3}\nb: -b\nall:\nc: -c\n");
  ASSERT_EQ(file.cases.size(), 4U);
  EXPECT_THAT(file.cases[0].options, ElementsAre("-a"));
  EXPECT_THAT(file.cases[2].options, ElementsAre("--hosts", "3", "-b"));
  EXPECT_EQ(file.cases[2].name, "b/3");
  EXPECT_THAT(file.cases[3].options, ElementsAre("-c"));
}

TEST(SweepFile, QuotesKeepBlanks) {
  const SweepFile file = read("a: --matrix \"my files/x.cm\" \"\"\n");
  ASSERT_EQ(file.cases.size(), 1U);
  EXPECT_THAT(file.cases[0].options, ElementsAre("--matrix", "my files/x.cm", ""));
}

TEST(SweepFile, RefusalNamesLineAndRemedy) {
  EXPECT_THAT(read("").complaint, HasSubstr("write lines NAME: OPTIONS"));
  EXPECT_THAT(read("a: -x\n--incast 3\n").complaint, HasSubstr("line 2: no name; write NAME:"));
  EXPECT_THAT(read("a b: -x\n").complaint, HasSubstr("line 1: name 'a b': has a blank"));
  EXPECT_THAT(read("a: -x\n\na: -y\n").complaint, HasSubstr("line 3: name 'a': a case has it"));
  EXPECT_THAT(read("a: {1, 2}\n").complaint, HasSubstr("line 1: {1,: { without }; write a list"));
  EXPECT_THAT(read("a: 1}\n").complaint, HasSubstr("} without {"));
  EXPECT_THAT(read("a: {1,,2}\n").complaint, HasSubstr("{1,,2} is no list; write {A,B,C}"));
  EXPECT_THAT(read("a: {5..1}\n").complaint, HasSubstr("{5..1} is no list"));
  EXPECT_THAT(read("a: {1..9..0}\n").complaint, HasSubstr("is no list"));
  EXPECT_THAT(read("a: \"x\n").complaint, HasSubstr("a \" is not closed"));
  EXPECT_THAT(read("a: {1..1000000000000}\n").complaint, HasSubstr("more than 100000 cases"));
  EXPECT_THAT(read("a: {1..1000} {1..1000} {1..1000}\n").complaint, HasSubstr("more than 100000"));
}

}  // namespace
}  // namespace uet::netsim
