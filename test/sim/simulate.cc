// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// uet_simulate: runs drawn configurations of the core over a simulated network.
#include <getopt.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "base/timer_wheel.h"
#include "sim/workload.h"

namespace {

constexpr const char* kUsage =
    "usage: uet_simulate --seeds N [--first S]   run N seeds, the first one S (default 1)\n"
    "       uet_simulate --fresh N [--report F]  run N new seeds: the first one is drawn\n"
    "       uet_simulate --seed S [--verbose]    run one seed; verbose: print every packet\n"
    "       uet_simulate --violate               violate an assertion of the core, which ends the "
    "run\n"
    "A seed that breaks an oracle is printed with the command that runs it again. --seeds stops\n"
    "there; --fresh goes on, prints all of them last and writes them to the file F, too.\n"
    "Status: 0 no oracle was broken, 1 one was, 2 the arguments are wrong.\n";

struct Options {
  std::uint64_t first = 1;
  std::uint64_t count = 0;
  bool fresh = false;
  bool verbose = false;
  bool violate = false;
  std::string report;
};

bool parse_number(const char* text, std::uint64_t& number) {
  char* end = nullptr;
  number = std::strtoull(text, &end, 10);
  return end != text && *end == '\0';
}

bool parse_options(int argc, char** argv, Options& options) {
  const option known[] = {
      {"seeds", required_argument, nullptr, 'n'},  {"first", required_argument, nullptr, 'f'},
      {"fresh", required_argument, nullptr, 'r'},  {"seed", required_argument, nullptr, 's'},
      {"report", required_argument, nullptr, 'o'}, {"verbose", no_argument, nullptr, 'v'},
      {"violate", no_argument, nullptr, 'x'},      {nullptr, 0, nullptr, 0}};
  for (int c; (c = getopt_long(argc, argv, "", known, nullptr)) != -1;) {
    bool good = c != '?';
    if (c == 'n' || c == 'r') good = parse_number(optarg, options.count);
    if (c == 'f' || c == 's') good = parse_number(optarg, options.first);
    if (c == 's') options.count = 1;
    if (c == 'r') options.fresh = true;
    if (c == 'o') options.report = optarg;
    if (c == 'v') options.verbose = true;
    if (c == 'x') options.violate = true;
    if (!good) return false;
  }
  return (options.count > 0 || options.violate) && optind == argc;
}

// Above all that are named in tests.
std::uint64_t draw_first_seed() {
  std::random_device device;
  return 1'000'000'000 + std::uint64_t{device()} * 1000;
}

// False if the report cannot be written.
bool report(const std::vector<std::string>& failures, const std::string& path) {
  for (const std::string& failure : failures) std::printf("%s\n", failure.c_str());
  if (path.empty() || failures.empty()) return true;
  std::ofstream file(path);
  for (const std::string& failure : failures) file << failure << '\n';
  file.close();
  if (file) return true;
  std::fprintf(stderr, "cannot write %s\n", path.c_str());
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse_options(argc, argv, options)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  if (options.violate) {
    uet::TimerEntry entry;
    uet::TimerWheel(uet::Time{}).insert(entry, uet::Time(uet::Duration(-1)));
  }
  if (options.fresh) {
    options.first = draw_first_seed();
    std::printf("first seed %llu\n", static_cast<unsigned long long>(options.first));
  }
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t packets = 0, retransmissions = 0;
  std::vector<std::string> failures;
  for (std::uint64_t i = 0; i < options.count; ++i) {
    const auto outcome = uet::sim::run_seed(options.first + i, options.verbose);
    packets += outcome.packets;
    retransmissions += outcome.retransmissions;
    if (!outcome.failure.empty()) {
      failures.push_back("seed " + std::to_string(options.first + i) + ": " + outcome.failure);
      if (!options.fresh) break;
    }
    if (options.count == 1 || (i + 1) % 100 == 0 || i + 1 == options.count) {
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
      std::printf("%llu seeds, %llu packets, %llu retransmissions, %.1f s\n",
                  static_cast<unsigned long long>(i + 1), static_cast<unsigned long long>(packets),
                  static_cast<unsigned long long>(retransmissions), spent.count());
      std::fflush(stdout);
    }
  }
  const bool written = report(failures, options.report);
  return failures.empty() && written ? 0 : 1;
}
