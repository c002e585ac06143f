// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Transport security from outside (FI_UET_TSS): transfers, what is on the wire, faults, rotation,
// restart, and what a member and its peer see where they do not agree.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <thread>
#include <utility>

#include "harness.h"

namespace {
// Messages that the plug-in has handed to the kernel in this process.
std::atomic<std::uint64_t> messages_to_kernel{0};
}  // namespace

// The one that the plug-in calls, since a program's symbols come before those of libraries.
extern "C" __attribute__((visibility("default"), used)) int sendmmsg(int fd, mmsghdr* messages,
                                                                     unsigned count, int flags) {
  const long sent = ::syscall(SYS_sendmmsg, fd, messages, count, flags);
  if (sent > 0) messages_to_kernel += static_cast<std::uint64_t>(sent);
  return static_cast<int>(sent);
}

namespace uet::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kCanary = "the canary that sings in clear";
const std::string kKey(64, '1');
const std::string kNextKey(64, '2');

std::string key_line(int an, const std::string& key, int epoch = 0) {
  return "key " + std::to_string(an) + " " + std::to_string(epoch) + " fresh " + key + "\n";
}

void write_file(const std::string& name, const std::string& text) {
  const std::string next = name + ".next";
  const int fd = ::open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  require(fd >= 0, "cannot write " + next);
  require(::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()), "write");
  ::close(fd);
  std::filesystem::rename(next, name);
}

std::string text_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Tss : public ::testing::Test {
 protected:
  void SetUp() override {
    if (provider() != "uet") GTEST_SKIP() << "looks at packets of uet";
    char pattern[] = "/tmp/uet_e2e_tss_XXXXXX";
    directory_ = ::mkdtemp(pattern);
    ::mkdir((directory_ + "/run").c_str(), 0700);
    write_keys("keys", key_line(0, kKey) + "active 0\n");
  }
  void TearDown() override {
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }
  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  void write_keys(const std::string& name, const std::string& lines) const {
    write_file(path(name), "uet-tss-keys 1\ndomain 7\nmode cluster\nguard 2\n" + lines);
  }
  Environment secured(const Environment& more = {}) const {
    Environment all = {{"FI_UET_TSS", "require"},
                       {"FI_UET_TSS_KEYS", path("keys")},
                       {"XDG_RUNTIME_DIR", path("run")}};
    for (const auto& [name, value] : more) all[name] = value;
    return all;
  }
  // Runs both, of which the sender sends `count` messages of `bytes` to the receiver; then `check`
  // of each.
  std::string transfer(
      const Environment& sender, const Environment& receiver, std::size_t bytes, int count,
      const std::function<void(Node&)>& check = [](Node&) {}) const;

  std::string directory_;
};

std::vector<std::byte> canaries(std::size_t bytes) {
  std::vector<std::byte> memory(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    memory[i] = static_cast<std::byte>(kCanary[i % kCanary.size()]);
  }
  return memory;
}

void send_messages(Node& node, fi_addr_t peer, std::size_t bytes, int count) {
  const std::vector<std::byte> memory = canaries(bytes);
  for (int i = 0; i < count; ++i) {
    node.post("sending", [&] {
      return fi_tsend(node.ep.get(), memory.data(), bytes, nullptr, peer, 1, nullptr);
    });
    node.next("sending");
  }
}

void receive_messages(Node& node, fi_addr_t peer, std::size_t bytes, int count) {
  const std::vector<std::byte> wanted = canaries(bytes);
  for (int i = 0; i < count; ++i) {
    std::vector<std::byte> memory(bytes);
    node.post("receiving", [&] {
      return fi_trecv(node.ep.get(), memory.data(), bytes, nullptr, peer, 1, 0, nullptr);
    });
    require(node.next("receiving").length == bytes && memory == wanted, "other data came");
  }
}

std::string Tss::transfer(const Environment& sender, const Environment& receiver, std::size_t bytes,
                          int count, const std::function<void(Node&)>& check) const {
  ChannelPair pair;
  Process from("sender", sender, [&] {
    Node node;
    send_messages(node, node.connect(pair.left), bytes, count);
    pair.left.meet(&node);
    check(node);
  });
  Process to("receiver", receiver, [&] {
    Node node;
    receive_messages(node, node.connect(pair.right), bytes, count);
    pair.right.meet(&node);
    check(node);
  });
  return wait_for_all({&from, &to});
}

