// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "netsim/sweep.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <system_error>
#include <thread>
#include <vector>

#include "netsim/options.h"
#include "netsim/sweep_journal.h"

namespace uet::netsim {
namespace {

using Json = nlohmann::ordered_json;

// A case and what is known of it.
struct Entry {
  SweepCase one;
  std::string print;
  const CaseResult* result = nullptr;  // the journal's
};

// The arguments of the case's uet-sim.
std::vector<const char*> arguments_of(const SweepCase& one) {
  std::vector<const char*> arguments = {"uet-sim"};
  for (const std::string& option : one.options) arguments.push_back(option.c_str());
  arguments.push_back("--json");
  arguments.push_back("--quiet");
  return arguments;
}

// Checks the options of a case. Returns the complaint; empty: none.
std::string complaint_about(const SweepCase& one) {
  for (const std::string& option : one.options) {
    if (option.starts_with("--write-matrix"))
      return "--write-matrix: a sweep writes one table; run this case alone for the file";
  }
  const std::vector<const char*> arguments = arguments_of(one);
  RunSetup setup;
  const ParseResult parsed =
      parse_command_line(static_cast<int>(arguments.size()), arguments.data(), setup);
  if (!parsed.run) {
    if (parsed.status == 0) return "an option asks for no run; remove it";
    constexpr std::string_view kProgram = "uet-sim: ";
    std::string text = parsed.text;
    if (text.starts_with(kProgram)) text.erase(0, kProgram.size());
    while (text.ends_with('\n')) text.pop_back();
    return text;
  }
  if (!setup.sweep.file.empty()) return "--sweep: a case is one run; remove the option";
  if (setup.csv) return "--csv: a sweep writes one table; remove the option";
  if (!setup.trace_file.empty() || !setup.report_file.empty())
    return "--trace, --report: a sweep writes one table; run this case alone for these files";
  return {};
}

// A file without a name, which ends with the last process that has it open.
int nameless_file() {
  const int file = ::memfd_create("uet-sim", MFD_CLOEXEC);
  if (file < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
  return file;
}

std::string contents(int file) {
  std::string text(static_cast<std::size_t>(std::max<off_t>(::lseek(file, 0, SEEK_END), 0)), '\0');
  const ssize_t got = ::pread(file, text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

// One case while its process runs.
class Process {
 public:
  Process(const std::string& program, std::size_t number, const SweepCase& one)
      : number_(number), out_(nameless_file()), err_(nameless_file()) {
    std::vector<const char*> arguments = arguments_of(one);
    arguments.push_back(nullptr);
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid_ == 0) become(program, parent, arguments);
  }
  ~Process() {
    ::close(out_);
    ::close(err_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  std::size_t number() const { return number_; }
  // After it has ended, with a status as waitpid() gives it.
  CaseResult result(int wait_status) const {
    CaseResult result{.results = contents(out_), .message = contents(err_)};
    if (WIFSIGNALED(wait_status)) {
      result.status = 128 + WTERMSIG(wait_status);
      result.message +=
          std::string("uet-sim: ended by signal: ") + ::strsignal(WTERMSIG(wait_status)) + "\n";
    } else {
      result.status = WEXITSTATUS(wait_status);
    }
    if (!Json::accept(result.results)) result.results.clear();
    while (result.message.ends_with('\n')) result.message.pop_back();
    return result;
  }

 private:
  // In the new process. It ends with its parent, so that a later sweep does not find it running.
  [[noreturn]] void become(const std::string& program, pid_t parent,
                           const std::vector<const char*>& arguments) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    ::dup2(out_, STDOUT_FILENO);
    ::dup2(err_, STDERR_FILENO);
    ::execv(program.c_str(), const_cast<char* const*>(arguments.data()));
    ::_exit(127);
  }

  std::size_t number_;
  int out_, err_;
  pid_t pid_ = -1;
};

class Sweep {
 public:
  Sweep(const SweepSetup& setup, const std::string& program) : setup_(setup), program_(program) {}

  // Each returns what is wrong.
  std::string read();
  // Checks every case that has not finished.
  std::string prepare(const SweepJournal& journal);
  void run(SweepJournal& journal);
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  void finish(SweepJournal& journal, const Process& process, int wait_status);

  const SweepSetup& setup_;
  const std::string& program_;
  std::vector<Entry> entries_;
  std::size_t done_ = 0;
};

std::string Sweep::read() {
  std::ifstream in(setup_.file);
  if (!in) return std::string(std::strerror(errno)) + "; name a file of cases";
  SweepFile file = read_sweep(in);
  for (SweepCase& one : file.cases) entries_.push_back(Entry{.one = std::move(one), .print = {}});
  return file.complaint;
}

std::string Sweep::prepare(const SweepJournal& journal) {
  const std::string program_print = file_print(program_);
  for (Entry& entry : entries_) {
    entry.print = case_print(entry.one, program_print);
    entry.result = journal.find(entry.one.name, entry.print);
    if (entry.result != nullptr) {
      ++done_;
    } else if (const std::string complaint = complaint_about(entry.one); !complaint.empty()) {
      return "line " + std::to_string(entry.one.line) + ": " + entry.one.name + ": " + complaint;
    }
  }
  return {};
}

void Sweep::run(SweepJournal& journal) {
  const std::size_t jobs = setup_.jobs != 0 ? setup_.jobs : std::thread::hardware_concurrency();
  if (!setup_.quiet && done_ > 0)
    std::fprintf(stderr, "%zu of %zu cases were done before\n", done_, entries_.size());
  std::map<pid_t, std::unique_ptr<Process>> running;
  std::size_t next = 0;
  for (;;) {
    for (; next < entries_.size() && running.size() < std::max<std::size_t>(jobs, 1); ++next) {
      if (entries_[next].result != nullptr) continue;
      auto process = std::make_unique<Process>(program_, next, entries_[next].one);
      const pid_t pid = process->pid();
      running.emplace(pid, std::move(process));
    }
    if (running.empty()) return;
    int wait_status = 0;
    const pid_t pid = ::waitpid(-1, &wait_status, 0);
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) throw std::system_error(errno, std::generic_category(), "waitpid");
    if (const auto ended = running.find(pid); ended != running.end()) {
      finish(journal, *ended->second, wait_status);
      running.erase(ended);
    }
  }
}

void Sweep::finish(SweepJournal& journal, const Process& process, int wait_status) {
  Entry& entry = entries_[process.number()];
  const CaseResult result = process.result(wait_status);
  if (!journal.add(entry.one.name, entry.print, result))
    throw std::system_error(errno, std::generic_category(), "the journal of the sweep");
  entry.result = journal.find(entry.one.name, entry.print);
  ++done_;
  if (setup_.quiet) return;
  std::fprintf(stderr, "%zu of %zu: %s: %s\n", done_, entries_.size(), entry.one.name.c_str(),
               result.status == 0 ? "done" : result.message.c_str());
}

std::string options_text(const SweepCase& one) {
  std::string text;
  for (const std::string& option : one.options) {
    const bool quoted = option.empty() || option.find_first_of(" \t") != std::string::npos;
    text += (text.empty() ? "" : " ") + (quoted ? "\"" + option + "\"" : option);
  }
  return text;
}

// One row of the table, in the order of its columns.
Json row_of(const Entry& entry) {
  Json row = {{"case", entry.one.name},
              {"options", options_text(entry.one)},
              {"status", entry.result->status},
              {"message", entry.result->message}};
  if (entry.result->results.empty()) return row;
  const Json results = Json::parse(entry.result->results);
  for (const auto& [name, value] : results.items()) row[name] = value;
  return row;
}

// Names as fct_us.mean instead of objects in objects; of a list only how long it is.
void flatten(const Json& json, const std::string& name, Json& flat) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items())
      flatten(value, name.empty() ? key : name + "." + key, flat);
  } else {
    flat[name] = json.is_array() ? Json(json.size()) : json;
  }
}

std::string csv_cell(const Json& value) {
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

void print_table(const std::vector<Entry>& entries, bool as_json, std::ostream& out) {
  Json rows = Json::array();
  Json columns = Json::object();  // of all rows, in the order of first appearance
  for (const Entry& entry : entries) {
    Json row = row_of(entry);
    if (as_json) {
      rows.push_back(std::move(row));
      continue;
    }
    Json flat;
    flatten(row, "", flat);
    for (const auto& [name, value] : flat.items()) columns[name] = nullptr;
    rows.push_back(std::move(flat));
  }
  if (as_json) {
    out << rows.dump(2) << "\n";
    return;
  }
  std::string line;
  for (const auto& [name, value] : columns.items()) line += (line.empty() ? "" : ",") + name;
  out << line << "\n";
  for (const Json& row : rows) {
    line.clear();
    for (const auto& [name, value] : columns.items())
      line +=
          (&value == &columns.front() ? "" : ",") + (row.contains(name) ? csv_cell(row[name]) : "");
    out << line << "\n";
  }
}

}  // namespace

int run_sweep(const SweepSetup& setup, const std::string& program, std::ostream& out) {
  const auto refuse = [&](const std::string& object, const std::string& complaint) {
    std::fprintf(stderr, "uet-sim: %s: %s\n", object.c_str(), complaint.c_str());
    return 2;
  };
  Sweep sweep(setup, program);
  std::string complaint = sweep.read();
  if (!complaint.empty()) return refuse(setup.file, complaint);
  SweepJournal journal(setup.journal.empty() ? setup.file + ".done" : setup.journal);
  if (!journal.complaint().empty()) return refuse("--sweep", journal.complaint());
  complaint = sweep.prepare(journal);
  if (!complaint.empty()) return refuse(setup.file, complaint);
  sweep.run(journal);
  print_table(sweep.entries(), setup.json, out);
  const bool good = std::ranges::all_of(
      sweep.entries(), [](const Entry& entry) { return entry.result->status == 0; });
  return good && out.flush() ? 0 : 1;
}

}  // namespace uet::netsim
