// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What only a back end decides: which way packets take, several processes at one address, opening
// again. Runs inside in_network, with two hosts.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "e2e/harness.h"
#include "exchange.h"
#include "hosts.h"

namespace uet::e2e {
namespace {

constexpr std::size_t kBytes = 5000;  // more than a packet where the MTU is 1500
constexpr std::size_t kProcesses = 8;
constexpr std::uint16_t kFirstSlotPort = 5817;  // of processes that share port 4793
constexpr std::uint64_t kMessages = 20;         // from each to each in one round

// The kernel carries what leaves before it has found the next hop, and nothing afterwards.
TEST(BackEnd, CarriesPacketsItselfOnceTheNextHopIsKnown) {
  if (over_udp()) GTEST_SKIP() << "the back end udp is the kernel's";
  const auto run = [](Channel& channel) {
    Node node;
    const fi_addr_t peer = node.connect(channel);
    std::uint64_t by_kernel = 0;
    for (int round = 0; round < 10; ++round) {
      by_kernel = node.counter("nic_kernel_packets_sent");
      exchange(node, peer, kBytes, 20);
      by_kernel = node.counter("nic_kernel_packets_sent") - by_kernel;
    }
    require(node.counter("nic_packets_sent") >= 200, "no packets were sent");
    require(by_kernel == 0, "packets were left to the kernel");
    require(node.counter("nic_frames_refused") == 0, "frames arrived that are not right");
    if (plain_network() && !has_part_of_the_queues()) {
      require(node.counter("nic_kernel_packets_received") == 0, "packets came through the kernel");
    }
    channel.meet(&node);
  };
  EXPECT_EQ(run_on_both(run), "");
}

TEST(BackEnd, OpensAgainInOneProcess) {
  const auto run = [](Channel& channel) {
    for (int round = 0; round < 5; ++round) {
      Node node;
      exchange(node, node.connect(channel), kBytes, 3);
      channel.meet(&node);
    }
  };
  EXPECT_EQ(run_on_both(run), "");
}

TEST(BackEnd, TwoInOneProcessAtOnce) {
  const auto run = [](Channel& channel) {
    Node first;
    const std::string nic = first.info->nic->device_attr->driver;
    ::setenv("FI_UET_NIC", nic == "udp" ? "packet" : "udp", 1);
    Node second;
    require(second.info->nic->device_attr->driver != nic, "the second has another back end");
    const fi_addr_t peer_of_first = first.connect(channel);
    const fi_addr_t peer_of_second = second.connect(channel);
    for (int round = 0; round < 3; ++round) {
      exchange(first, peer_of_first, kBytes, 10);
      exchange(second, peer_of_second, kBytes, 10);
    }
    for (Node* node : {&first, &second}) {
      require(node->counter("nic_packets_received") >= 30, "packets came over each");
    }
    channel.meet(&second);
  };
  EXPECT_EQ(run_on_both(run), "");
}

// A process has one port for an interface. Packets for one domain wait while another one polls; a
// domain that is closed leaves the port to the others.
TEST(BackEnd, DomainsShareThePortOfDpdk) {
  if (!over("dpdk") || over_udp()) GTEST_SKIP() << "only where all hosts have the back end dpdk";
  const auto run = [](Channel& channel) {
    constexpr std::uint64_t kWaiting = 10;
    Node first;
    const fi_addr_t peer_of_first = first.connect(channel);
    for (int round = 0; round < 3; ++round) {
      Node second;
      const fi_addr_t peer_of_second = second.connect(channel);
      std::vector<std::byte> in(kWaiting * kBytes);
      std::vector<std::byte> out(kBytes);
      fill_pattern(out, 1);
      for (std::uint64_t i = 0; i < kWaiting; ++i) {
        second.post("receiving", [&] {
          return fi_trecv(second.ep.get(), &in[i * kBytes], kBytes, nullptr, FI_ADDR_UNSPEC, i, 0,
                          nullptr);
        });
        second.post("sending", [&] {
          return fi_tsend(second.ep.get(), out.data(), kBytes, nullptr, peer_of_second, i, nullptr);
        });
      }
      exchange(first, peer_of_first, kBytes, 30);
      second.drain(2 * kWaiting, "messages that came while the first domain polled");
      for (std::uint64_t i = 0; i < kWaiting; ++i) {
        require_pattern(std::span(in).subspan(i * kBytes, kBytes), 1, "message");
      }
      if (plain_network() && !over("dpdk:net_tap")) {  // whose rule is about one UDP port
        require(second.counter("nic_kernel_packets_received") == 0, "packets came by the kernel");
      }
      channel.meet(&second);
    }
    exchange(first, peer_of_first, kBytes, 30);
    channel.meet(&first);
  };
  EXPECT_EQ(run_on_both(run), "");
}

// One of several processes that all exchange messages with each other.
class Member {
 public:
  using Channels = std::array<Channel*, kProcesses>;  // to each other one

