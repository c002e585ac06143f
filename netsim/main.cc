// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// uet-sim: runs one network and one traffic, or a sweep of them, and prints what came of it. Status
// 0: all flows done and no property violated; 1: not so; 2: the arguments are wrong.
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <limits>
#include <optional>
#include <string_view>

#include "base/rng.h"
#include "netsim/mpi_module.h"
#include "netsim/options.h"
#include "netsim/report.h"
#include "netsim/results.h"
#include "netsim/sweep.h"
#include "netsim/threads.h"
#include "netsim/trace.h"

namespace {

using namespace uet::netsim;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// On standard error, every two seconds.
class ProgressLine {
 public:
  explicit ProgressLine(std::size_t flows) : flows_(flows) {}

  void operator()(const Progress& progress) {
    const double spent_s = seconds_since(begin_);
    if (spent_s < next_s_) return;
    next_s_ = spent_s + 2;
    std::fprintf(stderr, "%.0f s: %.1f us simulated, %zu of %zu flows done, %.1f million events\n",
                 spent_s, microseconds(progress.now), progress.finished, flows_,
                 static_cast<double>(progress.events) / 1e6);
  }

 private:
  std::size_t flows_;
  Clock::time_point begin_ = Clock::now();
  double next_s_ = 2;
};

// The files that rank 0 writes while a run goes on.
class Watcher {
 public:
  explicit Watcher(const RunSetup& setup) : setup_(setup) {
    if (setup.trace_file.empty()) return;
    trace_file_.open(setup.trace_file);
    trace_.emplace(trace_file_);
  }

  void sample(const Sample& sample) {
    if (trace_) trace_->write(sample);
    if (!setup_.report_file.empty()) report_.keep(sample);
  }
  // Both files. False: one could not be written.
  bool finish(const Outcome& outcome) {
    if (trace_ && !trace_file_.flush()) return complain(setup_.trace_file);
    if (setup_.report_file.empty()) return true;
    std::ofstream file(setup_.report_file);
    file << report_.html(outcome);
    return file.flush() ? true : complain(setup_.report_file);
  }

 private:
  static bool complain(const std::string& file) {
    std::fprintf(stderr, "uet-sim: cannot write %s\n", file.c_str());
    return false;
  }

