// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One domain over two interfaces: eth0 and eth1 of two hosts, which in_network joins by two
// networks (UET_E2E_RAILS). Runs as root of its own name space, so that it may take carriers away.
#include <gtest/gtest.h>

#include <algorithm>
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

void shell(const std::string& command) {
  require(std::system(command.c_str()) == 0, command + " failed");
}

// Bytes that the interface of this name space has taken from its link or given to it: the first
// and the ninth number of its line.
enum class Direction : std::uint8_t { In = 1, Out = 9 };
std::uint64_t bytes(const std::string& interface, Direction direction) {
  std::ifstream lines("/proc/self/net/dev");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.find(interface) >= colon) continue;
    std::istringstream numbers(line.substr(colon + 1));
    std::uint64_t number = 0;
    for (int i = 0; i < static_cast<int>(direction); ++i) numbers >> number;
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
  std::uint64_t lost = 0;         // packets sent again because their rail was lost
  std::uint64_t timed_out = 0;    // because of a time-out
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
  written.lost = node.counter("pds_lost_rail_retransmissions");
  written.timed_out = node.counter("pds_rto_retransmissions");
  return written;
}

// The writer must see this.
enum class Expect : std::uint8_t {
  NoTimeOut,   // what was lost left again before its time-out, which is long
  NoFailures,  // no operation fails, as in the other cases
};

// `disturb` works in the network's own name space while host-2 writes to host-1.
void write_while(const std::function<void()>& disturb, Expect expect) {
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
  Environment environment;
  if (expect == Expect::NoTimeOut) {
    environment = {{"FI_UET_RTO_INIT_US", "2000000"}};
  }
  Process writer("writer", environment, [&] {
    Node node;
    const fi_addr_t peer = node.connect(channels.right);
    const auto remote = channels.right.receive<RemoteRegion>(&node);
    const Written written = write_until_told(node, peer, remote, orders.right);
    const std::chrono::duration<double, std::milli> gap = written.longest_gap;
    std::printf(
        "%llu writes, bytes sent by eth0 %llu, by eth1 %llu; packets sent again: %llu of lost "
        "rails, %llu after time-outs; longest gap %.1f ms\n",
        static_cast<unsigned long long>(written.messages),
        static_cast<unsigned long long>(bytes("eth0", Direction::Out)),
        static_cast<unsigned long long>(bytes("eth1", Direction::Out)),
        static_cast<unsigned long long>(written.lost),
        static_cast<unsigned long long>(written.timed_out), gap.count());
    if (expect == Expect::NoTimeOut) {
      require(written.lost > 0, "nothing was lost with its rail");
      require(written.timed_out == 0, "packets of a lost rail waited for their time-outs");
    }
    channels.right.send('d');
    channels.right.meet(&node);
  });
  disturb();
  orders.left.send('e');
  EXPECT_EQ(wait_for_all({&target, &writer}), "");
}

void wait(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }

// Waits for a second in which host-2 sends more than a quarter of its bytes over each network. On
// a busy machine a network may stand still for so long that the other has nearly all for a while.
void wait_for_shares() {
  const auto counters = [] {
    return std::array<std::uint64_t, 2>{bytes("port-2", Direction::In),
                                        bytes("rail-2", Direction::In)};
  };
  for (int i = 0; i < 30; ++i) {
    const auto before = counters();
    wait(std::chrono::seconds(1));
    const auto after = counters();
    const std::array<std::uint64_t, 2> sent{after[0] - before[0], after[1] - before[1]};
    if (4 * std::min(sent[0], sent[1]) > sent[0] + sent[1]) return;
    std::printf("%llu bytes over the first network, %llu over the second\n",
                static_cast<unsigned long long>(sent[0]), static_cast<unsigned long long>(sent[1]));
  }
  ADD_FAILURE() << "one network had less than a quarter of the traffic for 30 s";
}

TEST_F(Rails, ShareTheTrafficOfOneEndpoint) {
  write_while([] { wait_for_shares(); }, Expect::NoFailures);
}

// An interface of `host` loses its carrier and has it again.
void take_carriers(const std::string& host) {
  for (int i = 0; i < 20; ++i) {
    const std::string rail = (i % 2 == 0 ? "rail-" : "port-") + host;
    wait(kPeriod);
    shell("ip link set " + rail + " down");
    wait(kPeriod);
    shell("ip link set " + rail + " up");
  }
}

TEST_F(Rails, NoOperationFailsWhenACarrierGoes) {
  write_while([] { take_carriers("1"); }, Expect::NoFailures);
}

// At the target, which tells the writer, and at the writer.
TEST_F(Rails, Pds227_ALostCarrierCostsNoTimeOut) {
  for (const char* host : {"1", "2"}) {
    write_while([host] { take_carriers(host); }, Expect::NoTimeOut);
  }
}

// The first interface, whose address is that of the domain, has no carrier yet.
TEST_F(Rails, BeginWhereTheFirstHasNoCarrier) {
  shell("ip link set port-2 down");
  const auto by_second = [] { return bytes("rail-2", Direction::In); };
  const std::uint64_t before = by_second();
  write_while(
      [&] {
        for (int i = 0; i < 600 && by_second() - before < 16 * kBytes; ++i) {
          wait(std::chrono::milliseconds(50));
        }
        EXPECT_GE(by_second() - before, 16 * kBytes);
        shell("ip link set port-2 up");
        wait_for_shares();
      },
      Expect::NoFailures);
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
      Expect::NoFailures);
}

}  // namespace
}  // namespace uet::e2e
