// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How back ends open, what they say when they cannot, and what a process that has one open leaves
// to its children. Runs inside in_network, with two hosts.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "e2e/harness.h"
#include "exchange.h"
#include "hosts.h"

namespace uet::e2e {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kBytes = 5000;

// A process that cannot open its back end: what it warns of is in `said`. `prepare`: in it, before.
// Returns what went wrong.
std::string try_to_open(
    Environment environment, std::string& said, const std::function<void()>& prepare = [] {}) {
  std::array<int, 2> ends;
  require(::pipe(ends.data()) == 0, "pipe");
  environment["FI_LOG_LEVEL"] = "warn";
  Process process("process", environment, [&] {
    ::dup2(ends[1], STDERR_FILENO);
    prepare();
    try {
      Node node;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      return;
    }
    fail("it opened");
  });
  ::close(ends[1]);
  said.resize(64 * 1024);
  std::size_t length = 0;
  for (ssize_t count = 1; count > 0 && length < said.size();) {
    count = ::read(ends[0], said.data() + length, said.size() - length);
    if (count > 0) length += static_cast<std::size_t>(count);
  }
  ::close(ends[0]);
  said.resize(length);
  return process.wait();
}

// The kernel frees a queue some time after its process has ended; the next process waits for it.
TEST(BackEnd, OpensAgainAfterAProcessWasKilled) {
  if (!over("xdp") || !plain_network()) GTEST_SKIP() << "only for the back end xdp";
  for (int i = 0; i < 8; ++i) {  // on the hosts in turn
    Process process("process", {}, [] {
      Node node;
      ::raise(SIGKILL);
    });
    ASSERT_EQ(process.wait(), "process died by signal Killed") << i;
  }
}

// A process does not wait for a queue that another process uses.
TEST(BackEnd, AQueueThatALivingProcessHasIsRefusedAtOnce) {
  if (!over("xdp") || over_udp() || has_part_of_the_queues() || !plain_network()) {
    GTEST_SKIP() << "only where all hosts have the back end xdp with one queue";
  }
  std::vector<ChannelPair> pairs(2);
  const auto hold = [](Channel& channel) {
    Node node;
    channel.meet();
    channel.meet();
  };
  Process first("first", {}, [&] { hold(pairs[0].left); });
  Process second("second", {}, [&] { hold(pairs[1].left); });
  for (ChannelPair& pair : pairs) pair.right.meet();
  const std::string reason = hosts_say(":native")
                                 ? "is taken by another socket"
                                 : "no receive queue is free, of 1: other processes "
                                   "have them, and each needs one of its own";
  for (int i = 0; i < 2; ++i) {  // one on each host
    std::string said;
    const Clock::time_point begin = Clock::now();
    EXPECT_EQ(try_to_open({}, said), "");
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5)) << "it waited";
    EXPECT_NE(said.find(reason), std::string::npos) << said;
  }
  for (ChannelPair& pair : pairs) pair.right.meet();
  EXPECT_EQ(wait_for_all({&first, &second}), "");
}

// There can be only one program on an interface, and a foreign one stays.
TEST(BackEnd, AForeignXdpProgramIsRefused) {
  if (!hosts_say("xdp")) GTEST_SKIP() << "only for the back end xdp";
  const std::string set = "ip -n host-1 link set dev eth0 xdpgeneric ";
  const Output attached = run_program(
      set + "object /usr/lib/x86_64-linux-gnu/bpf/xdpfilt_alw_udp.o program xdpfilt_alw_udp", {});
  ASSERT_EQ(attached.status, 0) << attached.text;
  const auto run = [] {
    try {
      Node node;
    } catch (const std::exception& error) {
      const std::string what = error.what();
      require(what.find("fi_domain: Address already in use") != std::string::npos, what);
      return;
    }
    fail("it opened");
  };
  // Hosts come in turn, the second one first; that has no program.
  Process a("a", {}, [] { Node node; });
  Process b("b", {}, run);
  const std::string first = a.wait();
  const std::string second = b.wait();
  EXPECT_THAT(xdp_program_of_host_1(), ::testing::HasSubstr("xdpfilt_alw_udp"));
  EXPECT_EQ(run_program(set + "off", {}).status, 0);
  EXPECT_EQ(first + second, "");
}

void give_up_all_rights() {
  require(::setgroups(0, nullptr) == 0 && ::setuid(65534) == 0, "giving up the rights");
}

// fi_domain opens the back end that the application chose or fails; it never opens another one.
TEST(BackEnd, WithoutTheRightDoesNotOpen) {
  if (over_udp() || (over_shared() && !over_shared_packet()) || over("dpdk:net_memif")) {
    GTEST_SKIP() << "udp and memif need no right, shared does without";
  }
  if (::getuid() != 0) GTEST_SKIP() << "needs root, to give its rights up";
  std::string said;
  EXPECT_EQ(try_to_open({}, said, give_up_all_rights), "");
  EXPECT_THAT(said, HasSubstr("fi_domain: Operation not supported"));
  EXPECT_THAT(said, HasSubstr("setcap cap_net_")) << "what it lacks, and how to get it";
}