  const RunSetup& setup_;
  std::ofstream trace_file_;
  std::optional<Trace> trace_;
  Report report_;
};

// Equal on all ranks if their options and traffic are.
std::uint64_t print_of(const ParseResult& parsed, const Traffic& traffic, int argc, char** argv) {
  std::uint64_t print = parsed.run ? 1 : 2;
  const auto mix = [&](std::uint64_t value) { print = uet::Rng(print ^ value).next(); };
  for (int i = 1; i < argc; ++i) mix(std::hash<std::string_view>()(argv[i]));
  for (const Flow& flow : traffic.flows) {
    mix(std::uint64_t{flow.source} << 32 | flow.destination);
    mix(flow.bytes ^ static_cast<std::uint64_t>(flow.start.value_or(-1)));
    mix(std::uint64_t{flow.trigger} << 32 | flow.sent_trigger);
    mix(flow.received_trigger);
  }
  return print;
}

bool same_everywhere(Exchange& mpi, const ParseResult& parsed, const Traffic& traffic, int argc,
                     char** argv) {
  const std::uint64_t own = print_of(parsed, traffic, argc, argv);
  Bytes bytes;
  append(bytes, own);
  std::vector<Bytes> out(mpi.ranks(), bytes), in(mpi.ranks());
  mpi.all_to_all(out, in);
  in[mpi.rank()] = bytes;
  return std::ranges::all_of(
      in, [&](const Bytes& other) { return Reader(other).take<std::uint64_t>() == own; });
}

// Runs this rank's part of the network. Rank 0 returns the outcome of all parts.
Outcome run_rank(const RunSetup& setup, Exchange* exchange, Watcher& watcher) {
  Network network(setup.network, setup.traffic, exchange);
  ProgressLine progress(setup.traffic.flows.size());
  if (!setup.trace_file.empty() || !setup.report_file.empty()) {
    network.watch(setup.trace_interval, [&](const Sample& sample) { watcher.sample(sample); });
  }
  network.run(setup.limit, [&](const Progress& p) {
    if (!setup.quiet) progress(p);
  });
  return gather_outcome(network, setup.threads == 1);
}

Outcome run_threads(const RunSetup& setup, Watcher& watcher) {
  if (setup.threads == 1) return run_rank(setup, nullptr, watcher);
  std::optional<Outcome> whole;
  run_in_threads(setup.threads, [&](Exchange& exchange) {
    Outcome outcome = run_rank(setup, &exchange, watcher);
    if (exchange.rank() == 0) whole = std::move(outcome);
  });
  return std::move(*whole);
}

int print(const RunSetup& setup, const Results& results, const Outcome& outcome) {
  if (setup.csv) print_csv(outcome, std::cout);
  if (setup.json) print_json(results, std::cout);
  if (!setup.csv && !setup.json) print_text(results, std::cout);
  for (const std::string& violation : results.violations) {
    std::fprintf(stderr, "uet-sim: a property is violated %s\n", violation.c_str());
  }
  if (results.finished < results.flows) {
    std::fprintf(stderr, "uet-sim: %zu of %zu flows were not done after %.0f us (--limit-us)\n",
                 results.flows - results.finished, results.flows, results.simulated_us);
  }
  return results.violations.empty() && results.finished == results.flows ? 0 : 1;
}

// `mpi`: with the other processes of mpirun, of which rank 0 prints; nullptr: one process.
int run(const RunSetup& setup, Exchange* mpi) {
  const std::uint64_t idle_memory_bytes = peak_memory_bytes();
  const auto begin = Clock::now();
  const bool first = mpi == nullptr || mpi->rank() == 0;
  RunSetup own = setup;
  if (!first) own.trace_file.clear();
  Watcher watcher(own);
  const Outcome outcome =
      mpi == nullptr ? run_threads(setup, watcher) : run_rank(setup, mpi, watcher);
  if (!first) return 0;
  const std::uint64_t idle_of_all = idle_memory_bytes * (mpi == nullptr ? 1 : mpi->ranks());
  const Results results = results_of(outcome, seconds_since(begin), idle_of_all);
  const int status = print(setup, results, outcome);
  return watcher.finish(outcome) ? status : 1;
}

int write_matrix_file(const RunSetup& setup) {
  std::ofstream file(setup.matrix_file);
  write_matrix(setup.traffic, file);
  file.close();
  if (file) return 0;
  std::fprintf(stderr, "uet-sim: cannot write %s\n", setup.matrix_file.c_str());
  return 2;
}

// Runs in a single process, or in every process of an mpirun.
int run_process(int argc, char** argv, Exchange* mpi) {
  const bool first = mpi == nullptr || mpi->rank() == 0;
  const auto refuse = [&](const std::string& complaint) {
    if (first) std::fprintf(stderr, "uet-sim: %s\n", complaint.c_str());
    return 2;
  };
  RunSetup setup;
  const ParseResult parsed = parse_command_line(argc, argv, setup);
  if (mpi != nullptr && !same_everywhere(*mpi, parsed, setup.traffic, argc, argv)) {
    if (!parsed.run && !first) std::fputs(parsed.text.c_str(), stderr);
    return refuse(
        "mpirun: the ranks differ in their options or in the files that these name; "
        "give all of them the same");
  }
  if (!parsed.run) {
    if (first) std::fputs(parsed.text.c_str(), parsed.status == 0 ? stdout : stderr);
    return parsed.status;
  }
  if (!setup.sweep.file.empty()) {
    if (mpi != nullptr) return refuse("--sweep: runs processes of its own; start without mpirun");
    return run_sweep(setup.sweep, "/proc/self/exe", std::cout);
  }
  if (!setup.matrix_file.empty()) return first ? write_matrix_file(setup) : 0;
  if (mpi != nullptr && setup.threads > 1) return refuse("--threads: not with mpirun; remove it");
  if (mpi != nullptr) {
    const std::string complaint =
        complaint_about_division(setup.network, setup.traffic, mpi->ranks());
    if (!complaint.empty()) return refuse("mpirun: " + complaint);
  }
  return run(setup, mpi);
}

// A Fep's tables are large and mostly never used. A table in a mapping of its own costs only the
// pages that are touched; a table in malloc's heap may have to be cleared first. By default malloc
// raises its threshold for mappings and makes 65,536 at most: too few for thousands of hosts.
void map_large_tables() {
  constexpr int kLargeBytes = 128 * 1024;
  mallopt(M_MMAP_THRESHOLD, kLargeBytes);
  mallopt(M_MMAP_MAX, std::numeric_limits<int>::max());
}

}  // namespace

int main(int argc, char** argv) {
  map_large_tables();
  try {
    MpiRanks mpi;
    if (started_by_mpi()) mpi = join_mpi();
    const int status = run_process(argc, argv, mpi.exchange);
    if (mpi.end != nullptr) mpi.end();
    return status;
  } catch (const std::exception& error) {
    // Of a rank: mpirun ends the others, since this one has not left them.
    std::fprintf(stderr, "uet-sim: %s\n", error.what());
    return 1;
  }
}
