// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Variables of the provider from outside: what each does to the objects and the packets of a
// process, what FI_UET_TUNING takes and refuses, and what becomes of names that mean nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>

#include "harness.h"

namespace uet::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kFiInfo = UET_LIBFABRIC_BIN "/fi_info";

class Parameters : public ::testing::Test {
 protected:
  void SetUp() override {
    if (provider() != "uet") GTEST_SKIP() << "looks at parameters of uet";
  }
  ~Parameters() override { ::unlink(file_.c_str()); }

  const std::string file_ = ::testing::TempDir() + "uet_parameters_" + std::to_string(::getpid());
};

// By fi_info, where there is one that can load the plug-in.
class Listed : public Parameters {
 protected:
  void SetUp() override {
    Parameters::SetUp();
    if (::access(kFiInfo, X_OK) != 0) GTEST_SKIP() << kFiInfo << " is not installed";
    if (built_with_sanitizer()) {
      GTEST_SKIP() << "fi_info is not built with the sanitizer that the plug-in needs";
    }
  }
};

std::string fi_info(const Environment& environment) {
  Environment all = environment;
  all.emplace("FI_LOG_LEVEL", "warn");
  return run_program(std::string(kFiInfo) + " -p uet 2>&1", all).text;
}

constexpr const char* kListed = "provider: uet\n";