  Member(std::size_t self, const Channels& channels) : self_(self), channels_(channels) {
    for_others(kProcesses, [&](std::size_t i) { channels_[i]->send_bytes(node_.name()); });
    for_others(kProcesses, [&](std::size_t i) {
      peers_[i] = node_.insert(channels_[i]->receive_bytes(&node_));
    });
  }

  // With the first `members` of all.
  void exchange_with(std::size_t members, std::uint64_t round) {
    using Buffers = std::vector<std::vector<std::byte>>;
    Buffers in(members * kMessages, std::vector<std::byte>(kBytes));
    Buffers out(members * kMessages, std::vector<std::byte>(kBytes));
    std::size_t expected = 0;
    for (std::uint64_t message = 0; message < kMessages; ++message) {
      for_others(members, [&](std::size_t i) {
        auto& to = in[i * kMessages + message];
        auto& from = out[i * kMessages + message];
        const auto tag = [&](std::size_t sender) { return round << 32 | sender << 16 | message; };
        fill_pattern(from, tag(self_));
        node_.post("receiving", [&] {
          return fi_trecv(node_.ep.get(), to.data(), kBytes, nullptr, FI_ADDR_UNSPEC, tag(i), 0,
                          nullptr);
        });
        node_.post("sending", [&] {
          return fi_tsend(node_.ep.get(), from.data(), kBytes, nullptr, peers_[i], tag(self_),
                          nullptr);
        });
        expected += 2;
      });
    }
    node_.drain(expected, "messages of all");
    for_others(members, [&](std::size_t i) {
      for (std::uint64_t message = 0; message < kMessages; ++message) {
        require_pattern(in[i * kMessages + message], round << 32 | i << 16 | message, "message");
      }
    });
  }

  void meet(std::size_t members) {
    for_others(members, [&](std::size_t i) { channels_[i]->send('m'); });
    for_others(members, [&](std::size_t i) { channels_[i]->receive<char>(&node_); });
  }

  std::uint16_t port() const { return udp_port(node_.name()); }

  // Over the back end itself, not through the kernel.
  std::uint64_t packets_of_the_device() const {
    return node_.counter("nic_packets_sent") - node_.counter("nic_kernel_packets_sent");
  }

 private:
  template <class Do>
  void for_others(std::size_t members, Do&& action) const {
    for (std::size_t i = 0; i < members; ++i) {
      if (i != self_) action(i);
    }
  }