// The message names the missing feature of the device, and the remedy.
TEST(BackEnd, SaysWhatADeviceOfVerbsLacks) {
  if (!over("verbs")) GTEST_SKIP() << "about devices of the back end verbs";
  const std::array<std::array<std::string, 3>, 6> cases = {{
      {"no_device", "verbs", "there is no RDMA device (Function not implemented); load the driver"},
      {"no_raw_packet", "verbs", "the device gives no raw-packet queue pair: Operation not supp"},
      {"no_steering", "verbs", "does not steer packets by address and port to a queue"},
      {"", "verbs:mlx5_7", "there is no RDMA device mlx5_7, only fake_eth0"},
      {"", "verbs:fake_eth0,port=2", "the device has no port 2"},
      {"", "verbs:port=x", "'port=x' is no option of it; allowed: verbs[:DEVICE]"},
  }};
  for (const auto& [lacks, nic, answer] : cases) {
    std::string said;
    const std::string ended = try_to_open({{"UET_FAKE_VERBS", lacks}, {"FI_UET_NIC", nic}}, said);
    EXPECT_EQ(ended, "") << nic << " " << lacks;
    EXPECT_NE(said.find(answer), std::string::npos) << nic << " " << lacks << ": " << said;
  }
}

bool is_installed(const std::string& nic) {
  const std::string module = "/libuet-nic-" + nic.substr(0, nic.find(':')) + ".so";
  const char* directory = std::getenv("FI_PROVIDER_PATH");
  return directory != nullptr && std::filesystem::exists(directory + module);
}

// The message says why the choice is wrong, and which choices are right.
TEST(BackEnd, BadNameOptionOrInterface_IsNamed) {
  if (!hosts_say(",udp;") || !plain_network()) GTEST_SKIP() << "once is enough";
  struct Case {
    std::string nic;
    std::string interface;
    std::string answer;
  };
  const std::vector<Case> cases = {
      {"nosuch", "eth0", "there is no NIC back end 'nosuch' here; there is udp, "},
      {"udp:x", "eth0", "takes no options: leave out 'x'"},
      {"packet", "eth9", "eth9"},
      {"packet", "lo", "sends Ethernet frames, which lo does not carry"},
      {"packet:x", "eth0", "'x'"},
      {"shared:x", "eth0", "'x' is no option of it; allowed: packet"},
      {"shared:packet", "lo", "sends Ethernet frames, which lo does not carry"},
      {"xdp:x", "eth0", "'x' is no option of it; allowed: native, generic, copy, zerocopy"},
      {"xdp:queue=7", "eth0", "eth0 has receive queues 0 to 0"},
      {"xdp:zerocopy", "eth0", "leave out the option 'zerocopy'"},
      {"xdp", "lo", "sends Ethernet frames, which lo does not carry"},
      {"dpdk", "eth0", "a device is wanted: dpdk:net_af_packet"},
      {"dpdk:x", "eth0", "a device is wanted: dpdk:net_af_packet"},
      {"dpdk:net_nosuch", "eth0", "cannot make net_nosuch"},
      {"dpdk:0000:99:00.0", "eth0", "is it bound to a driver of DPDK"},
      {"dpdk:net_memif,role=server,socket=/nosuch/x", "eth0", "cannot"},
      {"dpdk:net_af_packet", "lo", "sends Ethernet frames, which lo does not carry"},
      {"verbs", "lo", "sends Ethernet frames, which lo does not carry"},
      {"verbs:x", "eth0", "there is no RDMA device x, only fake_eth0"},
  };
  for (const auto& [nic, interface, answer] : cases) {
    const bool built_in = nic.starts_with("udp") || nic == "nosuch";
    if (!built_in && !is_installed(nic)) {
      std::printf("not tried, not built: %s\n", nic.c_str());
      continue;
    }
    std::string said;
    const Environment environment = {{"FI_UET_NIC", nic}, {"FI_UET_IFACE", interface}};
    EXPECT_EQ(try_to_open(environment, said), "") << nic << " " << interface;
    EXPECT_THAT(said, HasSubstr(answer)) << nic << " " << interface;
  }
}