// The answer of fi_domain in a process with this environment.
int open_result(const Environment& environment, const std::string& log) {
  int ends[2];
  require(::pipe(ends) == 0, "pipe");
  Environment all = environment;
  all.emplace("FI_LOG_LEVEL", "warn");
  Process process("opener", all, [&] {
    require(::freopen(log.c_str(), "w", stderr) != nullptr, "freopen");
    fi_info* const hints = fi_allocinfo();
    hints->ep_attr->type = FI_EP_RDM;
    hints->fabric_attr->prov_name = ::strdup("uet");
    fi_info* info = nullptr;
    int result = fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", nullptr, FI_SOURCE, hints, &info);
    fi_freeinfo(hints);
    if (result == 0) {
      fid_fabric* fabric = nullptr;
      fid_domain* domain = nullptr;
      check(fi_fabric(info->fabric_attr, &fabric, nullptr), "fi_fabric");
      result = fi_domain(fabric, info, &domain, nullptr);
      if (result == 0) fi_close(&domain->fid);
      fi_close(&fabric->fid);
      fi_freeinfo(info);
    }
    require(::write(ends[1], &result, sizeof result) == sizeof result, "write");
  });
  EXPECT_EQ(process.wait(), "");
  int result = 1;
  require(::read(ends[0], &result, sizeof result) == sizeof result, "read");
  ::close(ends[0]);
  ::close(ends[1]);
  return result;
}

// One that requires security and one that has none: the operation fails when the peer is given up,
// and the log of the former names the cause.
void expect_failure_with_cause(const Environment& sender, const Environment& receiver,
                               const std::string& log) {
  ChannelPair pair;
  Process from("sender", sender, [&] {
    Node node;
    const fi_addr_t peer = node.connect(pair.left);
    std::vector<std::byte> memory(100);
    node.post("sending", [&] {
      return fi_tsend(node.ep.get(), memory.data(), memory.size(), nullptr, peer, 1, nullptr);
    });
    std::optional<Event> event;
    const auto start = Clock::now();
    while (!(event = node.poll())) require(Clock::now() - start < kDeadline, "no event came");
    require(event->error == FI_ETIMEDOUT, "another error: " + std::to_string(event->error));
    pair.left.send('e');
  });
  Process to("receiver", receiver, [&] {
    require(::freopen(log.c_str(), "w", stderr) != nullptr, "freopen");
    Node node;
    node.connect(pair.right);
    pair.right.receive<char>(&node);
    require(node.counter("pds_requests_delivered") == 0, "a request came through");
  });
  EXPECT_EQ(wait_for_all({&from, &to}), "");
}

const Environment kSoon = {{"FI_LOG_LEVEL", "warn"},
                           {"FI_UET_LOCAL", "off"},
                           {"FI_UET_RTO_INIT_US", "20000"},
                           {"tune.rto_retries", "7"}};

TEST_F(Tss, Tss9_EveryPacketOfATransferIsSealedAndOpened) {
  const std::string pcap = path("wire.pcapng");
  EXPECT_EQ(transfer(secured({{"FI_UET_PCAP", pcap}, {"FI_UET_LOCAL", "off"}}),
                     secured({{"FI_UET_LOCAL", "off"}}), 100'000, 20,
                     [](Node& node) {
                       require(node.counter("tss_out_auth") >= node.counter("nic_packets_sent"),
                               "a packet was not sealed");
                       require(node.counter("tss_in_auth") == node.counter("nic_packets_received"),
                               "a packet was not opened");
                       require(node.counter("tss_in_auth_fail") == 0, "an ICV was wrong");
                     }),
            "");
  const std::string wire = text_of(pcap);  // TSS-70: as on the wire
  EXPECT_GT(wire.size(), 2'000'000U);
  EXPECT_THAT(wire.find(kCanary), std::string::npos);
}