  Node node_;
  std::size_t self_;
  Channels channels_;
  std::array<fi_addr_t, kProcesses> peers_{};
};

// Four at each of two addresses, each with a port or slot of its own; those of one host reach each
// other too. The last one is killed, with its back end open, and the others go on. `prepare`: in
// each process at first, with its number.
void exchange_all_to_all(const std::function<void(std::size_t)>& prepare) {
  std::vector<ChannelPair> pairs(kProcesses * kProcesses);  // [low * kProcesses + high]
  const auto run = [&](std::size_t self) {
    prepare(self);
    Member::Channels channels{};
    for (std::size_t i = 0; i < kProcesses; ++i) {
      if (i < self) channels[i] = &pairs[i * kProcesses + self].right;
      if (i > self) channels[i] = &pairs[self * kProcesses + i].left;
    }
    Member member(self, channels);
    const char* nic = std::getenv("FI_UET_NIC");
    const bool shares = nic != nullptr && std::string(nic).starts_with("shared") && !ipv6();
    require(!shares || member.port() >= kFirstSlotPort, "it has a port of its own");
    member.exchange_with(kProcesses, 1);
    member.meet(kProcesses);
    if (self == kProcesses - 1) ::raise(SIGKILL);
    member.exchange_with(kProcesses - 1, 2);
    member.meet(kProcesses - 1);
    require(over_udp() || member.packets_of_the_device() > 0, "the kernel carried everything");
  };
  std::vector<std::unique_ptr<Process>> all;
  for (std::size_t i = 0; i < kProcesses; ++i) {
    all.push_back(std::make_unique<Process>(std::string(1, static_cast<char>('a' + i)),
                                            Environment{}, [&, i] { run(i); }));
  }
  EXPECT_EQ(all.back()->wait(), "h died by signal Killed");
  for (std::size_t i = 0; i + 1 < kProcesses; ++i) EXPECT_EQ(all[i]->wait(), "");
}

TEST(BackEnd, FourProcessesAllToAll_OutliveOneExit) {
  if (hosts_say(":native")) {
    GTEST_SKIP() << "the native form has no ports, so that one process has the whole address";
  }
  exchange_all_to_all([](std::size_t) {});
  if (hosts_say("xdp")) {
    EXPECT_EQ(xdp_program_of_host_1(), "") << "something is left behind";
  }
}

// Some processes use packet sockets, others do not.
TEST(BackEnd, FourProcesses_HalfByPacketSocket_AllArrive) {
  if (!over_shared_packet()) GTEST_SKIP() << "only for the back end shared:packet";
  exchange_all_to_all([](std::size_t self) {
    const char* nic = std::getenv("FI_UET_NIC");
    const bool mine = nic != nullptr && std::string(nic) == "shared:packet";
    if (mine && self % 4 >= 2) ::setenv("FI_UET_NIC", "shared", 1);
  });
}

// Keeps only the right to open packet sockets.
void give_up_right_to_share() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> rights{};
  rights[0].effective = rights[0].permitted = 1U << CAP_NET_RAW;
  require(::syscall(SYS_capset, &header, rights.data()) == 0, "giving up rights");
}

// The right is optional: without it the process has its own port, and a warning says so.
TEST(BackEnd, WithoutTheRightToShareThePortIsItsOwn) {
  if (!over_shared() || over_udp() || over("packet")) {
    GTEST_SKIP() << "only where all hosts have the back end shared or shared:packet";
  }
  if (::getuid() != 0) GTEST_SKIP() << "needs root, to give its rights up";
  const auto run = [&](Channel& channel) {
    give_up_right_to_share();
    Node node;
    require(ipv6() || udp_port(node.name()) < kFirstSlotPort, "it shares the port");
    exchange(node, node.connect(channel), kBytes, 20);
    channel.meet(&node);
  };
  EXPECT_EQ(run_on_both(run), "");
}

// Packets for a process that has ended do not harm the next process in its slot: each operation
// ends once, and the next two processes exchange messages normally.
TEST(BackEnd, TheNextProcessAtASlotStartsAfresh) {
  if (!over_shared() || !plain_network()) GTEST_SKIP() << "only for the back end shared";
  constexpr std::size_t kLost = 16;
  ChannelPair firsts;
  ChannelPair seconds;
  const auto serve = [](Channel& channel) {
    channel.receive<char>();
    Node node;
    exchange(node, node.connect(channel), kBytes, 20);
    channel.send(udp_port(node.name()));
    channel.receive<char>(&node);
  };
  Process first("first", {}, [&] { serve(firsts.left); });
  Process sender("sender", {}, [&] {
    Node node;
    firsts.right.send('g');
    const fi_addr_t peer = node.connect(firsts.right);
    exchange(node, peer, kBytes, 20);
    const auto slot = firsts.right.receive<std::uint16_t>(&node);
    std::vector<std::byte> lost(10 * kBytes);
    for (std::uint64_t i = 0; i < kLost; ++i) {
      node.post("sending", [&] {
        return fi_tsend(node.ep.get(), lost.data(), lost.size(), nullptr, peer, 100 + i, nullptr);
      });
      if (i == kLost / 2) require(::kill(first.pid(), SIGKILL) == 0, "kill");
    }
    wait_for_exit(first.pid());
    seconds.right.send('g');
    const fi_addr_t next = node.connect(seconds.right);
    std::size_t ended = 0;
    for (const auto until = Clock::now() + kDeadline / 2; ended < kLost && Clock::now() < until;) {
      if (node.poll()) ++ended;
    }
    require(ended == kLost, "operations to the first one have not ended");
    exchange(node, next, kBytes, 20);
    require(seconds.right.receive<std::uint16_t>(&node) == slot, "it has another slot");
    seconds.right.send('e');
  });
  Process second("second", {}, [&] { serve(seconds.left); });
  EXPECT_EQ(wait_for_all({&sender, &second}), "");
  EXPECT_EQ(first.wait(), "first died by signal Killed");
}

// Every answer to a bad network is seen at both ends, and messages arrive whole all the same.
TEST(BackEnd, ImpairedNetworkIsRecoveredFrom) {
  if (std::getenv("UET_E2E_IMPAIR") == nullptr) GTEST_SKIP() << "the network is a good one";
  const auto run = [](Channel& channel) {
    Node node;
    const fi_addr_t peer = node.connect(channel);
    const std::array<std::string, 5> seen = {"pds_trimmed_received", "pds_nacks_sent_trimmed",
                                             "pds_nacks_received_trimmed", "cms_trims_in_fabric",
                                             "cms_marks_received"};
    const auto missing = [&] {
      for (const std::string& name : seen) {
        if (node.counter(name) == 0) return name;
      }
      return std::string();
    };
    for (int round = 0; round < 100; ++round) {
      exchange(node, peer, kBytes, 50);
      channel.send(missing().empty());
      const bool other_has_seen_all = channel.receive<bool>(&node);
      if (missing().empty() && other_has_seen_all) break;
    }
    require(missing().empty(), missing() + " counts nothing");
    channel.meet(&node);
  };
  EXPECT_EQ(run_on_both(run), "");
}

// A kernel sender leaves trains whole if it expects that hardware segments them. Frame devices
// drop whole trains, which a counter shows; retransmissions, which are sent alone, recover them.
TEST(BackEnd, UnsegmentedTrainsAreCountedAndRecoveredFrom) {
  if (std::getenv("UET_E2E_TRAINS") == nullptr) GTEST_SKIP() << "kernel senders send no trains";
  const auto run = [](Channel& channel) {
    Node node;
    exchange(node, node.connect(channel), 60'000, 3);
    const std::string nic = node.info->nic->device_attr->driver;
    const std::uint64_t lost =  // DPDK's driver does not say that a frame was longer
        node.counter("nic_receive_truncated") + node.counter("nic_frames_refused");
    require((lost > 0) == (nic != "udp"), std::to_string(lost) + " frames were lost");
    channel.meet(&node);
  };
  EXPECT_EQ(run_on_both(run), "");
}

// Payload in registered memory is read by the device, and no longer than it is registered: the
// stand-in for verbs reads as late as it may and fails where the memory has gone. Drivers of DPDK's
// virtual devices read it at once.
TEST(BackEnd, RegisteredMemory_GatheredUntilDeregistered) {
  const auto gathers_over = [](const std::string& nic) {
    const bool dpdk = nic.starts_with("dpdk") && nic.find("net_af_xdp") == std::string::npos;
    return nic.starts_with("verbs") || dpdk;
  };
  if (!over("verbs") && !over("dpdk")) GTEST_SKIP() << "no device here gathers";
  const auto run = [&](Channel& channel) {
    Node node;
    const fi_addr_t peer = node.connect(channel);
    exchange(node, peer, kBytes, 200);  // long enough to ask for the next hop again
    constexpr std::size_t kLong = 100'000;
    const char* nic = std::getenv("FI_UET_NIC");
    const bool gathers = nic != nullptr && gathers_over(nic);
    for (std::uint64_t round = 0; round < 20; ++round) {
      std::vector<std::byte> out(kLong);
      std::vector<std::byte> in(kLong);
      fid_mr* region = nullptr;
      check(fi_mr_reg(node.domain.get(), out.data(), kLong, FI_SEND, 0, 0, 0, &region, nullptr),
            "fi_mr_reg");
      const std::uint64_t before = node.counter("nic_packets_gathered");
      fill_pattern(out, round);
      node.post("receiving", [&] {
        return fi_trecv(node.ep.get(), in.data(), kLong, nullptr, FI_ADDR_UNSPEC, round, 0,
                        nullptr);
      });
      // The latest registration is the one that is used; it goes while packets are on their way.
      fid_mr* passing = nullptr;
      check(fi_mr_reg(node.domain.get(), out.data(), kLong, FI_REMOTE_READ, 0, round + 1, 0,
                      &passing, nullptr),
            "fi_mr_reg");
      node.post("sending", [&] {
        return fi_tsend(node.ep.get(), out.data(), kLong, fi_mr_desc(region), peer, round, nullptr);
      });
      check(fi_close(&passing->fid), "fi_close of the region that packets on their way lie in");
      node.drain(2, "a message");
      require_pattern(in, round, "message");
      const std::uint64_t gathered = node.counter("nic_packets_gathered") - before;
      require(gathers ? gathered >= kLong / 10'000 : gathered == 0,
              std::to_string(gathered) + " packets were gathered");
      check(fi_close(&region->fid), "fi_close of the region");
    }
    require(node.counter("nic_kernel_errors") == 0, "the device failed");
    channel.meet(&node);
  };
  EXPECT_EQ(run_on_both(run), "");
}

// Without the device's checksums the back end writes its own; a failed queue pair is restarted.
TEST(BackEnd, DevicesOfVerbsMayLackChecksumsAndBreak) {
  if (!over("verbs")) GTEST_SKIP() << "about devices of the back end verbs";
  for (const bool breaks : {false, true}) {
    const auto run = [&](Channel& channel) {
      Node node;
      exchange(node, node.connect(channel), kBytes, 300);
      const char* nic = std::getenv("FI_UET_NIC");
      const bool verbs = nic != nullptr && std::string(nic).starts_with("verbs");
      require((node.counter("nic_kernel_errors") > 0) == (breaks && verbs),
              "the queue pair did not fail as often as it should");
      channel.meet(&node);
    };
    const Environment environment = {{"UET_FAKE_VERBS", breaks ? "breaks" : "no_checksum"}};
    EXPECT_EQ(run_on_both(run, environment), "") << (breaks ? "breaks" : "no_checksum");
  }
}

TEST(BackEnd, OfVerbsOpensTheDeviceThatIsNamed) {
  if (!over("verbs")) GTEST_SKIP() << "about devices of the back end verbs";
  const std::string native = over("verbs:native") ? ",native" : "";
  const auto run = [&](Channel& channel) {
    const std::string nic = std::getenv("FI_UET_NIC");
    if (nic.starts_with("verbs")) {
      ::setenv("FI_UET_NIC", ("verbs:fake_eth0,port=1" + native).c_str(), 1);
    }
    Node node;
    exchange(node, node.connect(channel), kBytes, 3);
    channel.meet(&node);
  };
  EXPECT_EQ(run_on_both(run), "");
}

}  // namespace
}  // namespace uet::e2e
