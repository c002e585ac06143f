// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The matrix of the tree is true, and what is false in one is found.
#include "attestation/attestation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace uet::attestation {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Tree small_tree() {
  Tree tree;
  add_tests("TEST(A, Works) {}\nTEST_P(B,\n       AlsoWorks) {}\n", tree);
  add_parameters(
      "    {\"crc\",\n     \"help\", Switch{}},\n    {\"seed\", \"x\"},\n    {\"tuning\", "
      "\"x\"},\n",
      tree);
  tree.manual = "FI_UET_CRC FI_ORDER_SAS";
  return tree;
}

Complaints complaints_of(const std::string& line) {
  return check(parse_matrix(line), small_tree());
}

TEST(Attestation, OfThisTreeIsTrue) {
  const Matrix matrix = read_matrix(UET_SOURCE_DIR);
  EXPECT_THAT(check(matrix, read_tree(UET_SOURCE_DIR)), IsEmpty());
}

TEST(Attestation, NamesTheWholeMatrix) {
  const std::string page = page_of(read_matrix(UET_SOURCE_DIR));
  for (const char* feature :
       {"NO_OP",  "| SEND |",   "DATAGRAM_SEND", "| WRITE |",   "WRITE with immediate",
        "READ",   "Atomics, n", "Atomics, f",    "Rendezvous",  "Deferrable",
        "Tagged", "Relative",   "Absolute",      "Memory keys", "Standard",
        "Medium", "Small",      "RUD",           "ROD",         "RUDI",
        "UUD",    "Trimmed",    "NSCC",          "RCCC",        "TFC",
        "TSS",    "CRC",        "Over UDP",      "Native IP"}) {
    EXPECT_THAT(page, HasSubstr(feature));
  }
}

TEST(Attestation, TrueLinesAreTaken) {
  EXPECT_THAT(complaints_of("X | must yes | no no | open no | A.Works, B.AlsoWorks | always"),
              IsEmpty());
  EXPECT_THAT(complaints_of("X | no no | no no | must yes | A.Works | FI_UET_CRC=yes"), IsEmpty());
  EXPECT_THAT(complaints_of("X | no no | no no | must yes | A.Works | FI_ORDER_SAS"), IsEmpty());
  EXPECT_THAT(complaints_of("X | must no | no no | no no | - | its messages are not public"),
              IsEmpty());
}

TEST(Attestation, TestThatDoesNotExistIsFound) {
  EXPECT_THAT(complaints_of("X | must yes | no no | no no | A.Works, A.Fails | always"),
              ElementsAre("X: there is no test A.Fails"));
}

TEST(Attestation, SettingThatDoesNotExistIsFound) {
  EXPECT_THAT(complaints_of("X | must yes | no no | no no | A.Works | FI_UET_MAGIC=yes"),
              ElementsAre("X: there is no parameter FI_UET_MAGIC"));
  EXPECT_THAT(complaints_of("X | must yes | no no | no no | A.Works | FI_UET_TUNING=magic=yes"),
              ElementsAre("X: FI_UET_TUNING has no magic"));
  EXPECT_THAT(complaints_of("X | must yes | no no | no no | A.Works | FI_UET_SEED=1"),
              ElementsAre("X: fi_uet(7) says nothing of FI_UET_SEED"));
  EXPECT_THAT(complaints_of("X | must yes | no no | no no | A.Works | FI_OTHER"),
              ElementsAre("X: fi_uet(7) says nothing of FI_OTHER"));
  EXPECT_THAT(complaints_of("X | must yes | no no | no no | A.Works | somehow"),
              ElementsAre("X: 'somehow' is no setting"));
}

TEST(Attestation, YesWithoutATestIsFound) {
  EXPECT_THAT(complaints_of("X | must yes | no no | no no | - | always"),
              ElementsAre("X: no test shows it"));
  EXPECT_THAT(complaints_of("X | must no | no no | no no | A.Works | not public"),
              ElementsAre("X: no profile has it, and a test shows it"));
}

TEST(Attestation, UntrueReasonIsFound) {
  EXPECT_THAT(complaints_of("X | must no | no no | no no | - | to be built"),
              ElementsAre("X: \"to be built\" is a plan, not a reason"));
  EXPECT_THAT(complaints_of("CRC | optional no | no no | no no | - | not public"),
              ElementsAre("CRC: no profile has it, and there is a parameter FI_UET_CRC"));
}

TEST(Attestation, BrokenLinesAreFound) {
  for (const char* line : {"X", "X | must yes | no no | A.Works | always",
                           "X | maybe yes | no no | no no | A.Works | always",
                           "X | must perhaps | no no | no no | A.Works | always",
                           "X | must yes | no no | no no | A.Works |"}) {
    EXPECT_THAT(parse_matrix(line).complaints, Not(IsEmpty())) << line;
  }
  const std::string good = "X | must yes | no no | no no | A.Works | always\n";
  EXPECT_THAT(complaints_of(good + good), ElementsAre("twice in the matrix: X"));
  EXPECT_THAT(complaints_of("# nothing\n"), ElementsAre("the matrix is empty"));
}

TEST(Attestation, PageCountsWhatIsMet) {
  const std::string page = page_of(
      parse_matrix("## Part\nX | must yes | optional no | must no | A.Works | FI_UET_CRC=yes\n"));
  EXPECT_THAT(page,
              HasSubstr("Of 2 requirements (a feature that a profile must have) uet meets 1"));
  EXPECT_THAT(page, HasSubstr("| X | must: **yes** | optional: no | must: no | `A.Works` | "
                              "`FI_UET_CRC=yes` |"));
}

}  // namespace
}  // namespace uet::attestation
