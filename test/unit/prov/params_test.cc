// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Values of FI_UET_ variables: taken, or refused with a text that says what is allowed.
#include "params.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_EQ(set_param(params, "PATHS", "mixed"), std::nullopt);
  EXPECT_EQ(source_ports(params), 8);
  EXPECT_EQ(set_param(params, "UDP_SOURCE_PORTS", "16"), std::nullopt);
  EXPECT_EQ(source_ports(params), 16);
  for (const char* wrong : {"3", "128", "x", "-1"}) {
    EXPECT_TRUE(set_param(params, "UDP_SOURCE_PORTS", wrong).has_value()) << wrong;
  }
}

// Ignored where the program has more rights than its user.
TEST(Params, FilesAreNamedByThreeOfThem) {
  EXPECT_TRUE(names_file("PCAP", "/tmp/a.pcapng"));
  EXPECT_TRUE(names_file("STATS", "exit:/tmp/a"));
  EXPECT_TRUE(names_file("NIC", "dpdk:net_memif,socket=/tmp/a"));
  EXPECT_FALSE(names_file("STATS", "exit"));
  EXPECT_FALSE(names_file("NIC", "packet"));
  EXPECT_FALSE(names_file("FAULTS", "loss=1%"));
}

TEST(SetParam, TakesNumbersInBothNotations) {
  Params params;
  EXPECT_EQ(set_param(params, "MPR", "32"), std::nullopt);
  EXPECT_EQ(params.mpr, 32U);
  EXPECT_EQ(set_param(params, "JOB_ID", "0xABCDEF"), std::nullopt);
  EXPECT_EQ(params.job_id, 0xABCDEFU);
}

TEST(SetParam, RefusalNamesVariableValueAndRange) {
  const std::string text = refusal("MPR", "33");
  EXPECT_THAT(text, HasSubstr("FI_UET_MPR=33"));
  EXPECT_THAT(text, HasSubstr("0 to 32"));
}

TEST(SetParam, RefusesWhatIsNotANumber) {
  for (const char* value : {"", "abc", "1x", "-1", " 1", "0x", "18446744073709551616"}) {
    EXPECT_THAT(refusal("TX_SIZE", value), HasSubstr("allowed: 16 to 8192")) << value;
  }
}

TEST(SetParam, PayloadMtuIsAPowerOfTwoOrZero) {
  for (const char* value : {"0", "1024", "2048", "4096", "8192"}) {
    EXPECT_EQ(refusal("PAYLOAD_MTU", value), "taken") << value;
  }
  for (const char* value : {"512", "1500", "16384"}) {
    EXPECT_THAT(refusal("PAYLOAD_MTU", value), HasSubstr("8192")) << value;
  }
}

TEST(SetParam, SwitchesTakeTheUsualWords) {
  Params params;
  for (const char* value : {"0", "no", "false", "off"}) {
    params.gso = true;
    EXPECT_EQ(set_param(params, "GSO", value), std::nullopt);
    EXPECT_FALSE(params.gso) << value;
  }
  EXPECT_EQ(set_param(params, "GSO", "yes"), std::nullopt);
  EXPECT_TRUE(params.gso);
  EXPECT_THAT(refusal("GRO", "maybe"), HasSubstr("yes or no"));
}

TEST(SetParam, StatsSayWhenAndPerhapsWhere) {
  Params params;
  EXPECT_EQ(set_param(params, "STATS", "exit"), std::nullopt);
  EXPECT_EQ(params.stats.when, StatsDump::When::Exit);
  EXPECT_EQ(params.stats.file, "");
  EXPECT_EQ(set_param(params, "STATS", "signal:/tmp/a:b.%p"), std::nullopt);
  EXPECT_EQ(params.stats.when, StatsDump::When::Signal);
  EXPECT_EQ(params.stats.file, "/tmp/a:b.%p");
  for (const char* value : {"", "exit:", "signal:", "Exit", "exit,signal", ":file", "exits"}) {
    EXPECT_THAT(refusal("STATS", value), HasSubstr("exit, signal, exit:file")) << value;
  }
}

// CMS-304, CMS-231.
TEST(FindConflict, LimitsOfTheDestinationComeInTheirOrder) {
  Params params;
  params.cc.pend_low = 0.8;
  EXPECT_THAT(find_conflict(params).value_or(""), HasSubstr("FI_UET_CC_PEND_LOW must be less"));
  params = {};
  params.cc.restore_below = 0.3;
  EXPECT_THAT(find_conflict(params).value_or(""), HasSubstr("FI_UET_CC_RESTORE_BELOW"));
  params = {};
  params.cc.backlog_low_bytes = 5e6;
  EXPECT_THAT(find_conflict(params).value_or(""), HasSubstr("FI_UET_CC_BACKLOG_LOW_BYTES"));
}

