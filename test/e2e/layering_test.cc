// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How the plug-in looks from outside: fi_info lists it once, nothing stacks itself on top of it,
// its parameters explain themselves, wrong ones are refused by name, and stdout belongs to others.
#include <gtest/gtest.h>
#include <unistd.h>

#include <sstream>

#include "harness.h"

namespace uet::e2e {
namespace {

constexpr const char* kFiInfo = UET_LIBFABRIC_BIN "/fi_info";

class FiInfo : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::access(kFiInfo, X_OK) != 0) GTEST_SKIP() << kFiInfo << " is not installed";
    if (built_with_sanitizer()) {
      GTEST_SKIP() << "fi_info is not built with the sanitizer that the plug-in needs";
    }
    if (provider() != "uet") GTEST_SKIP() << "about uet itself";
  }
};

std::string fi_info(const std::string& arguments, const Environment& environment = {}) {
  return run_program(std::string(kFiInfo) + ' ' + arguments, environment).text;
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) {
    ++count;
  }
  return count;
}

// Programs that take the first entry get FI_EP_RDM, not over the loopback interface if there is
// another one.
TEST_F(FiInfo, ListsFirstFiEpRdmWithLoopbackLast) {
  const std::string all = fi_info("");
  EXPECT_GE(occurrences(all, "provider: uet\n"), 1U) << all;
  EXPECT_EQ(occurrences(all, "provider:"), occurrences(all, "provider: uet\n")) << all;
  const std::size_t msg = all.find("type: FI_EP_MSG");
  ASSERT_NE(msg, std::string::npos) << all;
  EXPECT_EQ(all.find("type: FI_EP_RDM", msg), std::string::npos) << all;
  const std::string text = all.substr(0, all.rfind("provider:", msg));
  EXPECT_EQ(occurrences(text, "type: "), occurrences(text, "type: FI_EP_RDM")) << text;
  const std::size_t loopback = text.find("domain: lo\n");
  ASSERT_NE(loopback, std::string::npos) << text;
  for (std::size_t at = loopback; (at = text.find("domain: ", at)) != std::string::npos; ++at) {
    EXPECT_EQ(text.compare(at, 11, "domain: lo\n"), 0) << text;
  }
}

TEST_F(FiInfo, NeverShowsAnotherProviderOnTopOfUs) {
  // Without a filter, and asking for what ofi_rxm and ofi_rxd would need from us.
  const Environment no_filter{{"FI_PROVIDER", ""}};
  for (const char* arguments : {"", "-p uet", "-t FI_EP_RDM", "-t FI_EP_MSG"}) {
    const std::string text = fi_info(arguments, no_filter);
    EXPECT_NE(text.find("provider: uet\n"), std::string::npos) << arguments << '\n' << text;
    EXPECT_EQ(text.find("uet;"), std::string::npos) << arguments << '\n' << text;
  }
  for (const char* arguments : {"-p 'uet;ofi_rxm'", "-p 'uet;ofi_rxd'"}) {
    const std::string text = fi_info(std::string(arguments) + " 2>&1", no_filter);
    EXPECT_EQ(text.find("uet"), std::string::npos) << arguments << '\n' << text;
  }
}

TEST_F(FiInfo, ShowsDatagramsOnlyOnRequest) {
  const Environment no_filter{{"FI_PROVIDER", ""}};
  const std::string text = fi_info("-t FI_EP_DGRAM", no_filter);
  EXPECT_NE(text.find("provider: uet\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("uet;"), std::string::npos) << text;
  EXPECT_EQ(occurrences(text, "type: "), occurrences(text, "type: FI_EP_DGRAM")) << text;
  const std::string rdm = fi_info("-p uet", no_filter);
  EXPECT_EQ(rdm.find("FI_EP_DGRAM"), std::string::npos) << rdm;
}

TEST_F(FiInfo, AllowsUtilityProvidersIfParameterIsSet) {
  const std::string text = fi_info("", {{"FI_PROVIDER", ""}, {"tune.allow_layering", "yes"}});
  EXPECT_NE(text.find("uet;ofi_rxd"), std::string::npos) << text;
}

TEST_F(FiInfo, ExplainsEachParameterWithItsDefault) {
  std::istringstream lines(fi_info("-e"));
  std::vector<std::string> names;
  std::string name;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("# FI_UET_", 0) == 0) {
      name = line.substr(2, line.find(':') - 2);
      names.push_back(name);
    } else if (!name.empty() && !line.empty()) {
      EXPECT_NE(line.find("efault"), std::string::npos) << name << ": " << line;
      name.clear();
    }
  }
  for (const char* wanted : {"FI_UET_IFACE", "FI_UET_PCAP", "FI_UET_FAULTS"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), wanted), names.end()) << wanted;
  }
}

