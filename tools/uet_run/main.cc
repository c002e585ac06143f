// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// uet_run: starts the ranks of a job, is their master (uet_job.h), and ends them together.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "uet_job/frames.h"
#include "uet_job/server.h"
#include "uet_run/agent.h"
#include "uet_run/hosts.h"
#include "uet_run/order.h"

namespace {

using namespace uet;  // NOLINT(google-build-using-namespace)
using Clock = std::chrono::steady_clock;

constexpr int kUsedWrongly = 2;
constexpr std::size_t kLastLines = 10;
constexpr std::size_t kMostLineBytes = 4096;
constexpr std::chrono::seconds kPatienceAtEnd{5};
constexpr std::chrono::seconds kPatienceForCause{1};
constexpr int kMostDrains = 64;  // of 16 KiB: more than a pipe holds

struct Arguments {
  std::uint32_t ranks = 1;
  std::string hosts;
  std::string launcher;
  std::string master;
  std::optional<std::uint32_t> job_id;
  std::vector<std::string> exports;
  bool tag = false;
  std::vector<std::string> program;
};

void random_bytes(void* to, std::size_t bytes) {
  if (getrandom(to, bytes, 0) != static_cast<ssize_t>(bytes)) {
    throw std::runtime_error(std::string("random numbers: ") + std::strerror(errno));
  }
}

std::string random_token() {
  std::array<unsigned char, job::kTokenDigits / 2> bytes;
  random_bytes(bytes.data(), bytes.size());
  std::string token;
  for (const unsigned char byte : bytes) {
    token += "0123456789abcdef"[byte >> 4];
    token += "0123456789abcdef"[byte & 15];
  }
  return token;
}

// In the range of launchers' jobs (SES-163).
std::uint32_t random_job() {
  std::uint32_t number = 0;
  random_bytes(&number, sizeof number);
  return 0x800000 + number % 0x7FFFFF;
}

// The address of this host from which packets to `host` leave.
std::string own_address_towards(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), "9", &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, freeaddrinfo);
  const int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  char text[INET6_ADDRSTRLEN] = "";
  if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length) == 0) {
    getnameinfo(reinterpret_cast<sockaddr*>(&own), length, text, sizeof text, nullptr, 0,
                NI_NUMERICHOST);
  }
  if (fd >= 0) close(fd);
  return text;
}

bool is_this_host(const std::string& host) {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return host == "localhost" || host == "127.0.0.1" || host == "::1" || host == name;
}

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};
Pipe open_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error(std::strerror(errno));
  return {ends[0], ends[1]};
}
// This end alone: the other one is that of a program, which may not expect it.
void make_non_blocking(int fd) { fcntl(fd, F_SETFL, O_NONBLOCK | fcntl(fd, F_GETFL)); }

// Lines that a rank writes, to be passed on whole.
struct Lines {
  int from = -1;
  FILE* to = nullptr;
  std::string part;
};

struct Rank {
  std::string host;
  pid_t pid = -1;     // of the agent, or of the program that starts the agent
  int control = -1;   // its standard input: the end of it ends the rank
  std::string order;  // what is still to be written there
  std::array<Lines, 2> lines;
  std::deque<std::string> last_words;
  std::optional<int> status;
};

class Run {
 public:
  Run(const Arguments& arguments, std::vector<std::string> places);
  int run();

 private:
  void start(std::uint32_t number);
  std::vector<std::string> command_for(const std::string& host) const;
  run::Order order_for(std::uint32_t number) const;
  void write_order(Rank& rank);
  void read_lines(std::uint32_t number, Lines& lines);
  void drain(std::uint32_t number);
  void pass_on(std::uint32_t number, Lines& lines, std::string line);
  void reap();
  void judge();
  void end_for(std::uint32_t number);
  void end_all();
  bool all_over() const;
  void wait_once(int signals);

  const Arguments& arguments_;
  std::vector<Rank> ranks_;
  std::string token_ = random_token();
  std::uint32_t job_;
  std::string self_;
  std::unique_ptr<job::Server> server_;
  std::string master_;
  std::optional<std::uint32_t> suspect_;  // the first rank that failed
  Clock::time_point suspected_;
  std::optional<Clock::time_point> ending_;
  int status_ = 0;
};

