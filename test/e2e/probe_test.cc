// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// uet_probe at a process of the provider: every step is answered as UET 1.0.3 wants it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "harness.h"

namespace uet::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t kKey = 0x5A;

// Serves until the channel says that it is over.
void serve(Channel& channel, std::uint64_t order) {
  Node node({.capabilities = FI_MSG | FI_RMA, .order = order});
  std::array<std::byte, 4096> memory{};
  const Region region = node.expose(memory.data(), memory.size(), kKey);
  std::array<std::array<std::byte, 16384>, 4> rooms{};
  for (auto& room : rooms) {
    node.post("fi_recv", [&] {
      return fi_recv(node.ep.get(), room.data(), room.size(), nullptr, FI_ADDR_UNSPEC, room.data());
    });
  }
  channel.send(region.key);
  channel.receive<char>(&node);
}

Output probe(const std::string& options) {
  ChannelPair channels;
  const bool ordered = options.find("--rod") != std::string::npos;
  const bool crc = options.find("--crc") != std::string::npos;
  Process server("server", {{"FI_UET_CRC", crc ? "yes" : "no"}},
                 [&] { serve(channels.left, ordered ? FI_ORDER_SAS : 0); });
  const auto key = channels.right.receive<std::uint64_t>();
  const Output output = run_program(std::string(UET_PROBE) + " --from 127.0.0.2 --mtu 8192 --key " +
                                        std::to_string(key) + " " + options + " 127.0.0.1",
                                    {});
  channels.right.send('e');
  EXPECT_EQ(server.wait(), "");
  return output;
}

class ProbeTest : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(All, ProbeTest, testing::Values("", "--rod", "--crc"));

TEST_P(ProbeTest, FindsNoDeviationInUet) {
  const Output output = probe(GetParam());
  EXPECT_TRUE(WIFEXITED(output.status) && WEXITSTATUS(output.status) == 0) << output.text;
  EXPECT_THAT(output.text, HasSubstr("No deviation from UET 1.0.3 found."));
  EXPECT_THAT(output.text, HasSubstr("RESPONSE_W_DATA OK, 256 bytes"));
  EXPECT_THAT(output.text, Not(HasSubstr("refused")));
}

// Two hosts of in_network, the first of which speaks the native form: IP protocol 253 over veth.
class NativeProbeTest : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(All, NativeProbeTest, testing::Values("", "--rod", "--crc"));

TEST_P(NativeProbeTest, FindsNoDeviationInThisProvider) {
  const char* hosts = std::getenv("UET_E2E_HOSTS");
  if (hosts == nullptr || std::string(hosts).find(":native") == std::string::npos) {
    GTEST_SKIP() << "needs the hosts of in_network packet:native,packet:native";
  }
  const std::string options = GetParam();
  const bool ordered = options.find("--rod") != std::string::npos;
  const bool crc = options.find("--crc") != std::string::npos;
  ChannelPair channels;
  Process server("server", {{"FI_UET_CRC", crc ? "yes" : "no"}}, [&] {
    const std::string address = own_address();
    channels.left.send_bytes(std::as_bytes(std::span(address)));
    serve(channels.left, ordered ? FI_ORDER_SAS : 0);
  });
  Process prober("prober", {}, [&] {
    const std::vector<std::byte> address = channels.right.receive_bytes();
    const std::string peer(reinterpret_cast<const char*>(address.data()), address.size());
    const auto key = channels.right.receive<std::uint64_t>();
    const Output output = run_program(std::string(UET_PROBE) + " --native 253 --mtu 8192 --key " +
                                          std::to_string(key) + " " + options + " " + peer,
                                      {});
    channels.right.send('e');
    const auto says = [&](const char* text) { return output.text.find(text) != std::string::npos; };
    require(WIFEXITED(output.status) && WEXITSTATUS(output.status) == 0 &&
                says("No deviation from UET 1.0.3 found.") &&
                says("RESPONSE_W_DATA OK, 256 bytes") && !says("refused"),
            output.text);
  });
  EXPECT_EQ(wait_for_all({&server, &prober}), "");
}

TEST(ProbeStatus, SaysThatNothingAnswers) {
  const Output output =
      run_program(std::string(UET_PROBE) + " --from 127.0.0.2 --patience 20 127.0.0.3", {});
  EXPECT_TRUE(WIFEXITED(output.status) && WEXITSTATUS(output.status) == 3) << output.text;
  EXPECT_THAT(output.text, HasSubstr("nothing answers"));
}

TEST(ProbeStatus, SaysHowItIsUsed) {
  for (const char* wrong : {"", "--key x 127.0.0.1", "--job 99999999 127.0.0.1", "nobody.invalid",
                            "--from ::1 127.0.0.1", "--from 192.0.2.77 127.0.0.1"}) {
    const Output output = run_program(std::string(UET_PROBE) + " " + wrong, {});
    EXPECT_TRUE(WIFEXITED(output.status) && WEXITSTATUS(output.status) == 2)
        << wrong << output.text;
  }
}

}  // namespace
}  // namespace uet::e2e