TEST_F(FiInfo, RestrictsItselfToTheNamedInterface) {
  const std::string text = fi_info("", {{"FI_UET_IFACE", "lo"}});
  EXPECT_EQ(occurrences(text, "domain: "), occurrences(text, "domain: lo\n")) << text;
  EXPECT_GE(occurrences(text, "domain: lo\n"), 1U) << text;
}

TEST_F(FiInfo, KeepsOffStandardOutputEvenWhenItLogs) {
  const std::string quiet = fi_info("");
  const std::string logged = fi_info("", {{"FI_LOG_LEVEL", "debug"}});
  EXPECT_EQ(quiet, logged);
}

TEST_F(FiInfo, LogSaysWhichAttributeIsRefused) {
  const Environment logs{{"FI_LOG_LEVEL", "info"}, {"FI_UET_IFACE", "lo"}};
  const std::string start = "lo, 127.0.0.1 does not meet the hints: ";
  for (const auto& [arguments, reason] : std::initializer_list<std::pair<const char*, std::string>>{
           {"-d apples", start + "domain_attr.name"},
           {"-f apples", start + "fabric_attr.name"},
           {"-a FI_SOCKADDR_IB", start + "addr_format"},
           {"-c FI_COLLECTIVE", start + "caps"},
           {"-s 192.0.2.77", "192.0.2.77 is no address of an interface"}}) {
    const std::string text = fi_info(std::string(arguments) + " 2>&1", logs);
    EXPECT_NE(text.find(reason), std::string::npos) << arguments << '\n' << text;
  }
}

TEST_F(FiInfo, RefusesToSendWithTheDscpOfTrimmedPackets) {
  const std::string text = fi_info(
      "2>&1", {{"FI_UET_CC_TRIMMING", "on"}, {"FI_UET_DSCP_DATA", "12"}, {"FI_LOG_LEVEL", "warn"}});
  EXPECT_EQ(text.find("provider: uet"), std::string::npos) << text;
  EXPECT_NE(text.find("FI_UET_DSCP_DATA"), std::string::npos) << text;
}

struct Broken {
  const char* name;
  const char* value;
  const char* allowed;  // part of the message that says what is
};

class BrokenParameter : public FiInfo, public ::testing::WithParamInterface<Broken> {};

TEST_P(BrokenParameter, IsRefusedWithValueAndWhatIsAllowed) {
  const Broken broken = GetParam();
  const Environment environment{{broken.name, broken.value}, {"FI_LOG_LEVEL", "warn"}};
  const std::string text = fi_info("2>&1", environment);
  const bool listed = text.find("provider: uet") != std::string::npos;
  EXPECT_FALSE(listed) << "a broken value is accepted by fi_getinfo\n" << text;
  EXPECT_NE(text.find(broken.value), std::string::npos) << text;
  EXPECT_NE(text.find(broken.allowed), std::string::npos) << text;
}

INSTANTIATE_TEST_SUITE_P(All, BrokenParameter,
                         ::testing::Values(Broken{"FI_UET_IFACE", "nosuch0", "interface"},
                                           Broken{"FI_UET_FAULTS", "loss=lots", "loss"},
                                           Broken{"FI_UET_FAULTS", "frobnicate=1%", "loss"},
                                           Broken{"FI_UET_PAYLOAD_MTU", "3000", "8192"},
                                           Broken{"tune.mpr", "99", "0 to 32"},
                                           Broken{"tune.mpr", "eight", "0 to 32"},
                                           Broken{"FI_UET_GSO", "perhaps", "yes or no"},
                                           Broken{"FI_UET_PDC_COUNT", "63", "64 to 32768"},
                                           Broken{"FI_UET_STATS", "often", "exit, signal"}),
                         [](const auto& info) {
                           std::string name(info.param.name);
                           std::ranges::replace(name, '.', '_');
                           return name + std::to_string(info.index);
                         });

}  // namespace
}  // namespace uet::e2e