Run::Run(const Arguments& arguments, std::vector<std::string> places)
    : arguments_(arguments),
      ranks_(places.size()),
      job_(arguments.job_id.value_or(random_job())),
      self_(std::filesystem::read_symlink("/proc/self/exe")) {
  std::string remote;
  for (std::size_t i = 0; i < places.size(); ++i) {
    ranks_[i].host = places[i];
    if (!arguments.launcher.empty() || !is_this_host(places[i])) remote = places[i];
  }
  server_ = std::make_unique<job::Server>(static_cast<std::uint32_t>(places.size()), token_,
                                          remote.empty() && arguments.master.empty());
  std::string address = arguments.master;
  if (address.empty()) address = remote.empty() ? "127.0.0.1" : own_address_towards(remote);
  if (address.empty()) {
    throw std::runtime_error("no address of this host leads to " + remote + "; name one: --master");
  }
  if (address.find(':') != std::string::npos) address = "[" + address + "]";
  master_ = address + ":" + std::to_string(server_->port());
}

std::vector<std::string> Run::command_for(const std::string& host) const {
  std::string launcher = arguments_.launcher;
  if (launcher.empty() && is_this_host(host)) return {self_, "--agent"};
  if (launcher.empty() && std::getenv("SLURM_JOB_ID") != nullptr) {
    // No shell splits this command.
    return {"srun", "--nodes=1", "--ntasks=1", "--overlap", "--nodelist=" + host, self_, "--agent"};
  }
  if (launcher.empty()) launcher = "ssh -o BatchMode=yes {host} {command}";
  return run::fill_launcher(launcher, host, run::quoted(self_) + " --agent");
}

run::Order Run::order_for(std::uint32_t number) const {
  run::Order order;
  order.directory = std::filesystem::current_path();
  order.arguments = arguments_.program;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view text(*each);
    const std::string_view name = text.substr(0, text.find('='));
    bool wanted = name.starts_with("FI_") || name == "PATH" || name == "LD_LIBRARY_PATH";
    for (const std::string& exported : arguments_.exports) wanted = wanted || name == exported;
    if (wanted) order.variables.emplace_back(text);
  }
  for (const std::string& exported : arguments_.exports) {
    if (exported.find('=') != std::string::npos) order.variables.push_back(exported);
  }
  order.variables.push_back("UET_RANK=" + std::to_string(number));
  order.variables.push_back("UET_SIZE=" + std::to_string(ranks_.size()));
  order.variables.push_back("UET_JOB_ID=" + std::to_string(job_));
  order.variables.push_back("UET_MASTER=" + master_);
  order.variables.push_back("UET_JOB_TOKEN=" + token_);
  return order;
}

