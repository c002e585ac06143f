// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One domain over two interfaces: eth0 and eth1 of two hosts, which in_network joins by two
// networks (UET_E2E_RAILS). Runs as root of its own name space, so that it may take carriers away.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "e2e/harness.h"

namespace uet::e2e {
namespace {

constexpr std::size_t kBytes = 65536;
constexpr std::size_t kWindow = 16;  // messages under way
constexpr std::chrono::milliseconds kPeriod{30};

// The rail of host-1 in the second network, seen from outside.
void shell(const std::string& command) {
  require(std::system(command.c_str()) == 0, command + " failed");
}

// Bytes that the interface of this host has sent: the ninth number of its line.
std::uint64_t bytes_sent(const std::string& interface) {
  std::ifstream lines("/proc/self/net/dev");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.find(interface) >= colon) continue;
    std::istringstream numbers(line.substr(colon + 1));
    std::uint64_t number = 0;
    for (int i = 0; i < 9; ++i) numbers >> number;
    return number;
  }
  fail("no " + interface);
}

class Rails : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("UET_E2E_RAILS") == nullptr)
      GTEST_SKIP() << "one network only: UET_E2E_RAILS is not set";
  }
};

struct Written {
  std::uint64_t messages = 0;
  Clock::duration longest_gap{};  // between two completions
};

// Writes until told to stop. No operation may fail.
Written write_until_told(Node& node, fi_addr_t peer, const RemoteRegion& remote, Channel& channel) {
  const std::vector<std::byte> memory(kBytes);
  Written written;
  auto last = Clock::now();
  const auto post = [&] {
    node.post("writing", [&] {
      return fi_write(node.ep.get(), memory.data(), kBytes, nullptr, peer, remote.address,
                      remote.key, nullptr);
    });
  };
  for (std::size_t i = 0; i < kWindow; ++i) post();
  while (!channel.readable()) {
    const auto event = node.poll();
    if (!event) continue;
    require(event->error == 0, std::string("a write failed: ") + fi_strerror(event->error));
    ++written.messages;
    const auto now = Clock::now();
    written.longest_gap = std::max(written.longest_gap, now - std::exchange(last, now));
    post();
  }
  channel.receive<char>();
  node.drain(kWindow, "the last writes");
  written.messages += kWindow;
  return written;
}

// `disturb` works in the network's own name space while host-2 writes to host-1.
void write_while(const std::function<void()>& disturb, bool both) {
  ChannelPair channels;
  ChannelPair orders;
  Process target("target", {}, [&] {
    Node node;
    node.connect(channels.left);
    std::vector<std::byte> memory(kBytes);
    const Region region = node.expose(memory.data(), memory.size(), 5);
    channels.left.send(RemoteRegion{region.address, region.key});
    channels.left.receive<char>(&node);
    channels.left.meet(&node);
  });
  Process writer("writer", {}, [&] {
    Node node;
    const fi_addr_t peer = node.connect(channels.right);
    const auto remote = channels.right.receive<RemoteRegion>(&node);
    const std::array<std::uint64_t, 2> before{bytes_sent("eth0"), bytes_sent("eth1")};
    const Written written = write_until_told(node, peer, remote, orders.right);
    const std::array<double, 2> sent{static_cast<double>(bytes_sent("eth0") - before[0]),
                                     static_cast<double>(bytes_sent("eth1") - before[1])};
    const std::chrono::duration<double, std::milli> gap = written.longest_gap;
    std::printf("%llu writes, bytes over eth0 %.0f, over eth1 %.0f; longest gap %.1f ms\n",
                static_cast<unsigned long long>(written.messages), sent[0], sent[1], gap.count());
    if (both) {
      require(sent[0] > 0.25 * (sent[0] + sent[1]), "eth0 had less than a quarter");
      require(sent[1] > 0.25 * (sent[0] + sent[1]), "eth1 had less than a quarter");
    }
    channels.right.send('d');
    channels.right.meet(&node);
  });
  disturb();
  orders.left.send('e');
  EXPECT_EQ(wait_for_all({&target, &writer}), "");
}

void wait(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }

TEST_F(Rails, ShareTheTrafficOfOneEndpoint) {
  write_while([] { wait(std::chrono::seconds(1)); }, true);
}

// The interface loses its carrier and has it again.
TEST_F(Rails, NoOperationFailsWhenACarrierGoes) {
  write_while(
      [] {
        for (int i = 0; i < 20; ++i) {
          const std::string rail = i % 2 == 0 ? "rail-1" : "port-1";
          wait(kPeriod);
          shell("ip link set " + rail + " down");
          wait(kPeriod);
          shell("ip link set " + rail + " up");
        }
      },
      false);
}

// Packets of one network vanish, and no interface says so.
TEST_F(Rails, NoOperationFailsWhenANetworkFallsSilent) {
  write_while(
      [] {
        for (int i = 0; i < 10; ++i) {
          wait(kPeriod);
          shell("ip link set rail-1 nomaster");
          wait(kPeriod);
          shell("ip link set rail-1 master bridge1");
        }
      },
      false);
}

}  // namespace
}  // namespace uet::e2e