TEST_F(Tss, Tss70_AClearCaptureHasThePacketsBeforeSealing) {
  const std::string pcap = path("wire.pcapng");
  EXPECT_EQ(transfer(secured({{"FI_UET_PCAP", pcap + ",clear"}, {"FI_UET_LOCAL", "off"}}),
                     secured({{"FI_UET_LOCAL", "off"}}), 10'000, 1),
            "");
  EXPECT_EQ(text_of(pcap).find(kCanary), std::string::npos);
  EXPECT_NE(text_of(path("wire.clear.pcapng")).find(kCanary), std::string::npos);
}

// The same search finds the canary where packets are in clear.
TEST_F(Tss, TheCanaryIsSeenInClearPackets) {
  const std::string pcap = path("wire.pcapng");
  EXPECT_EQ(transfer({{"FI_UET_PCAP", pcap}, {"FI_UET_LOCAL", "off"}}, {{"FI_UET_LOCAL", "off"}},
                     10'000, 1),
            "");
  EXPECT_NE(text_of(pcap).find(kCanary), std::string::npos);
}

TEST_F(Tss, Tss64_RingsOfTheHostCarryPlainPackets) {
  const Environment rings = secured({{"FI_UET_LOCAL", "auto"}});
  EXPECT_EQ(transfer(rings, rings, 10'000, 20,
                     [](Node& node) {
                       require(node.counter("nic_local_packets_sent") > 0, "no ring was used");
                       require(node.counter("nic_packets_sent") -
                                       node.counter("nic_local_packets_sent") <=
                                   node.counter("tss_out_auth"),
                               "a packet beside the rings was not sealed");
                     }),
            "");
}

// Another secure domain is another network: not even a ring leads there.
TEST_F(Tss, Tss64_NoRingLeadsToAnotherSecureDomain) {
  write_file(path("other"),
             "uet-tss-keys 1\ndomain 8\nmode cluster\n" + key_line(0, kKey) + "active 0\n");
  Environment other = secured(kSoon);
  other["FI_UET_TSS_KEYS"] = path("other");
  other["FI_UET_LOCAL"] = "auto";
  Environment own = secured(kSoon);
  own["FI_UET_LOCAL"] = "auto";
  expect_failure_with_cause(other, own, path("log"));
  EXPECT_THAT(text_of(path("log")), HasSubstr("another secure domain"));
}

TEST_F(Tss, Tss39And40_DamagedPacket_DroppedAndResent) {
  const Environment faulty =
      secured({{"FI_UET_FAULTS", "corrupt=2%,loss=1%,dup=1%,seed=5"}, {"FI_UET_LOCAL", "off"}});
  EXPECT_EQ(transfer(faulty, faulty, 60'000, 100,
                     [](Node& node) {
                       require(node.counter("tss_in_auth_fail") + node.counter("tss_in_errored") +
                                       node.counter("tss_in_rx_encryption_bypass") +
                                       node.counter("tss_in_invalid_sa") >
                                   0,
                               "no damage was counted");
                       require(node.counter("pds_malformed") == 0, "damage came through");
                     }),
            "");
}

TEST_F(Tss, Tss66_TrimmedPacketsAreCountedAndSentAgain) {
  const Environment trimmed = secured(
      {{"FI_UET_FAULTS", "trim=3%,seed=5"}, {"FI_UET_CC_TRIMMING", "on"}, {"FI_UET_LOCAL", "off"}});
  EXPECT_EQ(transfer(trimmed, trimmed, 60'000, 60,
                     [](Node& node) {
                       require(node.counter("pds_nacks_sent_trimmed") == 0, "a NACK was sent");
                       require(node.counter("pds_trimmed_received") == 0, "one came through");
                       require(node.counter("ses_messages_received") == 0 ||
                                   node.counter("tss_in_trimmed") > 0,
                               "none was counted");
                     }),
            "");
}

// A message to the kernel is a packet or a train of them (UDP_SEGMENT).
TEST_F(Tss, Tss62_TrainsStayTrains) {
  const Environment udp = secured({{"FI_UET_LOCAL", "off"}});
  EXPECT_EQ(transfer(udp, udp, 1 << 20, 20,
                     [](Node& node) {
                       require(node.counter("nic_gso_switched_off") == 0, "trains were refused");
                       const std::uint64_t packets = node.counter("nic_packets_sent");
                       const std::uint64_t messages = messages_to_kernel;
                       const bool sender = node.counter("nic_bytes_sent") > 20'000'000;
                       require(!sender || (messages > 0 && packets > 3 * messages),
                               std::to_string(messages) + " messages for " +
                                   std::to_string(packets) + " packets");
                     }),
            "");
}

// Both steps of a rotation while messages go on (TSS-53): none fails, and no packet comes
// before its key.
TEST_F(Tss, Tss53_RotationDuringATransfer) {
  std::atomic<bool> done{false};
  std::thread manager([&] {
    const auto pause = [&] {
      for (int i = 0; i < 25 && !done; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(60));
      }
    };
    pause();
    write_keys("keys", key_line(0, kKey) + key_line(1, kNextKey) + "active 0\n");
    pause();
    write_keys("keys", key_line(1, kNextKey) + "active 1\n");
    pause();
    done = true;
  });
  ChannelPair pair;
  const Environment udp = secured({{"FI_UET_LOCAL", "off"}});
  constexpr int kRounds = 6;
  Process from("sender", udp, [&] {
    Node node;
    const fi_addr_t peer = node.connect(pair.left);
    for (int i = 0; i < kRounds; ++i) {
      send_messages(node, peer, 50'000, 20);
      const auto end = Clock::now() + std::chrono::milliseconds(900);
      while (Clock::now() < end) node.keep_events();
      pair.left.meet(&node);
    }
    require(node.counter("tss_in_invalid_sa") == 0, "a packet came before its key");
    require(node.counter("tss_in_auth_fail") == 0, "an ICV was wrong");
  });
  Process to("receiver", udp, [&] {
    Node node;
    const fi_addr_t peer = node.connect(pair.right);
    for (int i = 0; i < kRounds; ++i) {
      receive_messages(node, peer, 50'000, 20);
      pair.right.meet(&node);
    }
    require(node.counter("tss_derived_keys") >= 4, "the key was not changed");
  });
  EXPECT_EQ(wait_for_all({&from, &to}), "");
  done = true;
  manager.join();
}

// TSS-37: processes that come one after the other, and beside each other, under one key.
TEST_F(Tss, Tss37_AProcessThatComesBackUsesOtherTscs) {
  const Environment udp = secured({{"FI_UET_LOCAL", "off"}});
  EXPECT_EQ(transfer(udp, udp, 1000, 3), "");
  EXPECT_EQ(transfer(udp, udp, 1000, 3), "");
  const auto file = std::filesystem::directory_iterator(path("run/uet-tss"))->path();
  const char* const cores = std::getenv("FI_UET_CORES");  // FEPs of each process
  const int feps = 4 * (cores != nullptr ? std::stoi(cores) : 1);
  EXPECT_THAT(text_of(file.string()), HasSubstr(std::to_string(feps * 65536)));
  Environment no_directory = udp;
  no_directory["XDG_RUNTIME_DIR"] = "";
  EXPECT_EQ(open_result(no_directory, path("log")), -FI_ENOKEY);
  EXPECT_THAT(text_of(path("log")), HasSubstr("XDG_RUNTIME_DIR is not set"));
}

// AN, SDI, epoch and TSC of each sealed packet of SDI 7 in a capture, in the order of the packets.
std::vector<std::string> sealed_heads(const std::string& file) {
  const std::string text = text_of(file);
  const auto number_at = [&text](std::size_t at) {
    std::uint32_t number = 0;
    std::memcpy(&number, text.data() + at, sizeof number);
    return number;
  };
  constexpr std::uint32_t kEnhancedPacket = 6;
  constexpr std::size_t kHeadBytes = 12;
  std::vector<std::string> heads;
  for (std::size_t at = 0; at + 12 <= text.size(); at += number_at(at + 4)) {
    if (number_at(at) != kEnhancedPacket) continue;
    const std::string packet = text.substr(at + 28, number_at(at + 20));
    // IPv4 and UDP in front of it, behind an Ethernet header or not.
    const std::size_t ip = packet.at(0) == '\x45' ? 0 : 14;
    const std::string head = packet.substr(std::min(ip + 28, packet.size()), kHeadBytes);
    if (head.size() == kHeadBytes && head.substr(1, 3) == std::string("\0\0\7", 3)) {
      heads.push_back(head);
    }
  }
  return heads;
}

// A sender is killed in the middle of its packets, and another one takes its place under the same
// key: the wire never shows an {identity, epoch, TSC} twice. All processes of this host have one
// identity. `between`: what happens to the host meanwhile; the epoch counts among those seen.
void expect_no_iv_twice(const Environment& receiving, const Environment& sending,
                        const std::string& pcap, const std::function<void()>& between) {
  constexpr std::size_t kBytes = 3000;
  ChannelPair first;
  ChannelPair second;
  ChannelPair control;
  Environment watched = receiving;
  watched["FI_UET_PCAP"] = pcap;
  Process to("receiver", watched, [&] {
    Node node;
    receive_messages(node, node.connect(first.right), kBytes, 50);
    control.right.send('k');
    control.right.receive<char>(&node);
    receive_messages(node, node.connect(second.right), kBytes, 50);
    second.right.meet(&node);
  });
  Process victim("victim", sending, [&] {
    Node node;
    send_messages(node, node.connect(first.left), kBytes, 1'000'000);
  });
  const auto limit = Clock::now() + kDeadline;
  while (!control.left.readable() && Clock::now() < limit) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(control.left.readable()) << "the receiver got no messages";
  ASSERT_EQ(::kill(victim.pid(), SIGKILL), 0);
  EXPECT_NE(victim.wait(), "");
  between();
  control.left.send('n');
  Process from("successor", sending, [&] {
    Node node;
    send_messages(node, node.connect(second.left), kBytes, 50);
    second.left.meet(&node);
  });
  EXPECT_EQ(wait_for_all({&from, &to}), "");
  std::vector<std::string> heads = sealed_heads(pcap);
  EXPECT_GT(heads.size(), 200U);
  std::sort(heads.begin(), heads.end());
  EXPECT_EQ(std::adjacent_find(heads.begin(), heads.end()), heads.end());
}

TEST_F(Tss, Tss37_KilledAndStartedAgainNoIvComesTwice) {
  const Environment udp = secured({{"FI_UET_LOCAL", "off"}});
  expect_no_iv_twice(udp, udp, path("wire.pcapng"), [] {});
}

// The files are gone, as after a new start of the host: a process under the old keys is refused,
// and an agent that raises the epoch ends that.
TEST_F(Tss, Tss37_WithoutFilesOnlyANewerEpochOpens) {
  const Environment udp = secured({{"FI_UET_LOCAL", "off"}});
  ::mkdir(path("run-too").c_str(), 0700);
  write_keys("keys", key_line(0, kKey) + "active 0\n");
  Environment receiving = udp;  // another host, as far as its keys go
  write_keys("keys-too", key_line(0, kKey, 5) + "active 0\n");
  receiving["FI_UET_TSS_KEYS"] = path("keys-too");
  receiving["XDG_RUNTIME_DIR"] = path("run-too");
  expect_no_iv_twice(receiving, udp, path("wire.pcapng"), [&] {
    std::filesystem::remove_all(path("run"));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a coarse clock stamps files
    ::mkdir(path("run").c_str(), 0700);
    EXPECT_EQ(open_result(udp, path("log")), -FI_ENOKEY);
    EXPECT_THAT(text_of(path("log")), HasSubstr("raise the epoch in the key file"));
    write_keys("keys", key_line(0, kKey, 1) + "active 0\n");
    EXPECT_EQ(open_result(udp, path("log")), 0);
  });
}

TEST_F(Tss, Tss68_NoKeys_RequireRefusesPreferIsClear) {
  Environment none = secured();
  none["FI_UET_TSS_KEYS"] = path("none");
  EXPECT_EQ(open_result(none, path("log")), -FI_ENOKEY);
  EXPECT_THAT(text_of(path("log")), HasSubstr("uet_keys"));
  none["FI_UET_TSS"] = "prefer";
  EXPECT_EQ(open_result(none, path("log")), 0);
  EXPECT_THAT(text_of(path("log")), HasSubstr("in clear"));
  EXPECT_EQ(transfer(none, {}, 1000, 1), "");
  EXPECT_EQ(transfer(secured({{"FI_UET_TSS", "prefer"}, {"FI_UET_LOCAL", "off"}}),
                     secured({{"FI_UET_LOCAL", "off"}}), 1000, 1),
            "");
}

TEST_F(Tss, Tss60_AKeyFileThatOthersMayReadIsRefused) {
  ASSERT_EQ(::chmod(path("keys").c_str(), 0644), 0);
  EXPECT_EQ(open_result(secured(), path("log")), -FI_EKEYREJECTED);
  EXPECT_THAT(text_of(path("log")), HasSubstr("chmod 600"));
  EXPECT_THAT(text_of(path("log")), Not(HasSubstr(kKey)));
}

TEST_F(Tss, Tss8And65_CrcAndASharedPortAreRefused) {
  EXPECT_EQ(open_result(secured({{"FI_UET_CRC", "yes"}}), path("log")), -FI_ENODATA);
  EXPECT_THAT(text_of(path("log")), HasSubstr("FI_UET_CRC=no"));
  EXPECT_EQ(open_result(secured({{"FI_UET_NIC", "shared"}}), path("log")), -FI_ENODATA);
  EXPECT_THAT(text_of(path("log")), HasSubstr("FI_UET_NIC=udp"));
}

TEST_F(Tss, Tss68_KeysComeFromAnInheritedDescriptor) {
  const int fd = ::open(path("keys").c_str(), O_RDONLY);
  ASSERT_GE(fd, 0);
  const Environment by_fd =
      secured({{"FI_UET_TSS_KEYS", "fd:" + std::to_string(fd)}, {"FI_UET_LOCAL", "off"}});
  EXPECT_EQ(transfer(by_fd, secured({{"FI_UET_LOCAL", "off"}}), 1000, 3), "");
  ::close(fd);
}

std::vector<std::uint8_t> long_key(std::uint8_t job, std::uint8_t sdi, std::uint8_t ssi = 0) {
  return {0, 0, 0, job, 0, 0, 0, sdi, 0, 0, 0, ssi};
}

// Two secure domains in one process, by a fi_domain for each: the peers have one of them each.
TEST_F(Tss, Tss67And68_AProcessHasADomainForEachSdi) {
  write_file(path("both"), "uet-tss-keys 1\ndomain 7\nmode cluster\n" + key_line(0, kKey) +
                               "active 0\ndomain 8\nmode cluster\n" + key_line(0, kNextKey) +
                               "active 0\n");
  Environment both = secured({{"FI_UET_TSS_KEYS", path("both")}, {"FI_UET_LOCAL", "off"}});
  ChannelPair seven;
  ChannelPair eight;
  Process middle("middle", both, [&] {
    Node of_seven({.domain_key = long_key(1, 7), .endpoint_key = long_key(1, 7)});
    Node of_eight({.domain_key = long_key(2, 8)});
    const fi_addr_t left = of_seven.connect(seven.left);
    const fi_addr_t right = of_eight.connect(eight.left);
    receive_messages(of_seven, left, 10'000, 3);
    send_messages(of_eight, right, 10'000, 3);
    seven.left.meet(&of_seven);
    eight.left.meet(&of_eight);
    require(of_seven.counter("tss_in_auth") > 0 && of_eight.counter("tss_in_auth") > 0, "opened");
  });
  Process from("sender of SDI 7", secured({{"FI_UET_LOCAL", "off"}}), [&] {
    Node node({.domain_key = long_key(1, 7)});
    send_messages(node, node.connect(seven.right), 10'000, 3);
    seven.right.meet(&node);
  });
  Process to("receiver of SDI 8", both, [&] {
    Node node({.domain_key = long_key(2, 8)});
    receive_messages(node, node.connect(eight.right), 10'000, 3);
    eight.right.meet(&node);
  });
  EXPECT_EQ(wait_for_all({&middle, &from, &to}), "");
}

// A member whose key file says pdc-only, and one that writes to it under a key with the promise
// that repeating is harmless, for which it uses RUDI unless its key file says pdc-only too.
TEST_F(Tss, Tss50_APdcOnlyDomainHasNeitherRudiNorUud) {
  constexpr std::uint64_t kRepeatable = std::uint64_t{1} << 63 | 7;
  write_keys("open", key_line(0, kKey) + "active 0\n");
  write_keys("pdc_only", "pdc-only\n" + key_line(0, kKey) + "active 0\n");
  for (const bool both : {true, false}) {
    Environment target_side = secured(kSoon);
    Environment initiator_side = secured(kSoon);
    target_side["FI_UET_TSS_KEYS"] = path("pdc_only");
    initiator_side["FI_UET_TSS_KEYS"] = path(both ? "pdc_only" : "open");
    initiator_side["tune.rudi"] = "yes";
    ChannelPair pair;
    Process target("target", target_side, [&] {
      Node node;
      node.connect(pair.left);
      std::vector<std::byte> memory(10'000);
      const Region region = node.expose(memory.data(), memory.size(), kRepeatable);
      pair.left.send(RemoteRegion{region.address, region.key});
      pair.left.meet(&node);
      require((memory == canaries(memory.size())) == both, both ? "other data" : "RUDI wrote");
      require((node.counter("pds_replayable_refused") == 0) == both, "what was refused");
    });
    Process initiator("initiator", initiator_side, [&] {
      Node node;
      const fi_addr_t peer = node.connect(pair.right);
      const auto remote = pair.right.receive<RemoteRegion>(&node);
      const std::vector<std::byte> memory = canaries(10'000);
      node.post("writing", [&] {
        return fi_write(node.ep.get(), memory.data(), memory.size(), nullptr, peer, remote.address,
                        remote.key, nullptr);
      });
      std::optional<Event> event;
      while (!event) event = node.poll();
      require(event->error == (both ? 0 : FI_ETIMEDOUT), "error " + std::to_string(event->error));
      require((node.counter("pds_rudi_requests_sent") == 0) == both, "the mode of the write");
      pair.right.meet(&node);
    });
    EXPECT_EQ(wait_for_all({&target, &initiator}), "") << "both: " << both;
  }
  Environment opener = secured({{"FI_LOG_LEVEL", "warn"}});
  opener["FI_UET_TSS_KEYS"] = path("pdc_only");
  Process datagrams("opener", opener, [&] {
    require(::freopen(path("log").c_str(), "w", stderr) != nullptr, "freopen");
    Node node({.type = FI_EP_DGRAM, .capabilities = FI_MSG});
  });
  EXPECT_NE(datagrams.wait(), "");
  EXPECT_THAT(text_of(path("log")), HasSubstr("pdc-only"));
}

// One fi_domain has one SDI and one SSI (TSS-67): its objects cannot name others.
TEST_F(Tss, Tss67_AnEndpointOfAnotherSdiOrSsiIsRefused) {
  for (const auto& key : {long_key(1, 8), long_key(1, 7, 5)}) {
    Process process("opener", secured({{"FI_LOG_LEVEL", "warn"}}), [&] {
      require(::freopen(path("log").c_str(), "w", stderr) != nullptr, "freopen");
      Node node({.domain_key = long_key(1, 7, 4), .endpoint_key = key});
    });
    EXPECT_NE(process.wait(), "");
    EXPECT_THAT(text_of(path("log")), HasSubstr("open a domain of its own with that auth_key"));
  }
  Process process("opener", secured(), [&] {
    Node node({.domain_key = long_key(1, 7, 4), .endpoint_key = long_key(1, 7, 4)});
  });
  EXPECT_EQ(process.wait(), "");
}

constexpr int kBursts = 10;  // at a target that has transfers
constexpr int kBurst = 1000;

// Packets of UET in clear, each of which the target has to look at: `bursts` of them, each after
// `pause`.
void send_garbage(const sockaddr_in& to, int bursts, const std::function<void()>& pause) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  require(fd >= 0 && ::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0,
          "no socket");
  const std::string packet = std::string("\x10\0\0\1", 4) + std::string(60, 'g');
  for (int burst = 0; burst < bursts; ++burst) {
    pause();
    for (int i = 0; i < kBurst; ++i) ::send(fd, packet.data(), packet.size(), 0);
  }
  ::close(fd);
}

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Receives `count` messages of 10,000 bytes while a flood comes, whose bursts it asks for: the next
// one when it has dropped the last one, so that no packet is lost where this process has to wait
// for a processor.
void receive_in_flood(Node& node, fi_addr_t peer, int count, Channel& flood) {
  const std::vector<std::byte> wanted = canaries(10'000);
  std::vector<std::byte> memory(wanted.size());
  const auto post = [&] {
    node.post("receiving", [&] {
      return fi_trecv(node.ep.get(), memory.data(), memory.size(), nullptr, peer, 1, 0, nullptr);
    });
  };
  const auto start = Clock::now();
  int bursts = 0;
  int messages = 0;
  post();
  while (messages < count || bursts < kBursts) {
    require(Clock::now() - start < kDeadline,
            std::to_string(messages) + " messages and " + std::to_string(bursts) + " bursts");
    if (node.poll()) {
      require(memory == wanted, "other data came");
      if (++messages < count) post();
    }
    const std::uint64_t gone =
        node.counter("tss_in_rx_encryption_bypass") + node.counter("nic_receive_overflows");
    if (bursts < kBursts && gone >= std::uint64_t{kBurst} * static_cast<unsigned>(bursts)) {
      flood.send('n');
      ++bursts;
    }
  }
}

// TSS-39: 10^5 packets that no member has sealed come to a secured port. Transfers go on, and
// nothing of them comes through. The CPU time is printed, not judged: of a flood of 10^5 packets a
// second at a sleeping target.
TEST_F(Tss, Tss39_AFloodOfUnsealedPacketsStopsNothing) {
  constexpr int kMessages = 20;
  ChannelPair pair;
  ChannelPair target;
  const Environment udp = secured({{"FI_UET_LOCAL", "off"}});
  Process from("sender", udp, [&] {
    Node node;
    send_messages(node, node.connect(pair.left), 10'000, kMessages);
    pair.left.meet(&node);
  });
  Process to("receiver", udp, [&] {
    Node node({.wait = FI_WAIT_UNSPEC});
    const fi_addr_t peer = node.connect(pair.right);
    target.right.send(udp_address(node.name()));
    receive_in_flood(node, peer, kMessages, target.right);
    target.right.receive<char>(&node);  // the flood has ended
    pair.right.meet(&node);
    const auto dropped = [&] { return node.counter("tss_in_rx_encryption_bypass"); };
    require(dropped() > 1000, "the flood has not come: " + std::to_string(dropped()));
    require(node.counter("tss_in_auth") + dropped() == node.counter("nic_packets_received"),
            "a packet of the flood came through");
    // In a flood the socket drops most of it (TSS-73).
    const auto gone = [&] { return dropped() + node.counter("nic_receive_overflows"); };
    const std::uint64_t before = gone();
    const double start = cpu_seconds();
    fi_cq_tagged_entry entry{};
    target.right.send('a');
    while (!target.right.readable()) (void)fi_cq_sread(node.cq.get(), &entry, 1, nullptr, 100);
    const double per_packet = (cpu_seconds() - start) / static_cast<double>(gone() - before);
    std::printf("CPU time of the target: %.2f us for each unsealed packet\n", per_packet * 1e6);
    std::fflush(stdout);
  });
  Process flood("flood", {}, [&] {
    const auto to_whom = target.left.receive<sockaddr_in>();
    send_garbage(to_whom, kBursts, [&] { target.left.receive<char>(); });
    target.left.send('e');
    target.left.receive<char>();
    auto next = Clock::now();
    send_garbage(to_whom, 100,
                 [&] { std::this_thread::sleep_until(next += std::chrono::milliseconds(10)); });
    target.left.send('e');
  });
  EXPECT_EQ(wait_for_all({&from, &to, &flood}), "");
}

// The flood does not wait for the target.
TEST_F(Tss, Tss73_TransfersGoOnInAFlood) {
  constexpr int kMessages = 100;
  constexpr std::size_t kBytes = 200'000;
  ChannelPair pair;
  ChannelPair target;
  const Environment udp = secured({{"FI_UET_LOCAL", "off"}});
  Process from("sender", udp, [&] {
    Node node;
    send_messages(node, node.connect(pair.left), kBytes, kMessages);
    pair.left.meet(&node);
  });
  Process to("receiver", udp, [&] {
    Node node;
    const fi_addr_t peer = node.connect(pair.right);
    target.right.send(udp_address(node.name()));
    target.right.receive<char>(&node);
    receive_messages(node, peer, kBytes, kMessages);
    target.right.receive<char>(&node);
    pair.right.meet(&node);
    std::printf("looked at %llu packets of the flood\n",
                static_cast<unsigned long long>(node.counter("tss_in_rx_encryption_bypass")));
    std::fflush(stdout);
  });
  Process flood("flood", {}, [&] {
    const auto to_whom = target.left.receive<sockaddr_in>();
    auto next = Clock::now();
    int bursts = 0;
    send_garbage(to_whom, 200, [&] {  // 10^5 packets a second
      if (++bursts == 20) target.left.send('b');
      std::this_thread::sleep_until(next += std::chrono::milliseconds(10));
    });
    target.left.send('e');
  });
  EXPECT_EQ(wait_for_all({&from, &to, &flood}), "");
}

TEST_F(Tss, ClearSender_FailsAndSecureTargetSaysWhy) {
  expect_failure_with_cause(kSoon, secured(kSoon), path("log"));
  EXPECT_THAT(text_of(path("log")), HasSubstr("they are not protected"));
}

TEST_F(Tss, AnotherKeyFailsAndTheTargetNamesTheCause) {
  write_keys("other", key_line(0, kNextKey) + "active 0\n");
  Environment other = secured(kSoon);
  other["FI_UET_TSS_KEYS"] = path("other");
  expect_failure_with_cause(other, secured(kSoon), path("log"));
  EXPECT_THAT(text_of(path("log")), HasSubstr("another key for this SDI"));
}

TEST_F(Tss, ASecuredSenderFailsAtAClearTarget) {
  expect_failure_with_cause(secured(kSoon), kSoon, path("log"));
  EXPECT_THAT(text_of(path("log")), HasSubstr("their sender has FI_UET_TSS on"));
}

}  // namespace
}  // namespace uet::e2e
