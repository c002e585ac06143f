// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// uet-sim: runs one network and one traffic, or a sweep of them, and prints what came of it. Status
// 0: all flows done and no property violated; 1: not so; 2: the arguments are wrong.
#include <malloc.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <limits>
#include <optional>

#include "netsim/options.h"
#include "netsim/report.h"
#include "netsim/results.h"
#include "netsim/sweep.h"
#include "netsim/trace.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// On standard error, every two seconds.
class ProgressLine {
 public:
  explicit ProgressLine(std::size_t flows) : flows_(flows) {}

  void operator()(const uet::netsim::Progress& progress) {
    const double spent_s = seconds_since(begin_);
    if (spent_s < next_s_) return;
    next_s_ = spent_s + 2;
    std::fprintf(stderr, "%.0f s: %.1f us simulated, %zu of %zu flows done, %.1f million events\n",
                 spent_s, uet::netsim::microseconds(progress.now), progress.finished, flows_,
                 static_cast<double>(progress.events) / 1e6);
  }

 private:
  std::size_t flows_;
  Clock::time_point begin_ = Clock::now();
  double next_s_ = 2;
};

int run(const uet::netsim::RunSetup& setup) {
  using namespace uet::netsim;
  const std::uint64_t idle_memory_bytes = peak_memory_bytes();
  const auto begin = Clock::now();
  Network network(setup.network, setup.traffic);
  ProgressLine progress(setup.traffic.flows.size());
  std::ofstream trace_file;
  std::optional<Trace> trace;
  if (!setup.trace_file.empty()) {
    trace_file.open(setup.trace_file);
    trace.emplace(trace_file);
  }
  Report report;
  if (trace || !setup.report_file.empty()) {
    network.watch(setup.trace_interval, [&] {
      if (trace) trace->sample(network);
      if (!setup.report_file.empty()) report.sample(network);
    });
  }
  network.run(setup.limit, [&](const Progress& p) {
    if (!setup.quiet) progress(p);
  });
  const Results results = results_of(network, seconds_since(begin), idle_memory_bytes);
  if (setup.csv) print_csv(network, std::cout);
  if (setup.json) print_json(results, std::cout);
  if (!setup.csv && !setup.json) print_text(results, std::cout);
  for (const std::string& violation : results.violations) {
    std::fprintf(stderr, "uet-sim: a property is violated %s\n", violation.c_str());
  }
  if (results.finished < results.flows) {
    std::fprintf(stderr, "uet-sim: %zu of %zu flows were not done after %.0f us (--limit-us)\n",
                 results.flows - results.finished, results.flows, results.simulated_us);
  }
  if (!setup.trace_file.empty() && !trace_file.flush()) {
    std::fprintf(stderr, "uet-sim: cannot write %s\n", setup.trace_file.c_str());
    return 1;
  }
  if (!setup.report_file.empty()) {
    std::ofstream file(setup.report_file);
    file << report.html(network);
    if (!file.flush()) {
      std::fprintf(stderr, "uet-sim: cannot write %s\n", setup.report_file.c_str());
      return 1;
    }
  }
  return results.violations.empty() && results.finished == results.flows ? 0 : 1;
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
    uet::netsim::RunSetup setup;
    const auto parsed = uet::netsim::parse_command_line(argc, argv, setup);
    if (!setup.sweep.file.empty()) return run_sweep(setup.sweep, "/proc/self/exe", std::cout);
    if (parsed.run) return run(setup);
    std::fputs(parsed.text.c_str(), parsed.status == 0 ? stdout : stderr);
    return parsed.status;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "uet-sim: %s\n", error.what());
    return 1;
  }
}