// WIRE 1.3: what says "trimmed" must not be what packets are sent with.
TEST(FindConflict, DscpsOfTrimmedPacketsAreTheirOwn) {
  Params params;
  params.cc_trimming = true;
  EXPECT_EQ(find_conflict(params), std::nullopt);
  for (auto member : {&Params::dscp_data, &Params::dscp_control, &Params::dscp_datagram}) {
    for (auto mark : {&Params::dscp_trimmed, &Params::dscp_trimmed_lasthop}) {
      Params bad = params;
      bad.*member = params.*mark;
      EXPECT_THAT(find_conflict(bad).value_or(""), HasSubstr("must differ"));
      bad.cc_trimming = false;
      EXPECT_EQ(find_conflict(bad), std::nullopt);
    }
  }
  params.dscp_trimmed = params.dscp_trimmed_lasthop;
  EXPECT_THAT(find_conflict(params).value_or(""), HasSubstr("must differ"));
}

TEST(SetParam, ChoicesAndFaults) {
  Params params;
  EXPECT_EQ(set_param(params, "CC_ALGORITHM", "none"), std::nullopt);
  EXPECT_EQ(params.cc_algorithm, cms::Algorithm::None);
  EXPECT_EQ(set_param(params, "PATHS", "oblivious"), std::nullopt);
  EXPECT_EQ(params.paths, cms::PathPolicy::Oblivious);
  EXPECT_THAT(refusal("CC_ALGORITHM", "cubic"), HasSubstr("nscc, rccc, both or none"));
  EXPECT_THAT(refusal("CC_ALGORITHM", "tfc"), HasSubstr("TFC is not implemented"));  // CMS-312
  EXPECT_EQ(set_param(params, "CC_ALGORITHM", "rccc"), std::nullopt);
  EXPECT_EQ(params.cc_algorithm, cms::Algorithm::Rccc);
  EXPECT_EQ(set_param(params, "CC_ALGORITHM", "both"), std::nullopt);
  EXPECT_EQ(params.cc_algorithm, cms::Algorithm::Both);
  EXPECT_THAT(refusal("PATHS", "all"),
              HasSubstr("single, oblivious, round_robin, bitmap, reps or mixed"));
  EXPECT_EQ(refusal("FAULTS", "loss=1%,seed=7"), "taken");
  EXPECT_THAT(refusal("FAULTS", "loss=101%"), HasSubstr("FI_UET_FAULTS=loss=101%"));
}

// CMS 9: units and bounds of the numbers of congestion control.
TEST(SetParam, CongestionControlTakesDecimals) {
  Params params;
  EXPECT_EQ(set_param(params, "CC_GAMMA", "0.75"), std::nullopt);
  EXPECT_EQ(params.cc.gamma, 0.75);
  EXPECT_EQ(set_param(params, "CC_MAX_WINDOW_BDP", "2"), std::nullopt);
  EXPECT_EQ(params.cc.max_window_bdp, 2);
  EXPECT_EQ(set_param(params, "CC_REPS_RING", "16"), std::nullopt);
  EXPECT_EQ(params.cc.reps_ring, 16);
  EXPECT_EQ(set_param(params, "CC_PATH_COUNT", "256"), std::nullopt);
  EXPECT_EQ(params.cc_path_count, 256U);
}

TEST(SetParam, CongestionControlRefusesWhatIsOutOfRange) {
  for (const char* value : {"1.01", "-0.1", "1e-3", "nan", "inf", "", ".", "0.5x", "0,5"}) {
    EXPECT_THAT(refusal("CC_GAMMA", value), HasSubstr("allowed: 0 to 1")) << value;
  }
  EXPECT_THAT(refusal("CC_MAX_WINDOW_BDP", "0"), HasSubstr("FI_UET_CC_MAX_WINDOW_BDP=0 is not"));
  EXPECT_THAT(refusal("CC_MAX_WINDOW_BDP", "65"), HasSubstr("0.1 to 64"));
  EXPECT_THAT(refusal("CC_REPS_RING", "0"), HasSubstr("whole numbers from 1 to 1024"));
  EXPECT_THAT(refusal("CC_REPS_RING", "8.5"), HasSubstr("whole numbers from 1 to 1024"));
  EXPECT_THAT(refusal("CC_PATH_COUNT", "1025"), HasSubstr("1 to 1024"));
  EXPECT_THAT(refusal("CC_SYNTHETIC_ECN", "2"), HasSubstr("yes or no"));
}

TEST(SetParam, UnknownNameIsSaidSo) {
  EXPECT_THAT(refusal("NO_SUCH_THING", "1"), HasSubstr("FI_UET_NO_SUCH_THING"));
}

}  // namespace
}  // namespace uet::prov