void Run::start(std::uint32_t number) {
  Rank& rank = ranks_[number];
  const std::vector<std::string> words = command_for(rank.host);
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  const Pipe control = open_pipe();
  const Pipe out = open_pipe();
  const Pipe error = open_pipe();
  rank.pid = fork();
  if (rank.pid < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  if (rank.pid == 0) {
    setpgid(0, 0);  // Ctrl-C is for uet_run alone
    signal(SIGPIPE, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    dup2(control.read_end, STDIN_FILENO);
    dup2(out.write_end, STDOUT_FILENO);
    dup2(error.write_end, STDERR_FILENO);
    execvp(pointers[0], pointers.data());
    std::fprintf(stderr, "uet_run: cannot start %s: %s\n", pointers[0], std::strerror(errno));
    _exit(127);
  }
  close(control.read_end);
  close(out.write_end);
  close(error.write_end);
  rank.control = control.write_end;
  rank.lines = {Lines{out.read_end, stdout, {}}, Lines{error.read_end, stderr, {}}};
  for (const int fd : {control.write_end, out.read_end, error.read_end}) make_non_blocking(fd);
  rank.order = run::encode(order_for(number));
  write_order(rank);
}

void Run::write_order(Rank& rank) {
  while (!rank.order.empty()) {
    const ssize_t sent = write(rank.control, rank.order.data(), rank.order.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent <= 0)
      rank.order.clear();  // it has ended: reap() says so
    else
      rank.order.erase(0, static_cast<std::size_t>(sent));
  }
}

void Run::pass_on(std::uint32_t number, Lines& lines, std::string line) {
  if (arguments_.tag) std::fprintf(lines.to, "[%u] ", number);
  std::fprintf(lines.to, "%s\n", line.c_str());
  std::fflush(lines.to);
  if (lines.to != stderr) return;
  std::deque<std::string>& last = ranks_[number].last_words;
  last.push_back(std::move(line));
  if (last.size() > kLastLines) last.pop_front();
}

void Run::read_lines(std::uint32_t number, Lines& lines) {
  std::array<char, 16384> block;
  const ssize_t got = read(lines.from, block.data(), block.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    if (!lines.part.empty()) pass_on(number, lines, std::exchange(lines.part, {}));
    close(std::exchange(lines.from, -1));
    return;
  }
  lines.part.append(block.data(), static_cast<std::size_t>(got));
  for (std::size_t end; (end = lines.part.find('\n')) != std::string::npos;) {
    pass_on(number, lines, lines.part.substr(0, end));
    lines.part.erase(0, end + 1);
  }
  if (lines.part.size() > kMostLineBytes) {
    pass_on(number, lines, std::exchange(lines.part, {}));
  }
}

// The rank's output until now is passed on. A process that has escaped from its agent may hold the
// pipe open, and go on writing: neither is waited for.
void Run::drain(std::uint32_t number) {
  for (Lines& lines : ranks_[number].lines) {
    pollfd ready{lines.from, POLLIN, 0};
    for (int i = 0; i < kMostDrains && lines.from >= 0 && poll(&ready, 1, 0) > 0; ++i) {
      read_lines(number, lines);
    }
  }
}

void Run::reap() {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    for (std::uint32_t i = 0; i < ranks_.size(); ++i) {
      if (ranks_[i].pid != pid) continue;
      ranks_[i].status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      if (*ranks_[i].status == 0 || suspect_) continue;
      suspect_ = i;
      suspected_ = Clock::now();
    }
  }
}

// A rank that dies leaves the job, of which the others hear, and one of them may fail and be reaped
// before it: the job waits a moment for the first that has left.
void Run::judge() {
  if (!suspect_ || ending_) return;
  const std::optional<std::uint32_t> deserter = server_->deserter();
  if (!deserter) return end_for(*suspect_);
  const std::optional<int>& status = ranks_[*deserter].status;
  if (status) return end_for(*status == 0 ? *suspect_ : *deserter);
  if (Clock::now() - suspected_ >= kPatienceForCause) end_for(*suspect_);
}

void Run::end_for(std::uint32_t number) {
  const Rank& rank = ranks_[number];
  const int status = *rank.status;
  drain(number);
  const std::string cause = status > 128 && status < 128 + 65
                                ? std::string("by signal ") + std::to_string(status - 128) + " (" +
                                      strsignal(status - 128) + ")"
                                : "with status " + std::to_string(status);
  std::fprintf(stderr, "uet_run: rank %u on %s has ended %s; the job ends\n", number,
               rank.host.c_str(), cause.c_str());
  if (!rank.last_words.empty()) std::fprintf(stderr, "uet_run: its last words:\n");
  for (const std::string& line : rank.last_words) std::fprintf(stderr, "  %s\n", line.c_str());
  status_ = status;
  end_all();
}

// The agents end their ranks when their standard input ends.
void Run::end_all() {
  if (ending_) return;
  ending_ = Clock::now();
  for (Rank& rank : ranks_) {
    if (rank.control >= 0) close(std::exchange(rank.control, -1));
  }
}

bool Run::all_over() const {
  for (const Rank& rank : ranks_) {
    if (rank.pid > 0 && !rank.status) return false;
  }
  return true;
}

void Run::wait_once(int signals) {
  std::vector<pollfd> waits = {{signals, POLLIN, 0}, {server_->fd(), POLLIN, 0}};
  std::vector<std::pair<std::uint32_t, Lines*>> readers;
  for (std::uint32_t i = 0; i < ranks_.size(); ++i) {
    for (Lines& lines : ranks_[i].lines) {
      if (lines.from < 0) continue;
      waits.push_back({lines.from, POLLIN, 0});
      readers.emplace_back(i, &lines);
    }
  }
  for (const Rank& rank : ranks_) {
    if (!rank.order.empty() && rank.control >= 0) waits.push_back({rank.control, POLLOUT, 0});
  }
  poll(waits.data(), waits.size(), suspect_ && !ending_ ? 20 : 500);
  for (Rank& rank : ranks_) {
    if (rank.control >= 0) write_order(rank);
  }
  for (std::size_t i = 0; i < readers.size(); ++i) {
    if (waits[i + 2].revents != 0) read_lines(readers[i].first, *readers[i].second);
  }
  server_->run();
  signalfd_siginfo info{};
  while (read(signals, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD || ending_) continue;
    std::fprintf(stderr, "uet_run: signal %u; the job ends\n", info.ssi_signo);
    status_ = 128 + static_cast<int>(info.ssi_signo);
    end_all();
  }
  reap();
  judge();
  if (ending_ && Clock::now() - *ending_ > kPatienceAtEnd) {
    for (const Rank& rank : ranks_) {
      if (rank.pid > 0 && !rank.status) kill(-rank.pid, SIGKILL);
    }
  }
}

int Run::run() {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int each : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}) sigaddset(&watched, each);
  sigprocmask(SIG_BLOCK, &watched, nullptr);
  const int signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  for (std::uint32_t i = 0; i < ranks_.size(); ++i) start(i);
  while (!all_over()) wait_once(signals);
  judge();
  for (std::uint32_t i = 0; i < ranks_.size(); ++i) {
    drain(i);
    for (Lines& lines : ranks_[i].lines) {
      if (!lines.part.empty()) pass_on(i, lines, std::exchange(lines.part, {}));
    }
  }
  return status_;
}

