// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet_run/agent.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "uet_run/order.h"

namespace uet::run {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kGrace{2000};
constexpr int kCannotStart = 127;
constexpr int kNoOrder = 126;

bool read_bytes(std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = read(STDIN_FILENO, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

std::optional<Order> read_order() {
  std::string header(kOrderHeaderBytes, 0);
  if (!read_bytes(header)) return {};
  const auto bytes = body_bytes(header);
  if (!bytes) return {};
  std::string body(*bytes, 0);
  if (!read_bytes(body)) return {};
  return decode(body);
}

// In the child. The program gets no standard input: that is the agent's.
[[noreturn]] void become(const Order& order, pid_t agent, const sigset_t& mask) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != agent) _exit(kCannotStart);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  if (null != STDIN_FILENO) close(null);
  if (!order.directory.empty() && chdir(order.directory.c_str()) != 0) {
    std::fprintf(stderr, "uet_run: cannot start in %s: %s\n", order.directory.c_str(),
                 std::strerror(errno));
    _exit(kCannotStart);
  }
  for (const std::string& variable : order.variables) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string::npos) continue;
    setenv(variable.substr(0, equals).c_str(), variable.c_str() + equals + 1, 1);
  }
  std::vector<char*> arguments;
  for (const std::string& each : order.arguments) {
    arguments.push_back(const_cast<char*>(each.c_str()));
  }
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  std::fprintf(stderr, "uet_run: cannot start %s: %s\n", arguments[0], std::strerror(errno));
  _exit(kCannotStart);
}

int status_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

// As subreaper the agent is the parent of descendants whose own parents have ended.
std::vector<pid_t> own_children() {
  const std::string self = std::to_string(getpid());
  std::ifstream list("/proc/" + self + "/task/" + self + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; list >> child;) children.push_back(child);
  return children;
}

class Keeper {
 public:
  explicit Keeper(pid_t rank) : rank_(rank) {}

  // Collects the processes that have ended.
  void reap() {
    for (;;) {
      int status = 0;
      const pid_t ended = waitpid(-1, &status, WNOHANG);
      if (ended <= 0) {
        none_left_ = ended < 0 && errno == ECHILD;
        return;
      }
      if (ended == rank_) status_ = status_of(status);
    }
  }
  void signal_all(int signal) {
    kill(-rank_, signal);
    for (const pid_t child : own_children()) kill(child, signal);
  }
  bool rank_ended() const { return status_ >= 0; }
  bool none_left() const { return none_left_; }
  int status() const { return status_ >= 0 ? status_ : 128 + SIGKILL; }

 private:
  pid_t rank_;
  int status_ = -1;  // -1: it runs
  bool none_left_ = false;
};

// The program has ended or is to end: nothing stays.
void end_all(Keeper& keeper) {
  if (!keeper.rank_ended()) {
    keeper.signal_all(SIGTERM);
    const Clock::time_point end = Clock::now() + kGrace;
    while (!keeper.rank_ended() && Clock::now() < end) {
      usleep(5000);
      keeper.reap();
    }
  }
  keeper.reap();
  while (!keeper.none_left()) {
    keeper.signal_all(SIGKILL);
    usleep(2000);
    keeper.reap();
  }
}

}  // namespace

int run_agent() {
  const auto order = read_order();
  if (!order) {
    std::fprintf(stderr, "uet_run: --agent is for uet_run itself: no order came\n");
    return kNoOrder;
  }
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t watched;
  sigset_t before;
  sigemptyset(&watched);
  for (const int each : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}) sigaddset(&watched, each);
  sigprocmask(SIG_BLOCK, &watched, &before);
  const int signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  const pid_t agent = getpid();
  const pid_t rank = fork();
  if (rank < 0) {
    std::fprintf(stderr, "uet_run: fork: %s\n", std::strerror(errno));
    return kCannotStart;
  }
  if (rank == 0) become(*order, agent, before);
  setpgid(rank, rank);
  Keeper keeper(rank);
  bool to_end = false;
  while (!to_end && !keeper.rank_ended()) {
    pollfd waits[2] = {{STDIN_FILENO, POLLIN, 0}, {signals, POLLIN, 0}};
    if (poll(waits, 2, 1000) < 0 && errno != EINTR) break;
    char unused[256];
    if (waits[0].revents != 0 && read(STDIN_FILENO, unused, sizeof unused) <= 0) to_end = true;
    signalfd_siginfo info{};
    while (read(signals, &info, sizeof info) == sizeof info) {
      if (info.ssi_signo != SIGCHLD) to_end = true;
    }
    keeper.reap();
  }
  end_all(keeper);
  return keeper.status();
}

}  // namespace uet::run
