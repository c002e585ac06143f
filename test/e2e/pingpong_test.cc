// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// libfabric's own fi_pingpong, a program that knows nothing of uet, over uet: messages and tagged
// messages of 64 B to 1 MiB with its data check.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <regex>
#include <thread>

#include "harness.h"

namespace uet::e2e {
namespace {

constexpr const char* kProgram = UET_LIBFABRIC_BIN "/fi_pingpong";

// True if a process listens on this TCP port, by the kernel's table: the server would take a trial
// connection for the client.
bool listens(int port) {
  char wanted[16];
  std::snprintf(wanted, sizeof wanted, ":%04X ", port);
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    for (std::string line; std::getline(file, line);) {
      const std::size_t at = line.find(wanted);
      if (at != std::string::npos && at < 45 && line.find(" 0A ") != std::string::npos) return true;
    }
  }
  return false;
}

struct Pair {
  Output server;
  Output client;
};

// Both ends of fi_pingpong with these options.
Pair run_pair(const std::string& options, const Environment& environment) {
  int port = 20000 + ::getpid() % 20000;
  while (listens(port)) ++port;
  const std::string common = std::string(kProgram) + " -p '" + provider() + "' -e rdm " + options;
  Pair pair;
  std::thread thread([&] {
    pair.server = run_program(common + " -B " + std::to_string(port) + " 2>&1", environment);
  });
  for (int i = 0; i < 500 && !listens(port); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  pair.client =
      run_program(common + " -P " + std::to_string(port) + " 127.0.0.1 2>&1", environment);
  thread.join();
  EXPECT_EQ(pair.client.status, 0) << pair.client.text;
  EXPECT_EQ(pair.server.status, 0) << pair.server.text;
  return pair;
}

// Empty if fi_pingpong can be run.
std::string why_not() {
  if (::access(kProgram, X_OK) != 0) return std::string(kProgram) + " is not installed";
  return built_with_sanitizer()
             ? "fi_pingpong is not built with the sanitizer that the plug-in needs"
             : "";
}

class PingPong : public ::testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(PingPong, OfLibfabricFindsItsDataUnharmed) {
  if (!why_not().empty()) GTEST_SKIP() << why_not();
  const auto [mode, bytes] = GetParam();
  const Output client =
      run_pair(std::string("-c -m ") + mode + " -S " + std::to_string(bytes) + " -I 200",
               {{"FI_UET_IFACE", "lo"}, {"FI_LOG_LEVEL", "warn"}})
          .client;
  // Its table: a head, then one line for the size, with the number of transfers done.
  EXPECT_NE(client.text.find("usec/xfer"), std::string::npos) << client.text;
  EXPECT_NE(client.text.find("=200"), std::string::npos) << client.text;
  EXPECT_EQ(client.text.find("data check error"), std::string::npos) << client.text;
}

TEST(PingPongLog, DebugNamesEachPdcAndItsStates) {
  if (!why_not().empty()) GTEST_SKIP() << why_not();
  const Pair pair = run_pair(
      "-S 64 -I 10", {{"FI_UET_IFACE", "lo"}, {"FI_LOG_LEVEL", "debug"}, {"FI_LOG_PROV", "uet"}});
  const std::string pdc = "PDC 0x[0-9a-f]{4} to 127\\.0\\.0\\.1:[0-9]+: ";
  const auto expect_line = [](const std::string& text, const std::string& line) {
    EXPECT_TRUE(std::regex_search(text, std::regex(line))) << line << " is not in\n" << text;
  };
  expect_line(pair.client.text, pdc + "opened as initiator, RUD; .*MTU");
  expect_line(pair.client.text, pdc + "creating -> established");
  expect_line(pair.server.text, pdc + "opened as target, RUD; .*MTU");
}

INSTANTIATE_TEST_SUITE_P(All, PingPong,
                         ::testing::Combine(::testing::Values("msg", "tagged"),
                                            ::testing::Values(64, 1024, 16384, 65536, 1048576)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" +
                                  std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace uet::e2e