// A message to oneself, through the network.
void send_to_oneself(Node& node) {
  const fi_addr_t self = node.insert(node.name());
  std::vector<std::byte> in(60'000);
  std::vector<std::byte> out(60'000);
  node.post("receiving", [&] {
    return fi_trecv(node.ep.get(), in.data(), in.size(), nullptr, self, 1, 0, nullptr);
  });
  node.post("sending", [&] {
    return fi_tsend(node.ep.get(), out.data(), out.size(), nullptr, self, 1, nullptr);
  });
  node.drain(2, "message to oneself");
}

// The capture of such a process.
std::string capture_of(const std::string& file, Environment environment) {
  environment["FI_UET_PCAP"] = file;
  environment["FI_UET_LOCAL"] = "off";
  Process process("process", environment, [&] {
    Node node;
    send_to_oneself(node);
  });
  EXPECT_EQ(process.wait(), "");
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST_F(Parameters, TxSizeAndRxSizeAreTheDefaultsOfEndpoints) {
  Process process("process", {{"FI_UET_TX_SIZE", "48"}, {"tune.rx_size", "96"}}, [&] {
    Node node;
    require(node.info->tx_attr->size == 48, "tx_attr->size is not FI_UET_TX_SIZE");
    require(node.info->rx_attr->size == 96, "rx_attr->size is not rx_size");
  });
  EXPECT_EQ(process.wait(), "");
}

TEST_F(Parameters, LogSaysWhatADomainIsMadeOf) {
  Process process("process",
                  {{"FI_LOG_LEVEL", "info"},
                   {"FI_UET_PAYLOAD_MTU", "2048"},
                   {"FI_UET_LOCAL", "off"},
                   {"FI_UET_IFACE", "lo"}},
                  [&] {
                    if (std::freopen(file_.c_str(), "w", stderr) == nullptr) fail("freopen");
                    const Node node;
                    std::fflush(stderr);
                  });
  EXPECT_EQ(process.wait(), "");
  std::ifstream stream(file_);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_NE(text.find(" on lo: FI_UET_NIC=udp, "), std::string::npos) << text;
  EXPECT_NE(text.find(" and 2048 of payload in a packet, rings off\n"), std::string::npos) << text;
}

// Version 4, DSCP 40 and any ECN, UDP as protocol.
bool has_ipv4_packet_with_dscp(const std::string& bytes, int dscp) {
  for (std::size_t at = 0; (at = bytes.find('\x45', at)) != std::string::npos; ++at) {
    if (at + 9 >= bytes.size()) return false;
    const bool marked = (static_cast<unsigned char>(bytes[at + 1]) >> 2) == dscp;
    if (marked && bytes[at + 9] == 17) return true;
  }
  return false;
}

TEST_F(Parameters, DscpControlIsTheOneOfAcks) {
  EXPECT_TRUE(has_ipv4_packet_with_dscp(capture_of(file_, {{"tune.dscp_control", "41"}}), 41));
  ::unlink(file_.c_str());
  EXPECT_FALSE(has_ipv4_packet_with_dscp(capture_of(file_, {}), 41));
}

// The fields behind flags and clear_psn_offset of the first request with SYN (WIRE 2.1, 2.2): its
// PSN and its SPDCID, both drawn from the seed.
std::string first_syn(const std::string& bytes) {
  for (std::size_t at = 0; at + 10 < bytes.size(); ++at) {
    const auto type = static_cast<unsigned char>(bytes[at]) >> 3;
    const auto flags = static_cast<unsigned char>(bytes[at + 1]);
    const bool request = type == 2 || type == 3 || type == 13 || type == 14;
    if (request && (flags == 0x84 || flags == 0x8C) && bytes.compare(at + 2, 2, "\xFF\xFF") == 0) {
      return bytes.substr(at + 4, 6);
    }
  }
  return {};
}

TEST_F(Parameters, SeedRepeatsStartPsnsAndIds) {
  const auto drawn = [&](const char* seed) {
    const std::string syn = first_syn(capture_of(file_, {{"FI_UET_SEED", seed}}));
    ::unlink(file_.c_str());
    EXPECT_NE(syn, "") << "no SYN in the capture";
    return syn;
  };
  const std::string first = drawn("5");
  EXPECT_EQ(drawn("5"), first);
  EXPECT_NE(drawn("6"), first);
}

// The counter of the congestion context of such a process at its end.
std::uint64_t counter_after(const std::string& name, Environment environment) {
  environment.insert({{"FI_UET_CC_ALGORITHM", "nscc"}, {"FI_UET_LOCAL", "off"}});
  ChannelPair channels;
  Process process("process", environment, [&] {
    Node node;
    send_to_oneself(node);
    require(node.counter("cms_contexts") == 1, "not one congestion context");
    channels.left.send(node.counter(name));
  });
  EXPECT_EQ(process.wait(), "");
  return channels.right.readable() ? channels.right.receive<std::uint64_t>() : 0;
}

// CMS-101: the window is Wmax at most, which a link of 1 Mbit/s leaves at one packet.
TEST_F(Parameters, LinkRateBoundsTheWindow) {
  constexpr std::uint64_t kOnePacket = 8192 + 128;
  const auto window = [](const char* mbps) {
    return counter_after("cms_window_bytes", {{"FI_UET_CC_LINK_RATE_MBPS", mbps}});
  };
  const std::uint64_t narrow = window("1");
  EXPECT_GT(narrow, 0U);
  EXPECT_LE(narrow, kOnePacket);
  EXPECT_GT(window("1000000"), 2 * kOnePacket);
}

// A round trip above its target cuts the window of swift. Without marks nothing cuts that of nscc.
TEST_F(Parameters, Swift_CutsByDelayAlone) {
  const auto cut = [](const char* algorithm) {
    return counter_after("cms_acks_cut", {{"FI_UET_CC_ALGORITHM", algorithm},
                                          {"FI_UET_CC_BASE_RTT_US", "1"},
                                          {"FI_UET_TUNING", "cc_synthetic_ecn=no"}});
  };
  EXPECT_GT(cut("swift"), 0U);
  EXPECT_EQ(cut("nscc"), 0U);
}

// PDS-219: the 8 packets of the message leave one by one, each after the ACK of the one before.
// Else one ACK answers several.
TEST_F(Parameters, MprZeroIsAWindowOfFewPackets) {
  const Environment tuning{{"FI_UET_TUNING", "mpr_zero=yes,mpr_zero_psns=1"}};
  EXPECT_GE(counter_after("pds_acks_received", tuning), 8U);
}

// CMS-140: R starts there and only falls, or is raised, to four times as much at most (CMS-142).
TEST_F(Parameters, BaseRttIsWhereTheMeasuredOneStarts) {
  const std::uint64_t base = counter_after("cms_base_rtt_ns", {{"FI_UET_CC_BASE_RTT_US", "1"}});
  EXPECT_GT(base, 0U);
  EXPECT_LE(base, 4'000U);
}

// WIRE 1.3: data must not be sent with what says "trimmed", 12 and 16 by default.
TEST_F(Listed, DscpsOfTrimmedPacketsCanBeOthers) {
  const auto listed = [](const Environment& more) {
    Environment environment{{"FI_UET_CC_TRIMMING", "yes"}};
    environment.insert(more.begin(), more.end());
    return fi_info(environment).find(kListed) != std::string::npos;
  };
  EXPECT_FALSE(listed({{"FI_UET_DSCP_DATA", "12"}}));
  EXPECT_TRUE(listed({{"FI_UET_DSCP_DATA", "12"}, {"FI_UET_TUNING", "dscp_trimmed=20"}}));
  EXPECT_FALSE(listed({{"FI_UET_DSCP_DATA", "16"}}));
  EXPECT_TRUE(listed({{"FI_UET_DSCP_DATA", "16"}, {"FI_UET_TUNING", "dscp_trimmed_lasthop=21"}}));
}

// ---- FI_UET_TUNING -----------------------------------------------------------------------------

// Is FI_EP_DGRAM offered to ofi_rxd, which allow_layering=yes does?
bool layered(Environment environment) {
  environment["FI_PROVIDER"] = "";
  return run_program(kFiInfo, environment).text.find("uet;ofi_rxd") != std::string::npos;
}

TEST_F(Listed, TuningSetsWhatHasNoVariable) {
  EXPECT_FALSE(layered({}));
  EXPECT_FALSE(layered({{"FI_UET_TUNING", "gro=no"}}));
  EXPECT_TRUE(layered({{"FI_UET_TUNING", "gro=no, allow_layering=yes,mpr=8"}}));
  EXPECT_FALSE(layered({{"FI_UET_TUNING", "allow_layering=yes,allow_layering=no"}}));
}

TEST_F(Listed, TuningComesFromAFile) {
  std::ofstream(file_) << "# one per line\nallow_layering=yes\ngro=no\n";
  EXPECT_TRUE(layered({{"FI_UET_TUNING", "@" + file_}}));
  std::ofstream(file_) << "allow_layering=perhaps\n";
  const std::string text = fi_info({{"FI_UET_TUNING", "@" + file_}});
  EXPECT_THAT(text, Not(HasSubstr(kListed)));
  EXPECT_THAT(text, HasSubstr("allow_layering=perhaps is not valid; allowed: yes or no"));
}

struct Refused {
  const char* name;
  const char* value;
  const char* message;
};

void PrintTo(const Refused& refused, std::ostream* out) {
  *out << refused.name << "=" << refused.value;
}

class RefusedName : public Listed, public ::testing::WithParamInterface<Refused> {};

TEST_P(RefusedName, IsNamedWithItsNewForm) {
  const std::string text = fi_info({{GetParam().name, GetParam().value}});
  EXPECT_THAT(text, Not(HasSubstr(kListed)));
  EXPECT_THAT(text, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedName,
    ::testing::Values(
        Refused{"FI_UET_RTO_MAX_US", "1000",
                "FI_UET_RTO_MAX_US is no longer a variable: set FI_UET_TUNING=rto_max_us=VALUE"},
        Refused{"FI_UET_CC_TRIMING", "yes", "did you mean FI_UET_CC_TRIMMING"},
        Refused{"FI_UET_TUNING", "gro=no,rto_maxus=1000", "did you mean rto_max_us"},
        Refused{"FI_UET_TUNING", "seed=7", "set FI_UET_SEED=7"},
        Refused{"FI_UET_TUNING", "@/nowhere", "FI_UET_TUNING=@/nowhere: No such file"}),
    [](const auto& info) { return "Case" + std::to_string(info.index); });

// All that fi_info -e shows, set to nothing at once.
TEST_F(Listed, AnEmptyVariableCountsAsNotSet) {
  std::istringstream lines(run_program(std::string(kFiInfo) + " -e", {}).text);
  Environment empty;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# FI_UET_")) empty[line.substr(2, line.find(':') - 2)] = "";
  }
  ASSERT_GE(empty.size(), 20U);
  ASSERT_TRUE(empty.contains("FI_UET_STATS"));
  empty["FI_UET_NO_SUCH_VARIABLE"] = "";
  Process process("process", empty, [&] {
    Node node;
    send_to_oneself(node);
  });
  EXPECT_EQ(process.wait(), "");
}

}  // namespace
}  // namespace uet::e2e