std::vector<run::Host> read_hosts(const Arguments& arguments) {
  if (arguments.hosts.empty()) return {{"localhost", arguments.ranks}};
  std::ifstream file(arguments.hosts);
  if (!file) throw std::runtime_error(arguments.hosts + ": " + std::strerror(errno));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  try {
    return run::parse_hosts(text);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(arguments.hosts + ": " + error.what());
  }
}

// The index of the first argument that is no option of uet_run: from there on all belongs to the
// program, whatever it looks like, and CLI11 sees none of it.
int program_at(const CLI::App& app, int argc, char** argv) {
  int at = 1;
  while (at < argc && argv[at][0] == '-' && std::strcmp(argv[at], "--") != 0) {
    const CLI::Option* const option = app.get_option_no_throw(argv[at]);
    at += option != nullptr && option->get_expected_max() > 0 ? 2 : 1;  // its value, too
  }
  return std::min(at, argc);
}

// Returns the exit status; the reason for kUsedWrongly is on standard error.
int start_job(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Starts the ranks of a parallel job and ends them together.", "uet_run");
  app.footer("PROGRAM and its arguments follow the options of uet_run; '--' may stand between.");
  app.add_option("-n,--ranks", arguments.ranks, "Ranks to start")->check(CLI::Range(1, 65535));
  app.add_option("--hosts", arguments.hosts, "File with a host in each line: NAME [slots=N]");
  app.add_option("--launcher", arguments.launcher,
                 "Command that starts a command on a host, for example 'ssh {host} {command}'");
  app.add_option("--master", arguments.master, "Address of this host that the ranks can reach");
  app.add_option("--job-id", arguments.job_id, "JobID instead of a random one")
      ->check(CLI::Range(0, 0xFFFFFF));
  app.add_option("-x,--export", arguments.exports, "NAME or NAME=VALUE of a variable for all ranks")
      ->allow_extra_args(false);  // each takes one value
  app.add_flag("--tag", arguments.tag, "Begin each line of output with the rank");
  const int program = program_at(app, argc, argv);
  const bool marked = program < argc && std::strcmp(argv[program], "--") == 0;
  arguments.program.assign(argv + program + (marked ? 1 : 0), argv + argc);
  try {
    app.parse(program, argv);
    if (arguments.program.empty()) throw CLI::RequiredError("PROGRAM");
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsedWrongly;
  }
  signal(SIGPIPE, SIG_IGN);
  const auto places = run::place_ranks(read_hosts(arguments), arguments.ranks);
  return Run(arguments, places).run();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 2 && std::strcmp(argv[1], "--agent") == 0) return run::run_agent();
    return start_job(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "uet_run: %s\n", error.what());
    return kUsedWrongly;
  }
}
