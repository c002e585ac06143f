// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Values of FI_UET_ variables and of FI_UET_TUNING: taken, or refused with a text that says what is
// allowed.
#include "settings/params.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <set>

namespace uet::prov {
namespace {

using testing::HasSubstr;

std::string refusal(const std::string& name, const std::string& value) {
  Params params;
  return set_param(params, name, value).value_or("taken");
}

// CMS-404: sockets are opened only where paths are chosen among.
TEST(Params, Cms404_SourcePortsFollowThePathsUnlessSaid) {
  Params params;
  EXPECT_EQ(source_ports(params), 1);
  EXPECT_EQ(set_param(params, "paths", "mixed"), std::nullopt);
  EXPECT_EQ(source_ports(params), 8);
  EXPECT_EQ(set_param(params, "udp_source_ports", "16"), std::nullopt);
  EXPECT_EQ(source_ports(params), 16);
  for (const char* wrong : {"3", "128", "x", "-1"}) {
    EXPECT_TRUE(set_param(params, "udp_source_ports", wrong).has_value()) << wrong;
  }
}

// Answers to one range would go to processes of the other (PeerPorts).
TEST(Params, Wire11_OwnPortsDoNotOverlapTheStandardsRange) {
  Params params;
  for (const char* good : {"4793", "1", "3769", "5849", "20000", "49150", "64512"}) {
    EXPECT_EQ(set_param(params, "udp_port", good), std::nullopt) << good;
    EXPECT_EQ(std::to_string(params.udp_port), good);
  }
  for (const char* wrong : {"", "0", "3770", "4792", "4794", "5848", "64513", "70000", "x"}) {
    EXPECT_THAT(refusal("udp_port", wrong), HasSubstr("4793, 1 to 3769")) << wrong;
  }
}

// Ignored where the program has more rights than its user.
TEST(Params, FilesAreNamedByFiveOfThem) {
  EXPECT_TRUE(names_file("pcap", "/tmp/a.pcapng"));
  EXPECT_TRUE(names_file("tss_keys", "/tmp/a"));
  EXPECT_TRUE(names_file("stats", "exit:/tmp/a"));
  EXPECT_TRUE(names_file("nic", "dpdk:net_memif,socket=/tmp/a"));
  EXPECT_TRUE(names_file("tuning", "@/tmp/a"));
  EXPECT_FALSE(names_file("tuning", "mpr=8"));
  EXPECT_FALSE(names_file("stats", "exit"));
  EXPECT_FALSE(names_file("nic", "packet"));
  EXPECT_FALSE(names_file("faults", "loss=1%"));
}

TEST(SetParam, TakesNumbersInBothNotations) {
  Params params;
  EXPECT_EQ(set_param(params, "mpr", "32"), std::nullopt);
  EXPECT_EQ(params.mpr, 32U);
  EXPECT_EQ(set_param(params, "job_id", "0xABCDEF"), std::nullopt);
  EXPECT_EQ(params.job_id, 0xABCDEFU);
}

TEST(SetParam, RefusalNamesVariableValueAndRange) {
  const std::string text = refusal("mpr", "33");
  EXPECT_THAT(text, HasSubstr("mpr=33 is not valid"));
  EXPECT_THAT(text, HasSubstr("0 to 32"));
}

TEST(SetParam, RefusesWhatIsNotANumber) {
  for (const char* value : {"", "abc", "1x", "-1", " 1", "0x", "18446744073709551616"}) {
    EXPECT_THAT(refusal("tx_size", value), HasSubstr("allowed: 16 to 8192")) << value;
  }
}

TEST(SetParam, PayloadMtuIsAPowerOfTwoOrZero) {
  for (const char* value : {"0", "1024", "2048", "4096", "8192"}) {
    EXPECT_EQ(refusal("payload_mtu", value), "taken") << value;
  }
  for (const char* value : {"512", "1500", "16384"}) {
    EXPECT_THAT(refusal("payload_mtu", value), HasSubstr("8192")) << value;
  }
}

TEST(SetParam, SwitchesTakeTheUsualWords) {
  Params params;
  for (const char* value : {"0", "no", "false", "off"}) {
    params.gso = true;
    EXPECT_EQ(set_param(params, "gso", value), std::nullopt);
    EXPECT_FALSE(params.gso) << value;
  }
  EXPECT_EQ(set_param(params, "gso", "yes"), std::nullopt);
  EXPECT_TRUE(params.gso);
  EXPECT_THAT(refusal("gro", "maybe"), HasSubstr("yes or no"));
}

TEST(SetParam, StatsSayWhenAndPerhapsWhere) {
  Params params;
  EXPECT_EQ(set_param(params, "stats", "exit"), std::nullopt);
  EXPECT_EQ(params.stats.when, StatsDump::When::Exit);
  EXPECT_EQ(params.stats.file, "");
  EXPECT_EQ(set_param(params, "stats", "signal:/tmp/a:b.%p"), std::nullopt);
  EXPECT_EQ(params.stats.when, StatsDump::When::Signal);
  EXPECT_EQ(params.stats.file, "/tmp/a:b.%p");
  EXPECT_EQ(set_param(params, "stats", "error:/tmp/e"), std::nullopt);
  EXPECT_EQ(params.stats.when, StatsDump::When::Error);
  EXPECT_EQ(set_param(params, "stats", "pages:/tmp/d"), std::nullopt);
  EXPECT_EQ(params.stats.when, StatsDump::When::Pages);
  EXPECT_EQ(params.stats.file, "/tmp/d");
  for (const char* value : {"", "pages", "pages:", "exit:", "signal:", "error:", "Exit",
                            "exit,signal", ":file", "exits"}) {
    EXPECT_THAT(refusal("stats", value), HasSubstr("exit, signal or error")) << value;
  }
}

// CMS-304.
TEST(FindConflict, NamesTheVariableOfTheTuning) {
  Params params;
  params.core.cms.tuning.pend_low = 0.8;
  EXPECT_THAT(find_conflict(params).value_or(""),
              HasSubstr("FI_UET_TUNING: cc_pend_low must be less"));
}

TEST(FindConflict, Pds219_MprZeroNeedsTheNumberThatItStandsFor) {
  Params params;
  EXPECT_EQ(set_param(params, "mpr_zero", "yes"), std::nullopt);
  EXPECT_THAT(find_conflict(params).value_or(""), HasSubstr("needs mpr_zero_psns"));
  EXPECT_EQ(set_param(params, "mpr_zero_psns", "1"), std::nullopt);
  EXPECT_EQ(find_conflict(params), std::nullopt);
}

// WIRE 1.3: what says "trimmed" must not be what packets are sent with.
TEST(FindConflict, DscpsOfTrimmedPacketsAreTheirOwn) {
  Params params;
  params.core.cms.trimming = true;
  EXPECT_EQ(find_conflict(params), std::nullopt);
  for (auto member : {&pds::Parameters::dscp_data, &pds::Parameters::dscp_control,
                      &pds::Parameters::dscp_datagram, &pds::Parameters::dscp_no_trim}) {
    for (auto mark : {&Params::dscp_trimmed, &Params::dscp_trimmed_lasthop}) {
      Params bad = params;
      bad.core.pds.*member = static_cast<std::uint8_t>(params.*mark);
      EXPECT_THAT(find_conflict(bad).value_or(""), HasSubstr("must differ"));
      bad.core.cms.trimming = false;
      EXPECT_EQ(find_conflict(bad), std::nullopt);
    }
  }
  params.dscp_trimmed = params.dscp_trimmed_lasthop;
  EXPECT_THAT(find_conflict(params).value_or(""), HasSubstr("must differ"));
}

TEST(SetParam, ChoicesAndFaults) {
  Params params;
  EXPECT_EQ(set_param(params, "cc_algorithm", "none"), std::nullopt);
  EXPECT_EQ(params.cc_algorithm, cms::Algorithm::None);
  EXPECT_EQ(set_param(params, "paths", "oblivious"), std::nullopt);
  EXPECT_EQ(params.paths, cms::PathPolicy::Oblivious);
  EXPECT_THAT(refusal("cc_algorithm", "cubic"), HasSubstr("none, nscc, rccc, both"));
  EXPECT_THAT(refusal("cc_algorithm", "tfc"), HasSubstr("TFC is not implemented"));  // CMS-312
  EXPECT_EQ(set_param(params, "cc_algorithm", "rccc"), std::nullopt);
  EXPECT_EQ(params.cc_algorithm, cms::Algorithm::Rccc);
  EXPECT_EQ(set_param(params, "cc_algorithm", "both"), std::nullopt);
  EXPECT_EQ(params.cc_algorithm, cms::Algorithm::Both);
  for (const cms::AlgorithmRow& row : cms::kAlgorithms) {
    EXPECT_EQ(set_param(params, "cc_algorithm", row.name), std::nullopt);
    EXPECT_EQ(params.cc_algorithm, row.algorithm) << row.name;
  }
  EXPECT_THAT(refusal("paths", "all"),
              HasSubstr("single, oblivious, round_robin, bitmap, reps or mixed"));
  EXPECT_EQ(refusal("faults", "loss=1%,seed=7"), "taken");
  EXPECT_THAT(refusal("faults", "loss=101%"), HasSubstr("FI_UET_FAULTS=loss=101%"));
}

// CMS 9: units and bounds of the numbers of congestion control.
TEST(SetParam, CongestionControlTakesDecimals) {
  Params params;
  EXPECT_EQ(set_param(params, "cc_gamma", "0.75"), std::nullopt);
  EXPECT_EQ(params.core.cms.tuning.gamma, 0.75);
  EXPECT_EQ(set_param(params, "cc_max_window_bdp", "2"), std::nullopt);
  EXPECT_EQ(params.core.cms.tuning.max_window_bdp, 2);
  EXPECT_EQ(set_param(params, "cc_reps_ring", "16"), std::nullopt);
  EXPECT_EQ(params.core.cms.tuning.reps_ring, 16);
  EXPECT_EQ(set_param(params, "cc_path_count", "256"), std::nullopt);
  EXPECT_EQ(params.core.cms.path_count, 256U);
}

TEST(SetParam, CongestionControlRefusesWhatIsOutOfRange) {
  for (const char* value : {"1.01", "-0.1", "1e-3", "nan", "inf", "", ".", "0.5x", "0,5"}) {
    EXPECT_THAT(refusal("cc_gamma", value), HasSubstr("allowed: 0 to 1")) << value;
  }
  EXPECT_THAT(refusal("cc_max_window_bdp", "0"), HasSubstr("cc_max_window_bdp=0 is not"));
  EXPECT_THAT(refusal("cc_max_window_bdp", "65"), HasSubstr("0.1 to 64"));
  EXPECT_THAT(refusal("cc_reps_ring", "0"), HasSubstr("whole numbers from 1 to 1024"));
  EXPECT_THAT(refusal("cc_reps_ring", "8.5"), HasSubstr("whole numbers from 1 to 1024"));
  EXPECT_THAT(refusal("cc_path_count", "1025"), HasSubstr("1 to 1024"));
  EXPECT_THAT(refusal("cc_synthetic_ecn", "2"), HasSubstr("yes or no"));
}

TEST(SetParam, UnknownNameIsSaidSo) {
  EXPECT_THAT(refusal("no_such_thing", "1"), HasSubstr("'no_such_thing' is not a parameter"));
}

// ---- FI_UET_TUNING -----------------------------------------------------------------------------

TEST(Tuning, SetsValuesOfBothTables) {
  Params params;
  EXPECT_EQ(set_param(params, "tuning", "rto_max_us=700, mpr=8 ,gro=no,,cc_gamma=0.5"),
            std::nullopt);
  EXPECT_EQ(params.core.pds.rto_cap, std::chrono::microseconds(700));
  EXPECT_EQ(params.mpr, 8U);
  EXPECT_FALSE(params.gro);
  EXPECT_EQ(params.core.cms.tuning.gamma, 0.5);
}

TEST(Tuning, RefusalNamesVariableParameterAndWhatIsAllowed) {
  EXPECT_EQ(refusal("tuning", "mpr=99"), "FI_UET_TUNING: mpr=99 is not valid; allowed: 0 to 32");
  EXPECT_EQ(refusal("tuning", "rto_maxus=1"),
            "FI_UET_TUNING: 'rto_maxus' is not a parameter; did you mean rto_max_us?");
  EXPECT_EQ(refusal("tuning", "rto_init_us=1000"),
            "FI_UET_TUNING: 'rto_init_us' is a variable of its own: set FI_UET_RTO_INIT_US=1000");
  EXPECT_THAT(refusal("tuning", "gro"), HasSubstr("allowed: name=value"));
  EXPECT_THAT(refusal("tuning", "tuning=gro=no"), HasSubstr("'tuning' is a variable of its own"));
}

TEST(Tuning, IsReadFromAFile) {
  const std::string path = testing::TempDir() + "uet_tuning_" + std::to_string(::getpid());
  std::ofstream(path) << "# as measured\nmpr=8\ncc_gamma=0.5, gro=no # not here\n";
  Params params;
  EXPECT_EQ(set_param(params, "tuning", "@" + path), std::nullopt);
  EXPECT_EQ(params.mpr, 8U);
  EXPECT_EQ(params.core.cms.tuning.gamma, 0.5);
  EXPECT_FALSE(params.gro);
  std::ofstream(path) << "mpr=99\n";
  EXPECT_EQ(refusal("tuning", "@" + path),
            "FI_UET_TUNING=@" + path + ": mpr=99 is not valid; allowed: 0 to 32");
  std::ofstream(path) << std::string(100'000, '#');
  EXPECT_THAT(refusal("tuning", "@" + path), HasSubstr("longer than 64 KiB"));
  std::remove(path.c_str());
  EXPECT_THAT(refusal("tuning", "@" + path), HasSubstr("No such file"));
  EXPECT_THAT(refusal("tuning", "@/dev/zero"), HasSubstr("not a regular file"));
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(refusal("tuning", "@" + path),
              HasSubstr("not a regular file"));  // and waits for none
  std::remove(path.c_str());
}

TEST(FindStray, TellsOldVariablesFromMisspeltOnes) {
  EXPECT_EQ(find_stray("FI_UET_RTO_INIT_US"), std::nullopt);
  EXPECT_EQ(find_stray("FI_UET_TUNING"), std::nullopt);
  EXPECT_EQ(find_stray("FI_UET_RTO_MAX_US"),
            "FI_UET_RTO_MAX_US is no longer a variable: set FI_UET_TUNING=rto_max_us=VALUE");
  EXPECT_EQ(find_stray("FI_UET_GRO"),
            "FI_UET_GRO is no longer a variable: set FI_UET_TUNING=gro=VALUE");
  EXPECT_THAT(find_stray("FI_UET_IFACES").value_or(""), HasSubstr("did you mean FI_UET_IFACE"));
  EXPECT_THAT(find_stray("FI_UET_CC_GAMA").value_or(""),
              HasSubstr("FI_UET_TUNING=cc_gamma=VALUE?"));
  EXPECT_EQ(find_stray("FI_UET_NOTHING_LIKE_IT"),
            "FI_UET_NOTHING_LIKE_IT is not a variable of the provider");
}

// The house, part 5: at most 30 variables; FI_UET_CORES is one more.
TEST(ParamTexts, AreFewVariablesAndEachStandsAlone) {
  std::set<std::string> names;
  int variables = 0;
  for (const ParamText& row : param_texts()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    variables += row.variable ? 1 : 0;
    EXPECT_TRUE(row.help.ends_with('.')) << row.name << ": " << row.help;
    EXPECT_FALSE(row.range.empty()) << row.name;
    EXPECT_FALSE(row.preset.empty()) << row.name;
    for (const char* word :
         {"It ", "Its ", "They ", "Their ", "Also ", "And ", "Or ", "The same", "Of these"}) {
      EXPECT_FALSE(row.help.starts_with(word)) << row.name << ": " << row.help;
    }
  }
  EXPECT_LE(variables, 31);
}

}  // namespace
}  // namespace uet::prov