// EAL refuses what it has no memory for; the process is as it was and takes another back end.
TEST(BackEnd, WithoutMemoryForDpdkTheProcessGoesOn) {
  if (!over("dpdk") || over_udp()) GTEST_SKIP() << "only where all hosts have the back end dpdk";
  std::string said;
  const auto prepare = [] {
    constexpr rlim_t kTooLittle = 160U << 20;
    rlimit before{};
    require(::getrlimit(RLIMIT_AS, &before) == 0, "getrlimit");
    const rlimit limit{kTooLittle, before.rlim_max};
    require(::setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
    bool opened = true;
    try {
      Node node;
    } catch (const std::exception&) {
      opened = false;
    }
    require(!opened, "it opened");
    require(::setrlimit(RLIMIT_AS, &before) == 0, "setrlimit");
    const std::string nic = std::getenv("FI_UET_NIC");
    ::setenv("FI_UET_NIC", "udp", 1);
    { Node node; }
    ::setenv("FI_UET_NIC", nic.c_str(), 1);
  };
  EXPECT_EQ(try_to_open({}, said, prepare), "") << said;
  EXPECT_THAT(said, HasSubstr("DPDK does not start"));
  EXPECT_THAT(said, HasSubstr("See that memory is free, or use FI_UET_NIC=udp"));
}

TEST(BackEnd, IsShownByFiInfo) {
  if (built_with_sanitizer()) GTEST_SKIP() << "fi_info lacks the sanitizer's run time";
  Process process("process", {}, [] {
    const std::string nic = std::getenv("FI_UET_NIC");
    const Output output = run_program("fi_info -p uet -v", {});
    require(output.status == 0, output.text);
    require(output.text.find("driver: " + nic + "\n") != std::string::npos, output.text);
  });
  EXPECT_EQ(process.wait(), "");
}

// Descriptors that are there, each with what it is.
std::map<int, std::string> descriptors(bool inherited_only) {
  std::map<int, std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename().string());
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags < 0 || (inherited_only && (flags & FD_CLOEXEC) != 0)) continue;
    std::error_code gone;
    all[fd] = std::filesystem::read_symlink(entry.path(), gone).string();
  }
  return all;
}

// A program that is executed meanwhile would keep ports, queues and memory as long as it runs.
TEST(BackEnd, ExecutedProgramsInheritNothingOfIt) {
  Process process("process", {}, [] {
    const auto before = descriptors(true);
    Node node;
    std::string left;
    for (const auto& [fd, what] : descriptors(true)) {
      // DPDK's interrupt thread has these, which keep nothing.
      const bool harmless = what.starts_with("pipe:") || what == "anon_inode:[eventpoll]";
      if (!before.contains(fd) && !harmless) left += " " + what;
    }
    require(left.empty(), "a program that is executed would have:" + left);
    require(descriptors(false).size() > before.size(), "it has no descriptors");
  });
  EXPECT_EQ(process.wait(), "");
}

std::vector<struct sigaction> signal_handlers() {
  std::vector<struct sigaction> all(static_cast<std::size_t>(SIGRTMAX) + 1);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    ::sigaction(signal, nullptr, &all[static_cast<std::size_t>(signal)]);
  }
  return all;
}

// Nothing that a back end or its libraries do with signals reaches the program.
TEST(BackEnd, LeavesTheProgramItsSignals) {
  const auto run = [](Channel& channel) {
    const auto before = signal_handlers();
    Node node;
    exchange(node, node.connect(channel), kBytes, 3);
    channel.meet(&node);
    const auto after = signal_handlers();
    for (std::size_t i = 1; i < before.size(); ++i) {
      require(before[i].sa_handler == after[i].sa_handler,
              "signal " + std::to_string(i) + " has another handler");
    }
  };
  EXPECT_EQ(run_on_both(run), "");
}

// CMS-723: a veth's driver states 10 Gb/s of what a processor copies.
TEST(BackEnd, AVethIsTakenForMemory) {
  if (!over_udp()) GTEST_SKIP() << "the interface is the same for all back ends";
  const auto run = [](Channel&) {
    Node node;
    const std::uint64_t speed = node.info->nic->link_attr->speed;
    require(speed == 100'000'000'000, "speed " + std::to_string(speed));
  };
  EXPECT_EQ(run_on_both(run), "");
}

// A child of a process that has one open opens one of its own. DPDK's memory is the parent's, so
// that the child is refused, and the parent goes on.
TEST(BackEnd, AForkedChildOpensItsOwnUnlessItIsOfDpdk) {
  if (over("xdp") || over("verbs:native") || over("packet:native")) {
    GTEST_SKIP() << "one process has the whole interface or address";
  }
  const auto run = [](Channel& channel) {
    ::setenv("FI_LOG_LEVEL", "warn", 1);
    Node node;
    exchange(node, node.connect(channel), kBytes, 3);
    const std::vector<std::byte> name = node.name();
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      int status = 0;
      const int said = ::memfd_create("said", MFD_CLOEXEC);
      ::dup2(said, STDERR_FILENO);
      try {
        Node own;
        status = own.name() == name ? 2 : 0;
      } catch (const std::exception& error) {
        std::string text(64 * 1024, '\0');
        text.resize(static_cast<std::size_t>(
            std::max<ssize_t>(::pread(said, text.data(), text.size(), 0), 0)));
        std::printf("the child: %s: %s\n", error.what(), text.c_str());
        std::fflush(stdout);
        status = text.find("forked from one that uses DPDK") != std::string::npos ? 1 : 3;
      }
      ::_exit(status);
    }
    int status = 0;
    require(::waitpid(child, &status, 0) == child && WIFEXITED(status), "the child died");
    const bool dpdk = std::string(std::getenv("FI_UET_NIC")).starts_with("dpdk");
    require(WEXITSTATUS(status) == (dpdk ? 1 : 0),
            "the child ended with status " + std::to_string(WEXITSTATUS(status)));
    channel.meet(&node);
    exchange(node, node.connect(channel), kBytes, 3);
    channel.meet(&node);
  };
  EXPECT_EQ(run_on_both(run), "");
}

}  // namespace
}  // namespace uet::e2e
