// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// uet_keyd: the key agent of a host, and what launchers and ranks call. The command line, signals
// and the protection of this process; which keys a job has, schedule.h knows.
#include <pwd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "agent.h"
#include "command_line.h"

namespace {

using namespace uet;  // NOLINT(google-build-using-namespace)

struct Arguments {
  std::string secret_file;
  std::string run_directory = "/run/uet-keyd";
  std::string state_directory = "/var/lib/uet-keyd";
  std::uint32_t every = 600;
  std::uint32_t guard = 10;
  std::uint32_t job = 0;
  std::string user;
  std::vector<std::string> program;
};

// No core file, no debugger of another process of the user, no page on a swap device.
void protect_this_process() {
  prctl(PR_SET_DUMPABLE, 0);
  // Other users have a limit, beyond which memory could not be had any more.
  if (geteuid() == 0) (void)mlockall(MCL_CURRENT | MCL_FUTURE);
}

void serve(const Arguments& a) {
  const keyd::Rotation rotation{std::chrono::seconds(a.every), std::chrono::seconds(a.guard)};
  if (const char* const problem = reason_against(rotation)) throw std::runtime_error(problem);
  protect_this_process();
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  const nic::FileDescriptor stop(signalfd(-1, &ends, SFD_CLOEXEC));
  keyd::Agent agent(a.run_directory, a.state_directory, keyd::read_secret(a.secret_file), rotation);
  agent.run(stop.get());
}

std::string ask(const Arguments& a, const std::string& verb) {
  std::string request = verb + " " + std::to_string(a.job);
  if (!a.user.empty()) {
    const passwd* const entry = getpwnam(a.user.c_str());
    const bool is_number = a.user.find_first_not_of("0123456789") == std::string::npos;
    if (entry == nullptr && !is_number) throw std::runtime_error("there is no user " + a.user);
    request += " " + (entry != nullptr ? std::to_string(entry->pw_uid) : a.user);
  }
  return keyd::ask(keyd::socket_of(a.run_directory), request);
}

// The environment of a process of the job.
std::vector<std::pair<std::string, std::string>> environment_of(const Arguments& a) {
  const std::string where = ask(a, "where");
  const std::size_t end = where.find('\n');
  if (end == std::string::npos) throw std::runtime_error("the agent is of another version");
  return {{"FI_UET_TSS", "require"},
          {"FI_UET_TSS_KEYS", where.substr(0, end)},
          {"XDG_RUNTIME_DIR", where.substr(end + 1)}};
}

[[noreturn]] void execute(Arguments& a) {
  (void)ask(a, "begin");
  for (const auto& [name, value] : environment_of(a)) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> words;
  for (std::string& word : a.program) words.push_back(word.data());
  words.push_back(nullptr);
  execvp(words[0], words.data());
  throw std::runtime_error(a.program[0] + ": " + std::strerror(errno));
}

int run(int argc, char** argv) {
  CLI::App app("Key agent of a host: gives each job keys of transport security (TSS) that turn");
  app.require_subcommand(1);
  Arguments a;
  app.add_option("--run-dir", a.run_directory, "socket, jobs and key files; ends with the host")
      ->envname("UET_KEYD_RUN_DIR")
      ->capture_default_str();
  CLI::App* const secret = app.add_subcommand("secret", "make a file with a random secret");
  secret->add_option("file", a.secret_file, "the new file; copy it to all hosts")->required();
  CLI::App* const agent = app.add_subcommand("run", "be the key agent of this host");
  agent->add_option("--secret", a.secret_file, "file with the secret of all agents")->required();
  agent->add_option("--state-dir", a.state_directory, "epochs; outlives a start of the host")
      ->envname("UET_KEYD_STATE_DIR")
      ->capture_default_str();
  agent->add_option("--every", a.every, "seconds for which a key is the active one; 8 to 86400")
      ->check(CLI::Range(8U, 86400U))
      ->capture_default_str();
  agent->add_option("--guard", a.guard, "seconds for which a replaced key still opens packets")
      ->capture_default_str();
  CLI::App* const begin = app.add_subcommand("begin", "begin a job on this host (prolog)");
  CLI::App* const end = app.add_subcommand("end", "end a job on this host (epilog)");
  CLI::App* const env =
      app.add_subcommand("env", "print the environment of the job's processes as export lines");
  CLI::App* const keys = app.add_subcommand("keys", "print the key file of a job");
  CLI::App* const exec = app.add_subcommand("exec", "begin a job, if it is new, and run a program");
  for (CLI::App* const command : {begin, end, env, keys, exec}) {
    command->add_option("job", a.job, "number of the job, the same on all hosts")->required();
  }
  for (CLI::App* const command : {begin, end, env, keys}) {
    command->add_option("--user", a.user, "user of the job, by name or number; for root only");
  }
  exec->footer("Behind JOB: the program and its arguments");
  exec->prefix_command();
  if (const auto status = tools::parse(app, argc, argv)) return *status;
  if (secret->parsed()) keyd::make_secret(a.secret_file);
  if (agent->parsed()) serve(a);
  if (begin->parsed()) (void)ask(a, "begin");
  if (end->parsed()) (void)ask(a, "end");
  if (keys->parsed()) std::fputs(ask(a, "keys").c_str(), stdout);
  if (exec->parsed()) {
    a.program = exec->remaining();
    if (a.program.empty())
      return std::fputs("uet_keyd exec: name a program\n", stderr), tools::kUsedWrongly;
    execute(a);
  }
  if (!env->parsed()) return 0;
  for (const auto& [name, value] : environment_of(a)) {
    std::printf("export %s=%s\n", name.c_str(), value.c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return tools::run_program("uet_keyd", run, argc, argv); }
