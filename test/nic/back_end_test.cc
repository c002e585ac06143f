// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What only a back end decides: which way packets take, several processes at one address, opening
// again, and the answer to a process without the right. Runs inside in_network, with two hosts.
#include <grp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "e2e/harness.h"

namespace uet::e2e {
namespace {

constexpr std::size_t kBytes = 5000;  // more than a packet where the MTU is 1500
constexpr std::size_t kProcesses = 4;
constexpr std::uint64_t kMessages = 50;  // from each to each

bool over_udp() {
  const char* hosts = std::getenv("UET_E2E_HOSTS");
  return hosts == nullptr || std::string(hosts).find(",udp") != std::string::npos;
}

// Messages in both directions at once, `count` of them in turn.
void exchange(Node& node, fi_addr_t peer, std::uint64_t count) {
  std::vector<std::byte> out(kBytes);
  std::vector<std::byte> in(kBytes);
  for (std::uint64_t i = 0; i < count; ++i) {
    fill_pattern(out, i);
    node.post("receiving", [&] {
      return fi_trecv(node.ep.get(), in.data(), kBytes, nullptr, FI_ADDR_UNSPEC, i, 0, nullptr);
    });
    node.post("sending", [&] {
      return fi_tsend(node.ep.get(), out.data(), kBytes, nullptr, peer, i, nullptr);
    });
    node.drain(2, "a message");
    require_pattern(in, i, "message");
  }
}

// The kernel carries what leaves before it has found the next hop, and nothing afterwards.
TEST(BackEnd, CarriesPacketsItselfOnceTheNextHopIsKnown) {
  if (over_udp()) GTEST_SKIP() << "the back end udp is the kernel's";
  ChannelPair channels;
  const auto run = [](Channel& channel) {
    Node node;
    const fi_addr_t peer = node.connect(channel);
    std::uint64_t by_kernel = 0;
    for (int round = 0; round < 10; ++round) {
      by_kernel = node.counter("nic_kernel_packets_sent");
      exchange(node, peer, 20);
      by_kernel = node.counter("nic_kernel_packets_sent") - by_kernel;
    }
    require(node.counter("nic_packets_sent") >= 200, "no packets were sent");
    require(by_kernel == 0, "packets were left to the kernel");
    require(node.counter("nic_frames_refused") == 0, "frames arrived that are not right");
    if (std::getenv("UET_E2E_ARP") == nullptr && std::getenv("UET_E2E_IPV6") == nullptr) {
      require(node.counter("nic_kernel_packets_received") == 0, "packets came through the kernel");
    }
    channel.meet(&node);
  };
  Process left("left", {}, [&] { run(channels.left); });
  Process right("right", {}, [&] { run(channels.right); });
  EXPECT_EQ(wait_for_all({&left, &right}), "");
}

TEST(BackEnd, OpensAgainInOneProcess) {
  ChannelPair channels;
  const auto run = [](Channel& channel) {
    for (int round = 0; round < 5; ++round) {
      Node node;
      exchange(node, node.connect(channel), 3);
      channel.meet(&node);
    }
  };
  Process left("left", {}, [&] { run(channels.left); });
  Process right("right", {}, [&] { run(channels.right); });
  EXPECT_EQ(wait_for_all({&left, &right}), "");
}

// Two on each host, each with a port of its own; those of one host reach each other too.
void meet_all(std::size_t self, std::array<Channel*, kProcesses>& channels) {
  Node node;
  std::array<fi_addr_t, kProcesses> peers{};
  for (std::size_t i = 0; i < kProcesses; ++i) {
    if (i != self) channels[i]->send_bytes(node.name());
  }
  for (std::size_t i = 0; i < kProcesses; ++i) {
    if (i != self) peers[i] = node.insert(channels[i]->receive_bytes(&node));
  }
  std::vector<std::vector<std::byte>> in(kProcesses * kMessages, std::vector<std::byte>(kBytes));
  std::vector<std::vector<std::byte>> out(kProcesses * kMessages, std::vector<std::byte>(kBytes));
  std::size_t expected = 0;
  for (std::uint64_t message = 0; message < kMessages; ++message) {
    for (std::size_t i = 0; i < kProcesses; ++i) {
      if (i == self) continue;
      auto& to = in[i * kMessages + message];
      auto& from = out[i * kMessages + message];
      fill_pattern(from, self << 16 | message);
      node.post("receiving", [&] {
        return fi_trecv(node.ep.get(), to.data(), kBytes, nullptr, FI_ADDR_UNSPEC,
                        i << 16 | message, 0, nullptr);
      });
      node.post("sending", [&] {
        return fi_tsend(node.ep.get(), from.data(), kBytes, nullptr, peers[i], self << 16 | message,
                        nullptr);
      });
      expected += 2;
    }
  }
  node.drain(expected, "messages of all");
  for (std::size_t i = 0; i < kProcesses; ++i) {
    for (std::uint64_t message = 0; i != self && message < kMessages; ++message) {
      require_pattern(in[i * kMessages + message], i << 16 | message, "message");
    }
  }
  for (std::size_t i = 0; i < kProcesses; ++i) {
    if (i != self) channels[i]->send('m');
  }
  for (std::size_t i = 0; i < kProcesses; ++i) {
    if (i != self) channels[i]->receive<char>(&node);
  }
}

TEST(BackEnd, FourProcessesAtTwoAddressesExchangeAllToAll) {
  const char* hosts = std::getenv("UET_E2E_HOSTS");
  if (hosts != nullptr && std::string(hosts).find(":native") != std::string::npos) {
    GTEST_SKIP() << "the native form has no ports, so that one process has the whole address";
  }
  std::vector<ChannelPair> pairs(kProcesses * kProcesses);  // [low * kProcesses + high]
  const auto channels_of = [&](std::size_t self) {
    std::array<Channel*, kProcesses> channels{};
    for (std::size_t i = 0; i < kProcesses; ++i) {
      if (i < self) channels[i] = &pairs[i * kProcesses + self].right;
      if (i > self) channels[i] = &pairs[self * kProcesses + i].left;
    }
    return channels;
  };
  const auto run = [&](std::size_t self) {
    auto channels = channels_of(self);
    meet_all(self, channels);
  };
  Process a("a", {}, [&] { run(0); });
  Process b("b", {}, [&] { run(1); });
  Process c("c", {}, [&] { run(2); });
  Process d("d", {}, [&] { run(3); });
  EXPECT_EQ(wait_for_all({&a, &b, &c, &d}), "");
}

// Whoever asks for a back end gets that or an error, never another one.
TEST(BackEnd, WithoutTheRightDoesNotOpen) {
  if (over_udp()) GTEST_SKIP() << "the back end udp needs no right";
  if (::getuid() != 0) GTEST_SKIP() << "needs root, to give its rights up";
  Process process("process", {}, [] {
    require(::setgroups(0, nullptr) == 0 && ::setuid(65534) == 0, "giving up the rights");
    try {
      Node node;
    } catch (const std::exception& error) {
      const std::string what = error.what();
      require(what.find("fi_domain: Operation not supported") != std::string::npos, what);
      return;
    }
    fail("it opened");
  });
  EXPECT_EQ(process.wait(), "");
}

}  // namespace
}  // namespace uet::e2e
