// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// uet_simulate: runs drawn configurations of the core over a simulated network.
#include <getopt.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "sim/workload.h"

namespace {

constexpr const char* kUsage =
    "usage: uet_simulate --seeds N [--first S]   run N seeds, the first one S (default 1)\n"
    "       uet_simulate --seed S [--verbose]    run one seed; verbose: print every packet\n"
    "Stops at the first seed that breaks an oracle and prints how to run it again.\n";

struct Options {
  std::uint64_t first = 1;
  std::uint64_t count = 0;
  bool verbose = false;
};

bool parse_number(const char* text, std::uint64_t& number) {
  char* end = nullptr;
  number = std::strtoull(text, &end, 10);
  return end != text && *end == '\0';
}

bool parse_options(int argc, char** argv, Options& options) {
  const option known[] = {{"seeds", required_argument, nullptr, 'n'},
                          {"first", required_argument, nullptr, 'f'},
                          {"seed", required_argument, nullptr, 's'},
                          {"verbose", no_argument, nullptr, 'v'},
                          {nullptr, 0, nullptr, 0}};
  for (int c; (c = getopt_long(argc, argv, "", known, nullptr)) != -1;) {
    bool good = c != '?';
    if (c == 'n') good = parse_number(optarg, options.count);
    if (c == 'f') good = parse_number(optarg, options.first);
    if (c == 's') good = parse_number(optarg, options.first);
    if (c == 's') options.count = 1;
    if (c == 'v') options.verbose = true;
    if (!good) return false;
  }
  return options.count > 0 && optind == argc;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse_options(argc, argv, options)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t packets = 0, retransmissions = 0;
  for (std::uint64_t i = 0; i < options.count; ++i) {
    const auto outcome = uet::sim::run_seed(options.first + i, options.verbose);
    packets += outcome.packets;
    retransmissions += outcome.retransmissions;
    if (!outcome.failure.empty()) {
      std::printf("seed %llu: %s\n", static_cast<unsigned long long>(options.first + i),
                  outcome.failure.c_str());
      return 1;
    }
    if (options.count == 1 || (i + 1) % 100 == 0 || i + 1 == options.count) {
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
      std::printf("%llu seeds, %llu packets, %llu retransmissions, %.1f s\n",
                  static_cast<unsigned long long>(i + 1), static_cast<unsigned long long>(packets),
                  static_cast<unsigned long long>(retransmissions), spent.count());
      std::fflush(stdout);
    }
  }
  return 0;
}
