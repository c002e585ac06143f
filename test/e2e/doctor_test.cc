// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// uet_doctor as its users run it: on this machine, between two network name spaces, with plug-ins
// and settings that are wrong, and against other ends that misbehave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "harness.h"

namespace uet::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kReady = 0;
constexpr int kNotReady = 1;
constexpr int kUsedWrongly = 2;

struct Result {
  int status = 0;
  std::string text;
};

Result run(const std::string& command, const Environment& environment = {}) {
  const Output output = run_program(command + " 2>&1", environment);
  return {WIFEXITED(output.status) ? WEXITSTATUS(output.status) : -1, output.text};
}

Result doctor(const std::string& options, const Environment& environment = {}) {
  return run(std::string(UET_DOCTOR) + " " + options, environment);
}

bool has_name_spaces() {
  return WEXITSTATUS(std::system("unshare --net --mount true >/dev/null 2>&1")) == 0;
}

// A directory that goes with the object.
class Directory {
 public:
  Directory() {
    std::string pattern = "/tmp/uet_doctor_XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~Directory() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// ---- this machine ------------------------------------------------------------------------------

TEST(Doctor, FindsThisMachineReady) {
  const Result result = doctor("", {{"FI_UET_IFACE", "lo"}});
  EXPECT_EQ(result.status, kReady) << result.text;
  EXPECT_THAT(result.text,
              AllOf(HasSubstr("libfabric.so"), HasSubstr("libuet-fi.so"),
                    HasSubstr("lo 127.0.0.1, MTU 65536"), HasSubstr("WARN  only loopback"),
                    HasSubstr("Self-test at 127"), HasSubstr("MTU: packets of 9000 bytes pass"),
                    HasSubstr("ECN: marks are seen in both directions"), HasSubstr("latency: "),
                    HasSubstr("bandwidth: "), HasSubstr("\nready; failures: 0")));
}

TEST(Doctor, SaysWhyABackEndCannotStart) {
  const Result result = doctor("", {{"FI_UET_IFACE", "lo"}});
  EXPECT_THAT(result.text, HasSubstr("packet cannot start: FI_UET_NIC=packet sends Ethernet "
                                     "frames, which lo does not carry"));
}

TEST(Doctor, TellsHowManyShareThePort) {
  std::vector<int> sockets;
  for (const std::uint16_t port : {4793, 5817, 5848}) {
    sockets.push_back(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::bind(sockets.back(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  }
  const Result result = doctor("", {{"FI_UET_IFACE", "lo"}});
  for (const int fd : sockets) ::close(fd);
  EXPECT_EQ(result.status, kReady) << result.text;
  EXPECT_THAT(result.text, HasSubstr("127.0.0.1: 4793 is shared by 2 of 32 processes"));
}

TEST(Doctor, TellsWhoHasThePort) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(4793);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool ours = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  const Result result = doctor("", {{"FI_UET_IFACE", "lo"}});
  ::close(fd);
  EXPECT_EQ(result.status, kReady) << result.text;
  EXPECT_THAT(result.text, HasSubstr("127.0.0.1: 4793 is taken by "));
  // Another program may have had it before; then that one is named.
  if (ours) {
    EXPECT_THAT(result.text, HasSubstr("(process " + std::to_string(::getpid()) + ")"));
  }
}

TEST(Doctor, TellsHowToRaiseTheLimitOfSocketBuffers) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root, to run a program without its rights";
  const Result result = run(std::string("setpriv --reuid 65534 --clear-groups ") + UET_DOCTOR,
                            {{"FI_UET_SOCKET_BUFFER_BYTES", "1073741824"}, {"FI_UET_IFACE", "lo"}});
  EXPECT_EQ(result.status, kReady) << result.text;
  EXPECT_THAT(
      result.text,
      AllOf(HasSubstr("as root: sysctl -w net.core.rmem_max=1073741824"),
            HasSubstr("as root: sysctl -w net.core.wmem_max=1073741824"),
            HasSubstr("lacks CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN, CAP_PERFMON, CAP_BPF")));
}

// ---- why the provider is not there -------------------------------------------------------------

struct Absence {
  const char* name;
  Environment environment;
  const char* reason;
};

class DoctorAbsence : public ::testing::TestWithParam<Absence> {};

TEST_P(DoctorAbsence, IsExplained) {
  const Result result = doctor("", GetParam().environment);
  EXPECT_EQ(result.status, kNotReady) << result.text;
  EXPECT_THAT(result.text, HasSubstr(GetParam().reason));
  EXPECT_THAT(result.text, HasSubstr("what to do: "));
}

INSTANTIATE_TEST_SUITE_P(
    All, DoctorAbsence,
    ::testing::Values(
        Absence{"DirectoryIsNotThere",
                {{"FI_PROVIDER_PATH", "/nonexistent"}},
                "FI_PROVIDER_PATH names /nonexistent, which is not there"},
        Absence{"PathIsAFile",
                {{"FI_PROVIDER_PATH", "/etc/passwd"}},
                "names the file /etc/passwd, and is read as a directory"},
        Absence{"DirectoryHasNone",
                {{"FI_PROVIDER_PATH", "/usr:/etc"}},
                "there is no libuet-fi.so in FI_PROVIDER_PATH=/usr:/etc"},
        Absence{"FilterOfOthers", {{"FI_PROVIDER", "tcp,shm"}}, "FI_PROVIDER=tcp,shm keeps"},
        Absence{"FilterAgainstIt", {{"FI_PROVIDER", "^UET"}}, "FI_PROVIDER=^UET keeps"},
        Absence{"NoSuchInterface", {{"FI_UET_IFACE", "nope"}}, "FI_UET_IFACE=nope is not valid"},
        Absence{"BadParameter", {{"FI_UET_FAULTS", "x"}}, "bad fault 'x'"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Doctor, TellsWhyAPlugInCannotBeLoaded) {
  const Directory directory;
  const std::string file = directory.path() / "libuet-fi.so";
  std::ofstream(file) << "not a library";
  const Result result = doctor("", {{"FI_PROVIDER_PATH", directory.path()}});
  EXPECT_EQ(result.status, kNotReady);
  EXPECT_THAT(result.text, HasSubstr("FAIL  cannot load " + file));
}

TEST(Doctor, TellsThatALibraryIsNoProvider) {
  // Any library without fi_prov_ini: the one that the test runs with.
  std::ifstream maps("/proc/self/maps");
  std::string library;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/libm.so") != std::string::npos) library = line.substr(line.find('/'));
  }
  ASSERT_NE(library, "");
  const Directory directory;
  fs::copy_file(library, directory.path() / "libuet-fi.so");
  const Result result = doctor("", {{"FI_PROVIDER_PATH", directory.path()}});
  EXPECT_EQ(result.status, kNotReady);
  EXPECT_THAT(result.text, HasSubstr("is not a libfabric provider"));
}

// ---- used wrongly ------------------------------------------------------------------------------

TEST(Doctor, RefusesWrongOptions) {
  for (const char* options :
       {"--port 0", "--port 65536", "--port x", "--port ''", "--port 7x", "--peer", "--peer ''",
        "--peer 127.0.0.1 --serve", "--unknown", "more"}) {
    const Result result = doctor(options);
    EXPECT_EQ(result.status, kUsedWrongly) << options << "\n" << result.text;
    EXPECT_THAT(result.text, HasSubstr("usage: uet_doctor")) << options;
  }
  EXPECT_EQ(doctor("--help").status, kReady);
}

TEST(Doctor, ReportsAMissingServer) {
  const Result result = doctor("--peer 127.0.0.1 --port 1", {{"FI_UET_IFACE", "lo"}});
  EXPECT_EQ(result.status, kNotReady);
  EXPECT_THAT(result.text, HasSubstr("connecting to 127.0.0.1 port 1: Connection refused"));
  EXPECT_THAT(result.text, HasSubstr("run 'uet_doctor --serve' there"));
}

TEST(Doctor, TellsThatAHostHasNoAddress) {
  const Result result = doctor("--peer no.such.host.invalid", {{"FI_UET_IFACE", "lo"}});
  EXPECT_EQ(result.status, kNotReady);
  EXPECT_THAT(result.text, HasSubstr("FAIL  no.such.host.invalid: "));
}

// Not in a handler of a library that libfabric loads, which calls exit() even inside malloc.
TEST(Doctor, IsEndedBySigtermItself) {
  const Directory directory;
  const std::string served = directory.path() / "served";
  const Result result =
      run("bash -c '" UET_DOCTOR " --serve > " + served + " & until grep -q ^serving " + served +
              "; do kill -0 $! || exit; sleep 0.1; done; kill $!; wait $!'",
          {{"FI_UET_IFACE", "lo"}});
  EXPECT_EQ(result.status, 128 + SIGTERM) << result.text;
}

// ---- two hosts ---------------------------------------------------------------------------------

// Runs `change` on two hosts joined by a cable, then, with the variables $HERE and $THERE,  the
// doctor's examination of one by the other, then `afterwards`, which may wait with `await_served N`
// until the other has said so often that it has served: it says so after the one that asked has
// ended.
Result between_hosts(const std::string& change, const std::string& afterwards = "") {
  const Directory directory;
  const std::string script = directory.path() / "hosts.sh";
  const std::string served = directory.path() / "served";
  std::ofstream(script) << "set -e\n"
                           "mount -t tmpfs none /run\n"
                           "ip link set lo up\n"
                           "ip netns add there\n"
                           "ip -n there link set lo up\n"
                           "ip link add name near0 type veth peer name far0 netns there\n"
                           "ip address add 10.77.0.1/24 dev near0\n"
                           "ip -n there address add 10.77.0.2/24 dev far0\n"
                           "ip link set near0 up\n"
                           "ip -n there link set far0 up\n"
                           "await_served() { while kill -0 $!; do [ $(grep -c ^served "
                        << served << ") -ge $1 ] && break; sleep 0.1; done; }\n"
                        << change << "\nip netns exec there env $THERE timeout 280 " << UET_DOCTOR
                        << " --serve > " << served << " 2>&1 &\n"
                        << "trap 'kill $! || true; wait || true; cat " << served << "' EXIT\n"
                        << "while kill -0 $!; do grep -q ^serving " << served
                        << " && break; sleep 0.1; done\n"
                        << "status=0\n"
                        << "env $HERE " << UET_DOCTOR << " --peer 10.77.0.2 || status=$?\n"
                        << afterwards << "\n"
                        << "exit $status\n";
  return run("unshare --net --mount bash " + script);
}

#define REQUIRE_NAME_SPACES() \
  if (!has_name_spaces()) GTEST_SKIP() << "needs the right to make network name spaces (root)"

TEST(DoctorHosts, PathIsGoodAndServedAgainAfterABadClient) {
  REQUIRE_NAME_SPACES();
  const Result result = between_hosts(
      "", "printf x > /dev/tcp/10.77.0.2/7474; " UET_DOCTOR " --peer 10.77.0.2; await_served 2");
  EXPECT_EQ(result.status, kReady) << result.text;
  const std::string path = result.text.substr(result.text.find("Path to 10.77.0.2"));
  EXPECT_THAT(path, AllOf(HasSubstr("loss: "), HasSubstr("MTU: packets of 1500 bytes pass"),
                          HasSubstr("ECN: marks are seen in both directions"),
                          HasSubstr("latency: "), HasSubstr("bandwidth: "),
                          HasSubstr("served 10.77.0.1"), HasSubstr("serving 10.77.0.1: ")));
  EXPECT_GT(path.rfind("served 10.77.0.1"), path.find("serving 10.77.0.1: ")) << path;
}

TEST(DoctorHosts, FindsTheLargestPacketThatPasses) {
  REQUIRE_NAME_SPACES();
  const Result result =
      between_hosts("ip link set near0 mtu 4000; ip -n there link set far0 mtu 1432");
  EXPECT_EQ(result.status, kNotReady) << result.text;
  EXPECT_THAT(result.text, HasSubstr("MTU: packets of 4000 bytes do not pass, at most 1432 do"));
}

TEST(DoctorHosts, TellsThatUdpDoesNotPass) {
  REQUIRE_NAME_SPACES();
  const Result result = between_hosts("ip -n there rule add ipproto udp blackhole");
  EXPECT_EQ(result.status, kNotReady) << result.text;
  EXPECT_THAT(result.text, HasSubstr("UDP packets to port 4793 of 10.77.0.2 do not come back"));
  EXPECT_THAT(result.text, HasSubstr("allow UDP 4793 to 5816 in the firewalls"));
}

// ---- transport security of two hosts -----------------------------------------------------------

struct Security {
  const char* name;
  const char* here;  // lines of the key file; empty: FI_UET_TSS=off
  const char* there;
  int status;
  const char* words;
};

#define UET_KEY_OF(digit) digit digit digit digit digit digit digit digit
#define UET_KEY(digit) UET_KEY_OF(digit digit digit digit digit digit digit digit)

class DoctorSecurity : public ::testing::TestWithParam<Security> {};

TEST_P(DoctorSecurity, IsComparedBeforeAnyPacketIsLost) {
  REQUIRE_NAME_SPACES();
  const Directory directory;
  std::string settings;
  for (const bool here : {true, false}) {
    const std::string lines = here ? GetParam().here : GetParam().there;
    if (lines.empty()) continue;
    const fs::path home = directory.path() / (here ? "here" : "there");
    fs::create_directory(home);
    fs::permissions(home, fs::perms::owner_all);
    std::ofstream(home / "keys") << "uet-tss-keys 1\ndomain 7\n" << lines;
    fs::permissions(home / "keys", fs::perms::owner_read | fs::perms::owner_write);
    settings += std::string(here ? "HERE" : "THERE") +
                "='FI_UET_TSS=require FI_UET_TSS_KEYS=" + (home / "keys").string() +
                " XDG_RUNTIME_DIR=" + home.string() + "'\n";
  }
  const Result result = between_hosts(settings);
  EXPECT_EQ(result.status, GetParam().status) << result.text;
  std::string path = result.text.substr(result.text.find("Path to 10.77.0.2"));
  path = path.substr(0, path.find("Library and provider"));  // of the other end
  EXPECT_THAT(path, HasSubstr(GetParam().words));
  EXPECT_EQ(path.find("latency: ") != std::string::npos, result.status == kReady) << path;
}

INSTANTIATE_TEST_SUITE_P(
    All, DoctorSecurity,
    ::testing::Values(
        Security{"Same", "key 0 0 fresh " UET_KEY("1") "\nactive 0\n",
                 "key 0 0 fresh " UET_KEY("1") "\nactive 0\n", kReady,
                 "security: both ends have the active keys of each other, SDI 7"},
        Security{"PeerRequires", "", "key 0 0 fresh " UET_KEY("1") "\nactive 0\n", kNotReady,
                 "FAIL  the peer requires TSS"},
        Security{"WrongKey", "key 0 0 fresh " UET_KEY("1") "\nactive 0\n",
                 "key 0 0 fresh " UET_KEY("2") "\nactive 0\n", kNotReady, "FAIL  wrong key"},
        Security{"ClocksApart", "key 0 0 fresh " UET_KEY("1") "\nactive 0\n",
                 "key 0 0 fresh " UET_KEY("1") "\nkey 1 0 fresh " UET_KEY("2") "\nactive 1\n",
                 kNotReady, "FAIL  clocks of rotation apart"}),
    [](const auto& info) { return std::string(info.param.name); });

// ---- other ends that misbehave -----------------------------------------------------------------

// The other end of one examination at 127.0.0.1: `play` has the TCP connection.
class OtherEnd {
 public:
  explicit OtherEnd(std::function<void(int)> play) : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(::listen(listener_, 1), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, play = std::move(play)] {
      const int fd = ::accept(listener_, nullptr, nullptr);
      play(fd);
      ::close(fd);
    });
  }
  ~OtherEnd() {
    thread_.join();
    ::close(listener_);
  }
  Result examine() const {
    return doctor("--peer 127.0.0.1 --port " + std::to_string(port_), {{"FI_UET_IFACE", "lo"}});
  }

 private:
  int listener_;
  int port_ = 0;
  std::thread thread_;
};

TEST(DoctorOtherEnd, IsAnotherProgram) {
  const OtherEnd end([](int fd) {
    const std::string text = "220 mail.example ESMTP ready\r\n";
    EXPECT_EQ(::send(fd, text.data(), text.size(), MSG_NOSIGNAL), ssize_t(text.size()));
    std::array<char, 16> ignored;
    ::recv(fd, ignored.data(), ignored.size(), MSG_WAITALL);
  });
  const Result result = end.examine();
  EXPECT_EQ(result.status, kNotReady);
  EXPECT_THAT(result.text, HasSubstr("not a uet_doctor of this version"));
}

TEST(DoctorOtherEnd, ClosesAtOnce) {
  const OtherEnd end([](int) {});
  const Result result = end.examine();
  EXPECT_EQ(result.status, kNotReady);
  EXPECT_THAT(result.text, HasSubstr("the other process closed the connection"));
}

// A path, played by the other end, that loses two packets, carries 1200 bytes and erases ECN marks.
void play_bad_path(int fd) {
  std::array<char, 16> greeting;
  ASSERT_EQ(::recv(fd, greeting.data(), greeting.size(), MSG_WAITALL), 16);
  ASSERT_EQ(::send(fd, greeting.data(), greeting.size(), 0), 16);
  const int udp = ::socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(::bind(udp, reinterpret_cast<sockaddr*>(&address), length), 0);
  ::getsockname(udp, reinterpret_cast<sockaddr*>(&address), &length);
  const std::uint16_t port = ntohs(address.sin_port);
  ASSERT_EQ(::send(fd, &port, sizeof port, 0), 2);

  std::array<char, 16384> probe;
  std::array<pollfd, 2> ready = {pollfd{fd, POLLIN, 0}, pollfd{udp, POLLIN, 0}};
  while (::poll(ready.data(), ready.size(), 20000) > 0 && ready[0].revents == 0) {
    sockaddr_in from{};
    length = sizeof from;
    const ssize_t bytes =
        ::recvfrom(udp, probe.data(), probe.size(), 0, reinterpret_cast<sockaddr*>(&from), &length);
    std::uint32_t number = 0;
    std::memcpy(&number, probe.data() + 4, sizeof number);
    if (number == 100 || number == 200 || bytes > 1200 - 28) continue;
    probe[8] = 0;  // the TOS with which it came
    ::sendto(udp, probe.data(), static_cast<std::size_t>(bytes), 0,
             reinterpret_cast<sockaddr*>(&from), length);
  }
  ::close(udp);
}

TEST(DoctorOtherEnd, IsBehindABadPath) {
  const OtherEnd end(play_bad_path);
  const Result result = end.examine();
  EXPECT_EQ(result.status, kNotReady);
  EXPECT_THAT(result.text,
              AllOf(HasSubstr("WARN  loss: 2 of 300 UDP packets"),
                    HasSubstr("MTU: packets of 9000 bytes do not pass, at most 1200 do"),
                    HasSubstr("WARN  ECN: marks are erased on the way there"),
                    HasSubstr("DSCP 46 is rewritten on the way")));
}

}  // namespace
}  // namespace uet::e2e
